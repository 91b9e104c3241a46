"""The GCNII layer against PyG's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCN2Conv

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models import GCNII, GCNIILayer
from everynode.models.receptive_field import Hop
from everynode.settings import Settings

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
