"""The GCN layer against PyG's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv

from everynode.graph import Graph
from everynode.models import GCNLayer
from everynode.models.receptive_field import Hop

N, C = 20, 6


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


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_gcn(seed: int, weighted: bool, directed: bool) -> None:
    graph = make_graph(seed, weighted=weighted, directed=directed)
    ours, theirs = GCNLayer(C).double(), GCNConv(C, C, bias=False).double()
    f, weight = random(N, C), random(C, C, seed=1)
    with torch.no_grad():
        ours.weight.copy_(weight)
        theirs.lin.weight.copy_(weight.T)
    close(ours(f, f, Hop(graph)), torch.relu(theirs(f, graph.edge_index, graph.edge_weight)))
