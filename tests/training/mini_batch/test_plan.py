"""Every training node is a seed once an epoch, other nodes are there too, and the weights make up for those that are not."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.errors import UsageError
from everynode.graph.neighbors import Neighbors
from everynode.training.mini_batch.plan import AtRandom, ByCluster, cut


@given(
    n=st.integers(2, 300),
    share=st.floats(0.01, 1.0),
    size=st.integers(2, 400),
    with_others=st.booleans(),
    epoch=st.integers(0, 5),
)
def test_an_epoch_goes_through_the_training_nodes_once(n, share, size, with_others, epoch):
    train = np.random.default_rng(n).permutation(n)[: max(1, int(share * n))]
    plan = AtRandom(train, n, size, with_others=with_others, seed=1)
    steps = [plan.seeds(epoch, step) for step in range(plan.steps)]
    labeled, others = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    assert sorted(labeled) == sorted(train)
    assert len(np.unique(others)) == len(others)
    assert not np.isin(others, train).any()
    assert all(
        len(labeled) >= 1 and len(labeled) + len(others) <= size + 1 for labeled, others in steps
    )
    if not with_others:
        assert len(others) == 0
    elif len(train) < n:
        assert len(others) > 0
        assert plan.of_others * len(others) / plan.steps == pytest.approx(
            n - len(train)
        )  # each counts for those that are not there
        assert all(len(labeled) <= max(1, size // 2) for labeled, _ in steps)


def test_the_seeds_are_the_same_whenever_they_are_asked_for():
    make = lambda seed: AtRandom(np.arange(20), 100, 16, with_others=True, seed=seed)  # noqa: E731
    one, other = make(3), make(3)
    later = other.seeds(5, 1)
    for first, second in zip(one.seeds(0, 2), other.seeds(0, 2), strict=True):
        np.testing.assert_array_equal(first, second)
    for first, second in zip(one.seeds(5, 1), later, strict=True):
        np.testing.assert_array_equal(first, second)
    assert (make(4).seeds(0, 0).labeled != one.seeds(0, 0).labeled).any()
    assert (one.seeds(1, 0).labeled != one.seeds(0, 0).labeled).any()


def two_rings(each: int = 30) -> Neighbors:
    """Two rings with chords, joined by one edge."""
    ring = np.arange(each)
    one = np.concatenate([np.stack([ring, (ring + k) % each]) for k in (1, 2)], axis=1)
    return Neighbors.of_edges(np.concatenate([one, one + each, [[0], [each]]], axis=1), 2 * each)


def test_clusters_are_cut_where_there_are_few_edges():
    pytest.importorskip("pymetis")
    cluster_of = cut(two_rings(), 2)
    assert len(set(cluster_of[:30])) == len(set(cluster_of[30:])) == 1
    assert cluster_of[0] != cluster_of[30]


def test_an_epoch_goes_through_all_nodes_by_whole_clusters():
    cluster_of = np.array([0, 1, 2, 3, 4, 5] * 10)
    plan = ByCluster(np.arange(0, 60, 7), cluster_of, 20, seed=0)
    assert plan.steps == 3
    steps = [plan.seeds(1, step) for step in range(3)]
    assert sorted(np.concatenate([np.concatenate(seeds) for seeds in steps])) == list(range(60))
    for labeled, others in steps:
        assert (labeled % 7 == 0).all()
        assert (others % 7 != 0).all()
        assert len({cluster_of[node] for node in (*labeled, *others)}) == 2


def test_what_clusters_need(monkeypatch):
    pytest.importorskip("pymetis")
    with pytest.raises(UsageError, match=r"60 nodes and cannot be cut into 61 clusters"):
        cut(two_rings(), 61)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(UsageError, match=r"pip install 'everynode\[scale\]'"):
        cut(two_rings(), 2)
