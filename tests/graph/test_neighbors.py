"""Sampling of neighbors: without repetition, unbiased, repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from everynode.graph.neighbors import Neighbors

EDGES = np.array([[0, 0, 0, 0, 1, 2], [1, 2, 3, 4, 2, 3]])


@pytest.mark.parametrize("weighted", [False, True])
def test_neighbors_and_degrees(weighted):
    weight = np.arange(1.0, 7.0) if weighted else None
    neighbors = Neighbors.of_edges(EDGES, 6, weight)
    lists = np.split(neighbors.col, neighbors.crow[1:-1])
    assert [sorted(part.tolist()) for part in lists] == [
        [1, 2, 3, 4], [0, 2], [0, 1, 3], [0, 2], [0], [],
    ]  # fmt: skip
    assert neighbors.count(np.array([0, 5, 2])).tolist() == [4, 0, 3]
    expected = [11, 7, 14, 10, 5, 1] if weighted else [5, 3, 4, 3, 2, 1]
    assert neighbors.looped_degree.tolist() == expected


def test_a_draw_takes_distinct_neighbors():
    neighbors, rng = Neighbors.of_edges(EDGES, 6), np.random.default_rng(0)
    for at_most in (0, 1, 2, 3, 9, -1):
        drawn = neighbors.draw(np.array([0, 5, 2]), at_most, rng)
        parts = np.split(drawn.nodes, drawn.crow[1:-1])
        for part, everything in zip(parts, ([1, 2, 3, 4], [], [0, 1, 3]), strict=True):
            size = len(everything) if at_most < 0 else min(at_most, len(everything))
            assert len(set(part.tolist()) & set(everything)) == len(part) == size


def test_a_weighted_sum_over_drawn_neighbors_is_unbiased():
    weight = np.arange(1.0, 7.0)
    neighbors, rng = Neighbors.of_edges(EDGES, 6, weight), np.random.default_rng(1)
    x = np.array([5.0, 1.0, -2.0, 4.0, 3.0, 0.0])
    sums = []
    for _ in range(4000):
        drawn = neighbors.draw(np.array([0]), 2, rng)
        sums.append((drawn.weight * x[drawn.nodes]).sum())
    exact = 1 * 1 + 2 * -2 + 3 * 4 + 4 * 3
    assert np.mean(sums) == pytest.approx(exact, abs=4 * np.std(sums) / np.sqrt(len(sums)))
