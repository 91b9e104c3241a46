"""The GAT layer against PyG's."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GATConv

from everynode.models import GATLayer
from everynode.models.receptive_field import Hop
from helpers.layers import C, N, close, make_graph, random


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gat_with_one_matrix_for_both(seed: int, directed: bool) -> None:
    graph = make_graph(seed, directed=directed)
    ours, theirs = GATLayer(C).double(), GATConv(C, C, heads=1, bias=False).double()
    f, weight, a = random(N, C), random(C, C, seed=1), random(2, C, seed=2)
    with torch.no_grad():
        ours.weight.copy_(weight)
        ours.attention_weight.copy_(weight)
        ours.a.copy_(a)
        theirs.lin.weight.copy_(weight.T)
        theirs.att_dst.copy_(a[0].view(1, 1, C))
        theirs.att_src.copy_(a[1].view(1, 1, C))
    close(ours(f, f, Hop(graph)), torch.relu(theirs(f, graph.edge_index)))


def test_gat_survives_scores_that_overflow_an_exponential() -> None:
    graph, layer = make_graph(0), GATLayer(C).double()
    with torch.no_grad():
        layer.a.mul_(1e5)
    f = random(N, C).requires_grad_()
    out = layer(f, f, Hop(graph))
    assert out.isfinite().all()
    assert torch.autograd.grad(out.sum(), f)[0].isfinite().all()
