"""Ensemble selection on out-of-fold probabilities."""

import numpy as np
import pytest
import torch

from everynode.selection.greedy_ensemble import (
    EVIDENCE,
    averaging_weights,
    calibrated,
    combine,
    ensemble_weights,
    node_losses,
    paired_gap,
)


def noisy(labels: torch.Tensor, strength: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(labels), 3, generator=generator, dtype=torch.float64)
    logits[torch.arange(len(labels)), labels] += strength
    return logits


@pytest.fixture(scope="module")
def labels() -> torch.Tensor:
    return torch.arange(600) % 3


def test_calibration_lowers_the_loss_and_keeps_the_classes(labels):
    sharp = 8 * noisy(labels, 1.0, 0)
    log_p, divisor = calibrated(sharp, labels)
    assert divisor > 1
    assert torch.equal(log_p.argmax(1), sharp.argmax(1))
    assert node_losses(log_p, labels).mean() < node_losses(sharp.log_softmax(1), labels).mean()


def test_the_gap_is_paired():
    best, worse = np.array([0.1, 0.5, 3.0]), np.array([0.2, 0.6, 3.1])
    gap, error = paired_gap(worse, best)
    assert gap == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)  # though the losses themselves differ much
    assert paired_gap(best[:1], best[:1]) == (0.0, 0.0)


def test_only_candidates_near_the_best_start(labels):
    log_p = [calibrated(noisy(labels, s, i), labels)[0] for i, s in enumerate((2.0, 0.1, 2.0))]
    losses = np.stack([node_losses(one, labels) for one in log_p])
    weights = averaging_weights(losses)
    assert weights[1] < 1e-6
    assert weights.sum() == pytest.approx(1.0)
    assert weights.argmax() == losses.mean(1).argmin()


def test_few_labels_cannot_tell_candidates_apart():
    """The same mean gap excludes a candidate with many labels, and hardly with few."""
    few = averaging_weights(np.array([[0.4] * 10, [0.5] * 10]))
    many = averaging_weights(np.array([[0.4] * 1000, [0.5] * 1000]))
    assert few[1] > 0.2
    assert many[1] < 0.001


def test_averaging_weights_are_the_mean_softmax_over_resamples():
    losses = np.random.default_rng(0).random((3, 5))
    shares = np.random.default_rng([4, 8]).dirichlet(np.ones(5), size=1000)
    slow = np.zeros(3)
    for u in shares:
        scores = [
            np.exp(-(5**EVIDENCE) * sum(u[i] * losses[k, i] for i in range(5))) for k in range(3)
        ]
        slow += np.array(scores) / sum(scores) / len(shares)
    np.testing.assert_allclose(averaging_weights(losses, seed=4), slow)


def test_independent_members_together_are_better_than_the_best_alone(labels):
    log_p = torch.stack([calibrated(noisy(labels, 1.5, seed), labels)[0] for seed in range(4)])
    weights = ensemble_weights(log_p, labels)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).sum() >= 3
    alone = min(node_losses(one, labels).mean() for one in log_p)
    assert node_losses(combine(log_p, weights), labels).mean() < alone


def test_a_bad_candidate_has_no_weight(labels):
    log_p = torch.stack([calibrated(noisy(labels, s, i), labels)[0] for i, s in enumerate((3, -1))])
    assert ensemble_weights(log_p, labels).tolist() == [1.0, 0.0]


def test_few_labels_stay_near_the_plain_average_of_the_best():
    few = torch.arange(12) % 3
    log_p = torch.stack([calibrated(noisy(few, 1.5, seed), few)[0] for seed in range(6)])
    losses = np.stack([node_losses(one, few) for one in log_p])
    base = averaging_weights(losses)
    assert np.abs(ensemble_weights(log_p, few) - base).max() < 0.15


def test_a_handicap_takes_the_weight_of_a_flattered_candidate(labels):
    few = labels[:30]
    logits = noisy(few, 1.5, 0)
    alike = logits + 0.5 * noisy(few, 0.0, 1)
    log_p = torch.stack([calibrated(one, few)[0] for one in (logits, alike)])
    plain = ensemble_weights(log_p, few)
    assert (plain > 0.1).all()
    for handicapped in range(2):
        handicap = np.where(np.arange(2) == handicapped, 0.2, 0.0)
        assert ensemble_weights(log_p, few, handicap=handicap)[handicapped] < plain[handicapped]
    # The same for all changes nothing.
    assert np.allclose(ensemble_weights(log_p, few, handicap=np.full(2, 0.2)), plain)


def test_the_same_seed_gives_the_same_weights(labels):
    log_p = torch.stack([calibrated(noisy(labels, 1.0, seed), labels)[0] for seed in range(5)])
    first, second = (ensemble_weights(log_p, labels, seed=3) for _ in range(2))
    assert np.array_equal(first, second)


def test_combining_is_the_weighted_mean_of_probabilities(labels):
    log_p = torch.stack([noisy(labels, 1.0, seed).log_softmax(1) for seed in range(3)])
    weights = np.array([0.25, 0.0, 0.75])
    expected = 0.25 * log_p[0].exp() + 0.75 * log_p[2].exp()
    torch.testing.assert_close(combine(log_p, weights).exp(), expected)
