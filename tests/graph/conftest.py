"""Random graphs for the tests of graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from everynode.graph import Graph


def make_random_graph(
    seed: int, n: int = 15, *, weighted: bool = False, directed: bool = False, lonely: int = 2
) -> Graph:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - lonely, (2, 3 * n))
    weight = rng.integers(1, 9, 3 * n) / 4 if weighted else None
    features = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < rng.choice([0.15, 1.0]))
    folds = [np.split(rng.permutation(n), [5, 9]) for _ in range(1 + seed % 3)]
    labels = rng.integers(-1, 3, n)
    labels[:3] = range(3)
    return Graph.from_arrays(
        features, edges, labels, splits=folds, edge_weight=weight, directed=directed
    )


@pytest.fixture(scope="session")
def random_graph() -> Callable[..., Graph]:
    """A function from a seed to a graph with several components, labels and folds."""
    return make_random_graph
