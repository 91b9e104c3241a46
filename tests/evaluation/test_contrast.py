"""Contrast: against slow loops, on predictions whose calibration is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from everynode.evaluation.contrast import MOST, contrast, with_contrast
from everynode.evaluation.metrics import expected_calibration_error


def drawn(nodes: int, classes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return calibrated log-probabilities of very different certainty, and labels drawn from them."""
    random = np.random.default_rng(seed)
    spread = random.uniform(0, 5, size=(nodes, 1))
    log_p = torch.log_softmax(torch.from_numpy(spread * random.normal(size=(nodes, classes))), 1)
    labels = [random.choice(classes, p=p / p.sum()) for p in log_p.exp().numpy()]
    return log_p, torch.tensor(labels)


def test_it_follows_the_equation_node_by_node():
    log_p, _ = drawn(20, 4)
    found = with_contrast(log_p, 1.3)
    for row, p in zip(found.exp().tolist(), log_p.exp().tolist(), strict=True):
        entropy = -sum(one * math.log(one) for one in p) / math.log(4)
        power = [one ** (1 / math.exp(1.3 * (entropy - 0.5))) for one in p]
        assert row == pytest.approx([one / sum(power) for one in power])


def test_predictions_and_the_order_of_certainty_stay():
    log_p, _ = drawn(200, 2)
    found = with_contrast(log_p, 2.0)
    assert torch.equal(found.argmax(1), log_p.argmax(1))
    assert torch.equal(found.max(1).values.argsort(), log_p.max(1).values.argsort())
    assert with_contrast(log_p, 0.0) is log_p
    certain = torch.tensor([[0.0, -math.inf]])
    assert with_contrast(certain, 1.0).tolist() == certain.tolist()


def test_calibrated_predictions_need_next_to_none():
    log_p, labels = drawn(4000, 3)
    assert contrast(log_p, labels) < 0.1


def test_it_finds_the_contrast_that_was_taken_away_and_mends_the_calibration():
    """Flattened: a temperature that falls with the entropy; one temperature cannot undo it."""
    log_p, labels = drawn(4000, 3, seed=1)
    p = log_p.exp()
    entropy = torch.special.entr(p).sum(1) / math.log(3)
    flat = torch.log_softmax(log_p / (1.2 * (0.5 - entropy)).exp()[:, None], 1)
    found = contrast(flat, labels)
    assert found > 0.5
    before = expected_calibration_error(flat.exp(), labels)
    after = expected_calibration_error(with_contrast(flat, found).exp(), labels)
    assert after < 0.6 * before


@pytest.mark.parametrize("classes", [1, 2])
def test_nothing_to_learn_from_is_no_contrast(classes):
    assert contrast(torch.zeros(0, classes), torch.zeros(0, dtype=torch.long)) == 0
    equal = torch.full((5, classes), -math.log(classes))
    assert contrast(equal, torch.zeros(5, dtype=torch.long)) <= MOST
    impossible = torch.tensor([[0.0, -math.inf]]).repeat(3, 1)
    assert contrast(impossible, torch.ones(3, dtype=torch.long)) == 0
