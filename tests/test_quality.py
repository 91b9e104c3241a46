"""Scores with intervals: values as the metrics have them, intervals that hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from everynode.metrics import METRICS, expected_calibration_error
from everynode.quality import quality, wilson


@pytest.mark.parametrize(("right", "count"), [(0, 5), (5, 5), (1, 1), (37, 50), (999, 1000)])
def test_wilson_is_scipys(right, count):
    expected = binomtest(right, count).proportion_ci(method="wilson")
    assert wilson(right, count) == pytest.approx((right / count, expected.low, expected.high), abs=1e-6)


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
    for name in (*METRICS, "nll"):
        assert found[name].low < found[name].value < found[name].high
    again = quality(p, labels)
    assert {name: again[name] for name in (*METRICS, "nll")} == {name: found[name] for name in (*METRICS, "nll")}  # seeded


def test_intervals_hold_the_truth_about_19_times_in_20(monkeypatch):
    monkeypatch.setattr("everynode.quality.AUC_SAMPLES", 50)
    monkeypatch.setattr("everynode.quality.SAMPLES", 500)
    truth = quality(*draw(40_000, 999))
    drawn = [quality(*draw(200, seed)) for seed in range(40)]
    for name in ("accuracy", "balanced-accuracy", "macro-f1", "auc", "nll"):
        hits = sum(found[name].low <= truth[name].value <= found[name].high for found in drawn)
        assert hits >= 34, name


def test_one_class_and_one_node():
    found = quality(np.array([[0.9, 0.1]]), np.array([0]))
    assert found["accuracy"].value == 1.0
    assert math.isnan(found["auc"].value)
    assert math.isnan(found["nll"].low)
