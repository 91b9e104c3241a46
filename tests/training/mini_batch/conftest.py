"""A small graph with everything that could go wrong: hubs, leaves, isolated nodes, few labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from everynode.graph import Graph, Split


def _make(
    *, dense: bool = True, weighted: bool = False, seed: int = 0, n: int = 60, train: int = 14
) -> Graph:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 7)) if dense else rng.random((n, 24)) * (rng.random((n, 24)) < 0.15)
    near = np.stack(
        [rng.integers(0, n - 3, 110), (n * rng.random(110) ** 3).astype(np.int64)]
    )  # a few hubs; the last three are isolated
    near[1] = np.minimum(near[1], n - 4)
    weight = rng.random(110) + 0.5 if weighted else None
    parts = torch.from_numpy(rng.permutation(n)).split([train, 16, n - train - 16])
    graph = Graph.from_arrays(x, near, np.arange(n) % 4, splits=[Split(*parts)], edge_weight=weight)
    return graph.to(torch.float64)


@pytest.fixture
def make_graph() -> Callable[..., Graph]:
    return _make


@pytest.fixture(params=["dense", "sparse", "weighted"])
def kind(request: pytest.FixtureRequest) -> dict[str, bool]:
    """What the graph is to be like, as ``make_graph`` takes it."""
    return {"dense": request.param != "sparse", "weighted": request.param == "weighted"}


@pytest.fixture
def graph(kind: dict[str, bool]) -> Graph:
    return _make(**kind)
