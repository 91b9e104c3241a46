"""The GCNII layer against PyG's."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCN2Conv

from everynode.errors import UsageError
from everynode.models import GCNII, GCNIILayer
from everynode.models.receptive_field import Hop
from everynode.settings import Settings
from helpers.layers import C, N, close, make_graph, random


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("position", "alpha", "lam"), [(1, 0.1, 0.5), (5, 0.4, 1.5)])
def test_gcnii(seed: int, weighted: bool, position: int, alpha: float, lam: float) -> None:
    graph = make_graph(seed, weighted=weighted)
    ours = GCNIILayer(C, position=position, alpha=alpha, lam=lam).double()
    theirs = GCN2Conv(C, alpha=alpha, theta=lam, layer=position).double()
    f, f_0, weight = random(N, C), random(N, C, seed=2), random(C, C, seed=1)
    with torch.no_grad():
        ours.weight.copy_(weight)
        theirs.weight1.copy_(weight)
    close(ours(f, f_0, Hop(graph)), torch.relu(theirs(f, f_0, graph.edge_index, graph.edge_weight)))


@pytest.mark.parametrize("wrong", [{"gcnii_lambda": -2.0}, {"gcnii_alpha": 3.0}])
def test_gcnii_has_its_limits(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        GCNII(5, 3, **wrong)
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Settings(backbone="gcnii", **wrong)
