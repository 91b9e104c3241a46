"""Features from the structure, against dense linear algebra."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from everynode.graph import structural_features as structure
from everynode.graph.structural_features import structural_features


def graph(n: int, groups: int, seed: int = 0):
    """A random graph of groups, as edges and as a dense matrix; one node has no edge."""
    random = np.random.default_rng(seed)
    group = np.arange(n) % groups
    joined = np.triu(random.random((n, n)) < np.where(group[:, None] == group, 0.4, 0.01), 1)
    joined[:, -1] = False
    return np.stack(np.nonzero(joined)), (joined | joined.T).astype(float), group


def standardized(columns):
    return (columns - columns.mean(0)) / columns.std(0)


def test_degrees_and_returns():
    pairs, adjacency, _ = graph(40, 3)
    degree = adjacency.sum(1)
    walk = adjacency / np.maximum(degree, 1)[:, None]
    log = np.log1p(degree)
    expected = np.column_stack([log, walk @ log, np.diag(walk @ walk), np.diag(walk @ walk @ walk)])
    np.testing.assert_allclose(
        structural_features(pairs, 40)[:, :4], standardized(expected), atol=1e-5
    )


def test_loops_repeats_and_direction_do_not_matter():
    pairs, _, _ = graph(40, 3)
    again = np.concatenate([pairs, pairs[::-1, :5], [[3, 4], [3, 4]]], axis=1)
    np.testing.assert_allclose(
        structural_features(again, 40), structural_features(pairs, 40), atol=1e-5
    )


def test_positions_are_leading_eigenvectors(monkeypatch):
    monkeypatch.setattr(structure, "NUM_POSITIONS", 3)
    monkeypatch.setattr(structure, "NUM_ITERATIONS", 300)
    pairs, adjacency, _ = graph(60, 4)
    scale = 1 / np.sqrt(np.maximum(adjacency.sum(1), 1))
    values, vectors = np.linalg.eigh(scale[:, None] * adjacency * scale)
    expected = vectors[:, np.argsort(-values)[1:4]]
    found = structural_features(pairs, 60)[:, 4:]
    assert found.shape == (60, 3)
    cosine = np.abs((standardized(expected) * found).mean(0))
    np.testing.assert_allclose(cosine, 1, atol=1e-4)
    raw = structure._positions(*_operator_parts(adjacency))
    assert ((raw**3).sum(0) > 0).all()


def _operator_parts(adjacency):
    import scipy.sparse

    return scipy.sparse.csr_array(adjacency), adjacency.sum(1)


def test_positions_tell_groups_apart():
    pairs, adjacency, group = graph(120, 4)
    features = structural_features(pairs, 120)
    connected = adjacency.sum(1) > 0
    features, group = features[connected], group[connected]
    distance = ((features[:, None] - features) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    assert (group[distance.argmin(1)] == group).mean() > 0.9


def test_the_same_every_time():
    pairs, _, _ = graph(50, 2)
    assert structural_features(pairs, 50).tobytes() == structural_features(pairs, 50).tobytes()


@pytest.mark.parametrize(
    ("n", "pairs"),
    [(1, []), (2, []), (2, [(0, 1)]), (3, [(0, 1)]), (5, [(0, i) for i in range(1, 5)])],
)
def test_tiny_graphs(n, pairs):
    features = structural_features(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, n)
    assert features.shape == (n, 36)
    assert np.isfinite(features).all()


def test_hubs_do_without_triangles(monkeypatch):
    pairs, _, _ = graph(40, 3)
    full = structural_features(pairs, 40)
    monkeypatch.setattr(structure, "MAX_MULTIPLICATIONS", 0)
    full[:, 3] = 0
    np.testing.assert_array_equal(structural_features(pairs, 40), full)


def test_returns_in_chunks_are_the_same(monkeypatch):
    pairs, _, _ = graph(40, 3)
    expected = structural_features(pairs, 40)
    monkeypatch.setattr(structure, "CHUNK", 100.0)
    np.testing.assert_array_equal(structural_features(pairs, 40), expected)


def test_a_star_takes_memory_in_proportion_to_its_leaves(monkeypatch):
    """The product of two steps has an entry for each pair of leaves: 2 GB for 14,000 leaves."""
    monkeypatch.setattr(structure, "CHUNK", 1e5)
    monkeypatch.setattr(structure, "_positions", lambda _, degree: degree[:, None])

    def peak(n: int) -> int:
        leaves = np.arange(1, n)
        tracemalloc.start()
        try:
            structural_features(np.stack([0 * leaves, leaves]), n)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4000) < 3 * peak(2000)
