"""Class shares of unlabeled nodes."""

from __future__ import annotations

import math

import pytest
import torch

from everynode.selection.class_shares import (
    MOST,
    PRIOR,
    PSEUDO_NODES,
    class_shift,
    drawn_by_class,
    estimated_shares,
    mean_predictions,
)


def draw(shares, count, seed, noise=1.0):
    """Labels, and the exact log-probabilities of a Gaussian classifier under equal shares."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
    x = 2.0 * torch.nn.functional.one_hot(labels, len(shares)).double()
    x = x + noise * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    return labels, torch.log_softmax(2.0 * x / noise**2, dim=1)


def test_mean_predictions_equal_a_loop_and_keep_the_mean_over_the_labels():
    labels, log_p = draw([0.2, 0.3, 0.5], 30, seed=0)
    p, found = log_p.exp(), mean_predictions(log_p.exp(), labels)
    own = 30 / (30 + 3 * PSEUDO_NODES)
    for c in range(3):
        of_class = sum(p[i] for i in range(30) if labels[i] == c) / int((labels == c).sum())
        torch.testing.assert_close(found[c], own * of_class + (1 - own) * p.mean(0))
    shares = torch.bincount(labels).double() / 30
    torch.testing.assert_close(shares @ found, p.mean(0))


def test_estimated_shares_maximize_the_objective():
    labels, log_p = draw([1.0, 1.0, 1.0], 300, seed=1)
    _, others = draw([0.7, 0.2, 0.1], 500, seed=2)
    means, even = mean_predictions(log_p.exp(), labels), torch.full((3,), 1 / 3).double()
    predicted = others.exp().mean(0)

    def objective(q):
        return (predicted * (q @ means).log()).sum() + PRIOR * (even * q.log()).sum()

    q = estimated_shares(means, predicted, even)
    assert q.sum().item() == pytest.approx(1.0)
    for i in range(3):
        for j in range(3):
            other = q.clone()
            other[i] += 1e-3
            other[j] -= 1e-3
            assert objective(other) <= objective(q) + 1e-9


def test_labels_drawn_like_the_other_nodes_shift_nothing():
    labels, log_p = draw([0.6, 0.3, 0.1], 400, seed=3)
    torch.testing.assert_close(class_shift(log_p, labels, log_p), torch.zeros(3).double())


def test_balanced_labels_of_unbalanced_nodes_shift_towards_the_large_class_and_predict_better():
    labels, log_p = draw([1.0, 1.0, 1.0], 60, seed=4)
    true, others = draw([0.8, 0.1, 0.1], 2000, seed=5)
    shift = class_shift(log_p, labels, others)
    assert 0 < shift[0] < math.log(0.8 * 3)  # the prior holds it back
    before = torch.nn.functional.nll_loss(others, true)
    shifted = torch.log_softmax(others + shift, 1)
    assert torch.nn.functional.nll_loss(shifted, true) < before - 0.05
    right = [(p.argmax(1) == true).double().mean() for p in (others, shifted)]
    assert right[1] > right[0]


def test_classes_without_a_label_stay_and_no_shift_is_beyond_the_limit():
    p = torch.tensor([[0.999, 0.001, 0.0]]).repeat(9, 1).double() + 1e-6
    p = (p / p.sum(1, keepdim=True)).log()
    labels = torch.tensor([0, 1] * 4 + [0])
    shift = class_shift(p, labels, p)
    assert shift[2] == 0
    sure = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double().clamp(1e-9).log()
    shift = class_shift(sure.repeat(500, 1), torch.tensor([0, 1] * 500), sure[:1])
    assert shift.abs().max() <= math.log(MOST) + 1e-9


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((5, 5, 5), True), ((5, 5, 1), True), ((5, 5, 0, 2, 2), True), ((5, 5, 3, 2, 1), False),
     ((40, 10), False), ((7, 5, 5, 5), False), ((9,), False)],
)  # fmt: skip
def test_equal_numbers_of_labels_were_drawn_class_by_class(counts, expected):
    labels = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    assert drawn_by_class(labels) is expected
