"""Means, intervals and paired tests, against scipy and against formulas written out by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies
from scipy import stats

from everynode.experiments.statistics import compare_paired, holm, summarize

RNG = np.random.default_rng(7)
SAMPLES = [RNG.normal(0.7, 0.02, size).tolist() for size in (2, 3, 10, 100)]
PAIRS = [
    (RNG.normal(0.71, 0.02, size).tolist(), RNG.normal(0.70, 0.02, size).tolist())
    for size in (2, 5, 10, 40)
]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
def test_summary_is_students_interval(values):
    got = summarize(values)
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    assert got.count == len(values)
    assert (got.mean, got.std) == pytest.approx(
        (np.mean(values), np.std(values, ddof=1)), rel=1e-12
    )
    assert (got.low, got.high) == pytest.approx((low, high), rel=1e-12)


def test_summary_by_hand():
    got = summarize([1.0, 2.0, 3.0, 4.0])  # s = sqrt(5/3), t(0.975, 3) = 3.182446
    half = 3.182446305284263 * math.sqrt(5 / 3) / 2
    assert (got.mean, got.std, got.low, got.high) == pytest.approx(
        (2.5, math.sqrt(5 / 3), 2.5 - half, 2.5 + half), rel=1e-12
    )


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda v: len(v))
def test_paired_comparison_is_the_paired_t_test(a, b):
    got, expected = compare_paired(a, b), stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert got.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert (got.low, got.high) == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert got.mean == pytest.approx(np.mean(a) - np.mean(b), rel=1e-9)


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda v: len(v))
@pytest.mark.parametrize("share", [0.25, 20 / 48, 1000 / 120])
def test_folds_are_compared_by_the_corrected_resampled_t(a, b, share):
    """Nadeau and Bengio 2003: t = mean / sqrt((1/n + n_test/n_train) s^2), n - 1 degrees of freedom."""
    n = len(a)
    difference = [x - y for x, y in zip(a, b, strict=True)]
    mean = sum(difference) / n
    variance = sum((d - mean) ** 2 for d in difference) / (n - 1)
    error = math.sqrt((1 / n + share) * variance)
    got = compare_paired(a, b, test_share=share)
    assert got.p_value == pytest.approx(2 * (1 - stats.t.cdf(abs(mean) / error, n - 1)), rel=1e-9)
    quantile = stats.t.ppf(0.975, n - 1)
    assert (got.low, got.high) == pytest.approx(
        (mean - quantile * error, mean + quantile * error), rel=1e-9
    )
    plain = compare_paired(a, b)
    assert got.p_value > plain.p_value
    assert got.high - got.low > plain.high - plain.low


def test_turning_the_pair_round_turns_the_sign():
    a, b = PAIRS[2]
    one, other = compare_paired(a, b), compare_paired(b, a)
    assert (one.mean, one.low, one.high) == pytest.approx(
        (-other.mean, -other.high, -other.low), rel=1e-12
    )
    assert one.p_value == other.p_value


def test_one_value_has_a_mean_and_no_interval():
    got = summarize([0.7])
    assert (got.count, got.mean) == (1, 0.7)
    assert all(math.isnan(v) for v in (got.std, got.low, got.high))
    assert got.to_dict() == {"count": 1, "mean": 0.7, "std": None, "low": None, "high": None}
    pair = compare_paired([0.7], [0.5])
    assert pair.mean == pytest.approx(0.2)
    assert math.isnan(pair.p_value)
    assert pair.to_dict()["p_value"] is None
    json.loads(json.dumps(pair.to_dict(), allow_nan=False))


def test_equal_values_have_an_interval_of_no_width():
    got = summarize([0.5, 0.5, 0.5])
    assert (got.mean, got.std, got.low, got.high) == (0.5, 0.0, 0.5, 0.5)
    same = compare_paired([0.5, 0.25], [0.5, 0.25])
    assert (same.mean, same.p_value) == (0.0, 1.0)
    better = compare_paired([0.75, 0.5], [0.5, 0.25])
    assert (better.mean, better.std) == (0.25, 0.0)
    assert math.isnan(better.p_value), "two differences that happen to be the same are no certainty"


@pytest.mark.parametrize("nodes", [37, 51, 456, 1000])
@pytest.mark.parametrize("unit", [1.0, 100.0])
@pytest.mark.parametrize("count", [2, 5, 10])
def test_one_node_more_everywhere_has_no_p_value_whatever_floats_make_of_it(nodes, unit, count):
    right = [nodes // 2 + 3 * i % 7 for i in range(count)]
    one_more = compare_paired(
        [unit * (k + 1) / nodes for k in right], [unit * k / nodes for k in right], test_share=0.4
    )
    assert math.isnan(one_more.p_value)
    assert (
        compare_paired([unit * k / nodes for k in right], [unit * k / nodes for k in right]).p_value
        == 1.0
    )
    mixed = compare_paired(
        [unit * (k + i % 2) / nodes for i, k in enumerate(right)], [unit * k / nodes for k in right]
    )
    assert 0 < mixed.p_value < 1


def test_pairs_must_be_as_many():
    with pytest.raises(ValueError, match="2 and 1"):
        compare_paired([1.0, 2.0], [1.0])


def test_the_interval_over_folds_is_wider_than_over_seeds():
    values = [0.7, 0.75, 0.72, 0.69, 0.74]
    seeds, folds = summarize(values), summarize(values, test_share=20 / 48)
    assert folds.mean == seeds.mean
    ratio = (folds.high - folds.low) / (seeds.high - seeds.low)
    assert ratio == pytest.approx(((1 / 5 + 20 / 48) / (1 / 5)) ** 0.5)


def slow_holm(p_values: list[float]) -> list[float]:
    """Holm 1979: the adjusted p of a hypothesis is the largest (m - j) p_(j) over all hypotheses before it in order, capped at 1."""
    m = len(p_values)
    return [
        min(1.0, max(sum(q >= p for q in p_values) * p for p in p_values if p <= own)) if m else own
        for own in p_values
    ]


chances = strategies.lists(strategies.floats(0, 1), max_size=12)


@given(chances)
def test_holm_is_his_definition(p_values):
    assert holm(p_values) == pytest.approx(slow_holm(p_values))


@given(chances)
def test_corrected_p_values_are_larger_at_most_one_and_in_the_same_order(p_values):
    corrected = holm(p_values)
    assert all(raw <= new <= 1 for raw, new in zip(p_values, corrected, strict=True))
    ordered = [new for _, new in sorted(zip(p_values, corrected, strict=True))]
    assert ordered == sorted(ordered)
    assert all(
        new <= min(1.0, len(p_values) * raw) + 1e-12
        for raw, new in zip(p_values, corrected, strict=True)
    )


@given(chances, strategies.randoms(use_true_random=False))
def test_holm_does_not_depend_on_the_order(p_values, rng):
    order = list(range(len(p_values)))
    rng.shuffle(order)
    corrected = holm(p_values)
    assert holm([p_values[i] for i in order]) == [corrected[i] for i in order]


def test_no_test_is_nothing_to_correct():
    assert holm([]) == []
