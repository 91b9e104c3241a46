"""Scores with intervals: values as the metrics have them, intervals that hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from everynode.evaluation.intervals import area_score
from everynode.evaluation.metrics import METRICS, expected_calibration_error
from everynode.evaluation.quality import quality, wilson


@pytest.mark.parametrize(("right", "count"), [(0, 5), (5, 5), (1, 1), (37, 50), (999, 1000)])
def test_wilson_is_scipys(right, count):
    expected = binomtest(right, count).proportion_ci(method="wilson")
    assert wilson(right, count) == pytest.approx(
        (right / count, expected.low, expected.high), abs=1e-6
    )


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of three classes, one of them rare, and probabilities that know a little about them."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    x = 1.5 * np.eye(3)[labels] + rng.normal(size=(n, 3))
    return np.exp(x) / np.exp(x).sum(1, keepdims=True), labels


def test_values_are_those_of_the_metrics():
    p, labels = draw(300, 0)
    found = quality(p, labels)
    log_p, y = torch.from_numpy(np.log(p)), torch.from_numpy(labels)
    for name, metric in METRICS.items():
        assert found[name].value == pytest.approx(metric(log_p, y))
    assert found["nll"].value == pytest.approx(-np.log(p[np.arange(300), labels]).mean())
    assert found["ece"].value == pytest.approx(expected_calibration_error(torch.from_numpy(p), y))
    assert math.isnan(found["ece"].low)
    for name in (n for n, m in METRICS.items() if m.interval):
        assert found[name].low < found[name].value < found[name].high
    assert quality(p, labels)["auc"] == found["auc"], "nothing is drawn"


@pytest.mark.parametrize(("n", "least"), [(200, 34), (25, 32)])
def test_intervals_hold_the_truth_about_19_times_in_20(n, least):
    truth = quality(*draw(40_000, 999))
    drawn = [quality(*draw(n, seed)) for seed in range(40)]
    for name in ("accuracy", "balanced_accuracy", "macro_f1", "auc", "nll"):
        hits = sum(found[name].low <= truth[name].value <= found[name].high for found in drawn)
        assert hits >= least, name


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_answers_that_happen_to_be_all_right_are_seldom_from_a_model_that_is_below_the_interval(
    classes,
):
    """Of models that get a node right with a chance below the lower end, few get all of 14 right."""
    labels = np.arange(14) % classes
    found = quality(0.9 * np.eye(classes)[labels] + 0.1 / classes, labels)
    assert found["accuracy"].low ** 14 == pytest.approx(0.034, abs=0.001)
    for name in ("balanced_accuracy", "macro_f1", "auc"):
        assert found[name].value == found[name].high == 1.0
        assert 0.5 < found[name].low < 0.9, name


@given(st.integers(1, 40), st.integers(2, 5), st.floats(0, 30), st.integers(0, 10_000))
def test_every_interval_is_around_its_score_and_within_what_the_score_can_be(n, k, sure, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    x = sure * np.eye(k)[labels] + rng.normal(size=(n, k))
    p = np.exp(x - x.max(1, keepdims=True))
    for name, score in quality(p / p.sum(1, keepdims=True), labels).items():
        assert "nan" not in str(score)
        if not math.isnan(score.low):
            most = math.inf if name == "nll" else 1.0
            assert 0.0 <= score.low <= score.value + 1e-12, name
            assert score.value - 1e-12 <= score.high <= most, name
            assert score.high - score.low > 1e-9 * score.value, (
                f"{name}: so many nodes make nobody certain"
            )


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 1))
def test_the_interval_of_an_auc_ends_where_newcombes_equation_holds(those, others, area):
    score = area_score(area, those, others)
    for end in {score.low, score.high} - {area}:
        if 1e-6 < end < 1 - 1e-6:
            spread = 1 + ((those + others) / 2 - 1) * ((1 - end) / (2 - end) + end / (1 + end))
            assert abs(area - end) == pytest.approx(
                1.959964 * math.sqrt(end * (1 - end) * spread / (those * others)), rel=1e-3
            )


def test_where_no_answer_is_wrong_nobody_knows_what_a_wrong_one_would_cost():
    labels = np.arange(30) % 2
    p = np.linspace(0.9, 0.999, 30)
    right = np.where(labels[:, None] == np.arange(2), p[:, None], 1 - p[:, None])
    assert math.isnan(quality(right, labels)["nll"].low)
    labels[0] = 1
    assert quality(right, labels)["nll"].low > 0


def test_equal_surprises_and_few_nodes_have_no_interval():
    alike = quality(np.full((9, 2), 0.5), np.arange(9) % 2)
    assert str(alike["nll"]) == "0.693 (no interval)"
    assert (
        str(quality(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1]))["nll"])
        == "0.231 (no interval)"
    )


def test_one_class_and_one_node():
    found = quality(np.array([[0.9, 0.1]]), np.array([0]))
    assert found["accuracy"].value == 1.0
    assert math.isnan(found["auc"].value)
    assert math.isnan(found["nll"].low)
