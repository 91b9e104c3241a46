"""The judged nodes: their answers and their mistakes."""

from __future__ import annotations

import numpy as np
import torch

from everynode.evaluation.scored_part import ScoredPart


def part_of(labels: list[int], p: list[list[float]]) -> ScoredPart:
    logs = torch.tensor(p, dtype=torch.float64).log()
    return ScoredPart("test", np.arange(len(labels)), np.array(labels), logs, 2.0)


def test_answers_mistakes_and_confusion_are_counts():
    p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]
    part = part_of([0, 0, 0, 2], p)
    truth, called = part.answers()
    assert truth.tolist() == [0, 0, 0, 2]
    assert called.tolist() == [0, 1, 1, 2]
    assert part.confused(5) == [(0, 1, 2)]
    assert part.confusion(3) == [[1, 2, 0], [0, 0, 0], [0, 0, 1]]


def test_the_temperature_divides_the_logarithms():
    part = part_of([0], [[0.8, 0.2]])
    np.testing.assert_allclose(part.uncalibrated, [[0.8, 0.2]])
    np.testing.assert_allclose(part.probabilities, [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(part.ece_before, 0.2, atol=1e-9)
