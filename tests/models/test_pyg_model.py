"""Modules on PyG's (x, edge_index) as models, against calling them directly."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN as PyGGCN
from torch_geometric.nn import GCNConv, GraphSAGE

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.models.export import Portable
from everynode.models.pyg_model import PyGModel
from everynode.models.receptive_field import Batch
from everynode.objectives import ENC


def make(*, weighted: bool = False, directed: bool = False, sparse: bool = False) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.random((20, 6)) * (rng.random((20, 6)) < (0.2 if sparse else 1.0))
    weight = rng.uniform(0.2, 3.0, 40) if weighted else None
    return Graph.from_arrays(
        x, rng.integers(0, 18, (2, 40)), np.arange(20) % 3, edge_weight=weight, directed=directed
    )


class Own(nn.Module):
    def __init__(self, required: bool = False):
        super().__init__()
        self.conv = GCNConv(6, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index, edge_weight)


class Weighted(Own):
    def forward(self, x: Tensor, edge_index: Tensor, w: Tensor) -> Tensor:
        assert w.shape == edge_index.shape[1:]
        return self.conv(x, edge_index, w)


MODULES = {
    "pyg": lambda: PyGGCN(6, 8, num_layers=2, out_channels=3, dropout=0.5),
    "own": Own,
    "weighted": Weighted,
}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("weighted", "directed"), [(False, False), (True, False), (True, True)])
def test_logits_are_those_of_the_module(
    module: str, sparse: bool, weighted: bool, directed: bool
) -> None:
    graph = make(weighted=weighted, directed=directed, sparse=sparse)
    inner = MODULES[module]()
    model = PyGModel(inner).eval()
    data = graph.to_pyg()
    args = (data.edge_weight,) if weighted else ()
    if module == "weighted" and not weighted:
        args = (torch.ones(data.edge_index.shape[1]),)
    expected = inner(data.x, data.edge_index, *args)
    torch.testing.assert_close(model(graph), expected)
    nodes = torch.tensor([3, 17])
    torch.testing.assert_close(model(graph, nodes), expected[nodes])
    mask = torch.arange(20) % 2 == 0
    torch.testing.assert_close(model(graph, mask), expected[mask])


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_normalized_on_request(sparse: bool) -> None:
    graph, inner = make(sparse=sparse), Own()
    data = graph.to_pyg()
    total = data.x.abs().sum(1, keepdim=True)
    x = data.x / torch.where(total > 0, total, 1.0)
    model = PyGModel(inner, normalize_features=True)
    torch.testing.assert_close(model(graph), inner(x, data.edge_index))


def test_one_group_with_all_parameters() -> None:
    model = PyGModel(Own())
    (group,) = model.parameter_groups().values()
    assert len(group) == len(list(model.parameters())) == 2
    assert model.num_hops is None


def test_weights_that_a_module_cannot_take_are_mentioned_once() -> None:
    class Blind(Own):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    for module in (Blind(), GraphSAGE(6, 8, num_layers=2, out_channels=3)):
        model = PyGModel(module)
        with pytest.warns(UserWarning, match="ignores the edge weights of graph 'graph'"):
            model(make(weighted=True))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model(make(weighted=True))


def test_refusals() -> None:
    class NoEdges(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(UsageError, match=r"NoEdges must take \(x, edge_index\)"):
        PyGModel(NoEdges())

    class TooMany(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, a: Tensor, b: Tensor) -> Tensor:
            return x

    with pytest.raises(UsageError, match=r"TooMany must take \(x, edge_index\)"):
        PyGModel(TooMany())
    with pytest.raises(UsageError, match=r"return logits of shape \(20, 3\). Got \(20, 5\)"):
        PyGModel(PyGGCN(6, 5, num_layers=2))(make())
    with pytest.raises(UsageError, match=r"^Own cannot be exported: "):
        Portable([PyGModel(Own())])
    with pytest.raises(UsageError, match=r"^Own trains on the full graph only"):
        PyGModel(Own())(Batch(torch.zeros(2, 6), (), "graph"))
    model = PyGModel(Own())
    model.num_features, model.num_classes = 7, 3
    with pytest.raises(DataError, match="made for 7 features"):
        model(make())


def test_it_trains_with_every_term() -> None:
    graph = generate(60, 150, 6, 3)
    model = PyGModel(PyGGCN(6, 8, num_layers=2, out_channels=3, dropout=0.5))
    objective = ENC(graph, mi=0.3, tv=0.5, cvg=0.1)
    loss = objective(model(graph), model)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
