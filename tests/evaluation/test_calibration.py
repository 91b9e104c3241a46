"""Temperature scaling: the minimum of its definition, found for any logits, and no prediction changed."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.evaluation.calibration import (
    HIGHEST,
    LOWEST,
    SPREAD,
    chance_error,
    reliability,
    temperature,
    temperature_of_average,
)
from everynode.evaluation.metrics import expected_calibration_error


def slow_loss(logits: torch.Tensor, labels: torch.Tensor, t: float) -> float:
    """The negative logarithm of how probable it is, node by node, up to a constant."""
    total = math.log(t) ** 2 / (2 * SPREAD**2)
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        scaled = [v / t for v in row]
        total += (
            max(scaled) + math.log(sum(math.exp(v - max(scaled)) for v in scaled)) - scaled[label]
        )
    return total


@st.composite
def answers(draw):
    n, k = draw(st.integers(1, 20)), draw(st.integers(2, 4))
    value = st.floats(-30, 30)
    logits = draw(st.lists(st.lists(value, min_size=k, max_size=k), min_size=n, max_size=n))
    return torch.tensor(logits), torch.tensor(
        draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    )


@settings(max_examples=60, deadline=None)
@given(answers())
def test_it_is_the_minimum(given_):
    logits, labels = given_
    found = temperature(logits, labels)
    assert LOWEST * 0.999 <= found <= HIGHEST * 1.001
    best = slow_loss(logits, labels, found)
    for other in (LOWEST, found * 0.9, found * 1.1, 1.0, HIGHEST):
        if LOWEST <= other <= HIGHEST:
            assert best <= slow_loss(logits, labels, other) + 1e-6


def sample(n: int, sharpness: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels drawn from softmax(x), and logits that are x times the sharpness."""
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(n, 3, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(x, 1), 1, generator=generator)[:, 0]
    return sharpness * x, labels


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_logits_that_are_too_sharp_or_too_dull_are_set_right(sharpness):
    logits, labels = sample(20_000, sharpness)
    found = temperature(logits, labels)
    assert found == pytest.approx(sharpness, rel=0.05)
    assert expected_calibration_error(torch.softmax(logits / found, 1), labels) < 0.015
    if sharpness != 1.0:
        assert expected_calibration_error(torch.softmax(logits, 1), labels) > 0.08


@pytest.mark.parametrize("sure", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("n", [1, 12, 60])
def test_a_few_nodes_that_are_all_right_move_it_little(sure, n):
    labels = torch.arange(n) % 3
    found = temperature(sure * torch.eye(3)[labels], labels)
    assert 0.2 < found < 1.0 + 1e-6, "neither certain, nor less sure than what was right each time"
    assert found > temperature(sure * torch.eye(3)[labels].repeat(50, 1), labels.repeat(50)) - 1e-6


def test_one_node_of_which_it_was_certain_and_wrong_makes_it_more_cautious():
    sure = 20 * torch.eye(3)[:1]
    assert 2.0 < temperature(sure, torch.tensor([1])) < 5.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_left_as_they_are(value):
    logits = torch.eye(3)
    logits[0, 0] = value
    assert temperature(logits, torch.arange(3)) == 1.0


def test_nodes_that_say_nothing_change_nothing():
    assert temperature(torch.zeros(5, 3), torch.arange(5) % 3) == 1.0


def test_worse_than_chance_is_nearly_as_good_as_no_answer():
    logits = 5 * torch.eye(2)[[0, 1] * 20]
    found = temperature(logits, torch.tensor([1, 0] * 20))
    assert torch.softmax(logits / found, 1).max() < 0.75


def test_the_bins_are_those_of_the_calibration_error():
    logits, labels = sample(500, 2.0)
    probabilities = torch.softmax(logits, 1)
    bins = reliability(probabilities, labels)
    assert sum(made.count for made in bins) == 500
    assert [made.confidence for made in bins] == sorted(made.confidence for made in bins)
    gap = sum(made.count * abs(made.accuracy - made.confidence) for made in bins) / 500
    assert gap == pytest.approx(expected_calibration_error(probabilities, labels), abs=1e-5)


def test_the_average_of_folds_gets_the_temperature_of_the_average():
    """Calibrated folds that differ by noise: their average is under-confident as it is."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.randn(4000, 3, generator=generator, dtype=torch.float64) * 2
    labels = torch.multinomial(torch.softmax(truth, 1), 1, generator=generator)[:, 0]
    noise = torch.randn(5, 4000, 3, generator=generator, dtype=torch.float64)
    folds = [torch.log_softmax(truth + 0.7 * one, dim=1) for one in noise]
    divisor = temperature(torch.cat(folds), labels.repeat(5))
    mean = torch.logsumexp(torch.stack(folds), 0) - math.log(5)
    chosen = temperature_of_average(folds, divisor)
    before, after = (
        expected_calibration_error(torch.softmax(mean / by, 1), labels) for by in (divisor, chosen)
    )
    assert chosen < divisor
    assert after < 0.25 * before
    assert chosen == pytest.approx(temperature(mean, labels), rel=0.03)  # found without a label
    again = temperature_of_average(folds, divisor, 1.5 * mean)
    assert again == pytest.approx(1.5 * chosen, rel=1e-4)


def test_folds_that_contradict_each_other_do_not_make_the_average_sure():
    sure = torch.tensor([[0.99, 0.01], [0.01, 0.99]]).log().repeat(20, 1)
    assert temperature_of_average([sure, sure.flip(1)], 1.0) == 0.6


@pytest.mark.parametrize("nodes", [60, 1000])
def test_calibrated_probabilities_show_the_error_of_chance(nodes):
    """The mean error over labels that are drawn from the probabilities themselves."""
    x, _ = sample(nodes, 1.0)
    p = torch.softmax(x, 1)
    generator = torch.Generator().manual_seed(1)
    drawn = torch.multinomial(p, 300, replacement=True, generator=generator)
    errors = [expected_calibration_error(p, labels) for labels in drawn.T]
    assert chance_error(p) == pytest.approx(sum(errors) / len(errors), rel=0.1)
