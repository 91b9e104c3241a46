"""The balanced accuracy of right answers equals the metric on the predictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.evaluation.mean_recall import mean_recall
from everynode.evaluation.metrics import METRICS


@pytest.mark.parametrize("classes", [2, 5])
def test_it_is_the_balanced_accuracy_of_the_predictions(classes):
    rng = np.random.default_rng(classes)
    labels, predicted = rng.integers(classes, size=(2, 60))
    labels[labels == 1] = 0  # a class without nodes counts neither way
    expected = METRICS["balanced_accuracy"].interval(
        torch.eye(classes)[predicted], torch.from_numpy(labels)
    )
    assert mean_recall(predicted == labels, labels) == pytest.approx(expected)


def test_a_single_class_that_is_always_named_has_half_of_two():
    labels = np.array([0] * 95 + [1] * 5)
    score = mean_recall(labels == 0, labels)
    assert score.value == 0.5
    assert score.low < 0.5 < score.high < 0.8
