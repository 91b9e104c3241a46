"""The log-loss at the best temperature."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everynode.evaluation.calibrated_loss import SPREAD, calibrated_loss


def slow(logits: torch.Tensor, labels: torch.Tensor, weight: torch.Tensor | None = None) -> float:
    """The definition on a fine grid of temperatures."""
    best = math.inf
    for theta in torch.linspace(-9, 9, 3601).tolist():
        loss = torch.nn.functional.cross_entropy(math.exp(theta) * logits.double(), labels, weight)
        prior = (math.exp(theta) - 1 - theta) / (len(labels) * SPREAD**2)
        best = min(best, loss.item() + prior)
    return best


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 5), st.floats(-3, 3))
def test_it_is_the_minimum_over_temperatures(seed, nodes, classes, scale):
    generator = torch.Generator().manual_seed(seed)
    logits = 10**scale * torch.randn(nodes, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (nodes,), generator=generator)
    assert calibrated_loss(logits, labels) == pytest.approx(slow(logits, labels), abs=2e-3)


def test_it_weighs_classes():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(30, 3, dtype=torch.float64, generator=generator)
    labels = torch.arange(30) % 3
    weight = torch.tensor([1.0, 5.0, 0.5], dtype=torch.float64)
    found = calibrated_loss(logits, labels, weight)
    assert found == pytest.approx(slow(logits, labels, weight), abs=1e-3)
    assert found != pytest.approx(calibrated_loss(logits, labels), abs=1e-3)


def test_right_answers_have_a_finite_temperature():
    loss = calibrated_loss(4 * torch.eye(3), torch.arange(3))
    assert 0 < loss < 0.02


def test_overconfidence_costs_less_than_the_plain_loss():
    logits = 50 * torch.eye(2)[[0, 0, 0, 0]]
    labels = torch.tensor([0, 0, 0, 1])
    plain = torch.nn.functional.cross_entropy(logits, labels).item()
    assert calibrated_loss(logits, labels) < 0.1 * plain
