"""The GCN layer against PyG's."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv

from everynode.models import GCNLayer
from everynode.models.receptive_field import Hop
from helpers.layers import C, N, close, make_graph, random


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
