"""Small graphs and comparisons for tests of layers against PyG's."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models import Network
from everynode.models.layer import brings
from everynode.models.names import MODELS, model_class

N, C = 20, 6
#: The networks whose layers bring derivatives. Autograd computes CVG for every other model.
WITH_DERIVATIVES = [
    name
    for name in MODELS
    if issubclass(network := model_class(name), Network) and brings(network.layer, "derivatives")
]


def make_graph(seed: int, *, weighted: bool = False, directed: bool = False) -> Graph:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, N - 2, (2, 40))  # two nodes are on their own
    weight = rng.uniform(0.2, 3.0, 40) if weighted else None
    return Graph.from_arrays(
        rng.normal(size=(N, 5)), edges, np.arange(N) % 3, edge_weight=weight, directed=directed
    ).to(torch.float64)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def close(ours: Tensor, theirs: Tensor) -> None:
    assert (ours > 0).any()
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
