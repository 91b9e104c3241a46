"""Intervals: the special cases; tests/evaluation/test_quality.py has their coverage."""

from __future__ import annotations

import math

import pytest
import torch

from everynode.evaluation.intervals import (
    Score,
    area_score,
    mean_score,
    positive_mean_score,
    wilson,
)


def test_a_mean_of_independent_scores_is_narrower_than_of_dependent_ones():
    scores = [wilson(8, 10), wilson(6, 10)]
    independent, twice, any_dependence = (
        mean_score(scores, dependence=d) for d in (1.0, 2.0, math.inf)
    )
    assert independent.value == twice.value == any_dependence.value == pytest.approx(0.7)
    assert any_dependence.low <= twice.low < independent.low
    assert any_dependence.low == pytest.approx((scores[0].low + scores[1].low) / 2)


@pytest.mark.parametrize("area", [0.0, 0.3, 0.5, 1.0])
def test_the_ends_of_an_area_are_where_it_would_be_too_far_off(area):
    score, mirrored = area_score(area, 9, 21), area_score(1 - area, 9, 21)
    assert 0 <= score.low <= area <= score.high <= 1
    assert score.high - score.low > 0.1
    assert score.low == pytest.approx(1 - mirrored.high)


def test_few_equal_or_untypical_values_have_no_interval():
    values = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=torch.float64)
    score = positive_mean_score(values, typical=True)
    assert 0 < score.low < score.value < score.high
    for other, typical in ((values[:4], True), (values, False), (torch.ones(9), True)):
        assert math.isnan(positive_mean_score(other, typical=typical).low)


def test_a_score_without_a_value_is_none():
    assert str(Score(math.nan)) == "none"
