"""Prediction sets: their scores, their thresholds, and the coverage they promise."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.evaluation.prediction_sets import (
    aps_scores,
    calibrate_sets,
    check_counts,
    conformal_threshold,
    least_labels,
    neighbor_scores,
)


def slow_aps(p: list[float], u: float) -> list[float]:
    """The definition, class by class; of equal probabilities, the first counts as the larger."""
    scores = []
    for y, own in enumerate(p):
        before = sum(q for j, q in enumerate(p) if q > own or (q == own and j < y))
        scores.append(before + u * own)
    return scores


@st.composite
def rows(draw):
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    weights = draw(
        st.lists(st.lists(st.integers(1, 9), min_size=k, max_size=k), min_size=n, max_size=n)
    )
    p = torch.tensor(weights, dtype=torch.float64)
    uniform = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    return p / p.sum(1, keepdim=True), torch.tensor(uniform, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(rows())
def test_scores_are_those_of_the_definition(drawn):
    p, uniform = drawn
    expected = [slow_aps(row, u) for row, u in zip(p.tolist(), uniform.tolist(), strict=True)]
    torch.testing.assert_close(aps_scores(p, uniform), torch.tensor(expected, dtype=torch.float64))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.05, 0.95))
def test_the_threshold_covers_its_share_and_no_more_than_it_must(scores, coverage):
    limit = conformal_threshold(torch.tensor(scores, dtype=torch.float64), coverage)
    rank = math.ceil(round((len(scores) + 1) * coverage, 9))
    assert (limit == math.inf) == (rank > len(scores)) == (len(scores) < least_labels(coverage))
    if limit < math.inf:
        assert sum(s <= limit for s in scores) >= rank > sum(s < limit for s in scores)


def sample(n: int, generator: torch.Generator, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities that are badly calibrated, and labels of exchangeable nodes."""
    logits = 2 * torch.randn(n, k, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator)[:, 0]
    return torch.softmax(3 * logits, 1), labels


def coverage_of(count: int, *, per_class: bool = False, diffuse: bool = False) -> torch.Tensor:
    """The share of covered nodes by class over 200 draws of calibration and new nodes."""
    generator = torch.Generator().manual_seed(1)
    inside, total = torch.zeros(4), torch.zeros(4)
    for seed in range(200):
        p, y = sample(count + 100, generator)
        noise = torch.rand(count + 100, generator=generator, dtype=torch.float64)
        near = 0.5 * aps_scores(p, torch.full_like(noise, 0.5)) + 0.2 * noise[:, None]
        neighbors = near if diffuse else None
        rule = calibrate_sets(
            p[:count], y[:count], 0.8, per_class=per_class, seed=seed,
            neighbors=None if neighbors is None else neighbors[:count],
        )  # fmt: skip
        sets = rule.sets(p[count:], noise[count:], None if neighbors is None else neighbors[count:])
        covered = sets.gather(1, y[count:, None])[:, 0]
        inside += torch.bincount(y[count:][covered], minlength=4)
        total += torch.bincount(y[count:], minlength=4)
    return torch.stack([inside, total])


@pytest.mark.parametrize(("count", "diffuse"), [(5, False), (9, False), (60, False), (120, True)])
def test_new_nodes_are_covered_as_promised_and_no_more(count, diffuse):
    inside, total = coverage_of(count, diffuse=diffuse).sum(1).tolist()
    assert inside / total == pytest.approx(0.8, abs=0.02)  # 5 labels rounded up: 83 %


def test_a_random_number_rounds_the_rank_up_as_often_as_its_fraction_says():
    scores = torch.arange(1.0, 7.0)  # rank 7 x 0.75 = 5.25
    assert conformal_threshold(scores, 0.75, 0.24) == 6.0
    assert conformal_threshold(scores, 0.75, 0.26) == 5.0
    assert conformal_threshold(scores[:1], 0.25, 0.6) == -math.inf
    assert conformal_threshold(scores, 0.9, 0.2) == math.inf
    assert conformal_threshold(scores, 0.9, 0.4) == 6.0


def test_each_class_is_covered_if_that_is_promised():
    inside, total = coverage_of(200, per_class=True)
    assert ((inside / total - 0.8).abs() < 0.03).all()


def test_neighbors_count_where_they_make_sets_smaller():
    generator = torch.Generator().manual_seed(0)
    p, y = sample(400, generator)
    right = torch.nn.functional.one_hot(y, 4).double()
    assert calibrate_sets(p, y, 0.8, neighbors=1 - right).neighbor_weight > 0
    assert calibrate_sets(p, y, 0.8, neighbors=right).neighbor_weight == 0
    assert calibrate_sets(p[:50], y[:50], 0.8, neighbors=1 - right[:50]).neighbor_weight == 0
    assert calibrate_sets(p, y, 0.8, seed=3) == calibrate_sets(p, y, 0.8, seed=3)


def test_scores_of_neighbors_are_their_mean_and_isolated_nodes_keep_their_own():
    graph = generate(12, 10, 4, 3, seed=0)
    p = torch.softmax(torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double(), 1)
    found = neighbor_scores(graph, p)
    own = torch.tensor([slow_aps(row, 0.5) for row in p.tolist()], dtype=torch.float64)
    near: list[list[int]] = [[] for _ in range(12)]
    for a, b in graph.edges.T.tolist():
        near[a].append(b)
        near[b].append(a)
    assert any(not some for some in near)
    assert any(near)
    for i, some in enumerate(near):
        torch.testing.assert_close(
            found[i], own[some].mean(0) if some else own[i], rtol=1e-5, atol=1e-6
        )


def test_too_few_labels_are_refused_with_the_number_that_it_takes():
    y = torch.tensor([0] * 30 + [1] * 5)
    check_counts(y, 0.9)
    with pytest.raises(
        UsageError, match="at least 9 held-out labels in each class, and the rarest class has 5"
    ):
        check_counts(y, 0.9, 2)
    with pytest.raises(UsageError, match="at least 99 held-out labels, and there are 35"):
        check_counts(y, 0.99)
    with pytest.raises(UsageError, match="between 0 and 1"):
        check_counts(y, 1.0)
