"""Logits layer by layer, or by batches, are those of the full graph."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN as PyGGCN

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models import Model, PyGModel
from everynode.models.model import input_features
from everynode.models.names import model_class
from everynode.models.receptive_field import Batch, Hop
from everynode.settings import Settings
from everynode.training.mini_batch import inference as module
from everynode.training.mini_batch.inference import infer, logits

GRAPH = generate(60, 150, 8, 3)
NODES = torch.tensor([50, 3, 3, 17])


class TwoHops(Model):
    """A model of another kind that takes sampled batches."""

    num_hops = 2

    def __init__(self, num_features: int, num_classes: int):
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        x = input_features(graph, False)
        logits = self.linear(x if isinstance(x, Tensor) else x.to_dense())
        hops = [Hop(graph)] * 2 if isinstance(graph, Graph) else graph.hops
        for hop in hops:
            logits = hop.gcn_operator @ logits
        return logits if nodes is None else logits[nodes]


@pytest.mark.parametrize("block", [2, 16384])
@pytest.mark.parametrize(
    "kind", ["gcn", "gat", "gcnii", "sage", "resgcn", "mlp", "gprgnn", "two hops", "pyg"]
)
def test_the_logits_are_those_of_the_full_graph(kind: str, block: int) -> None:
    if kind == "two hops":
        model = TwoHops(8, 3)
    elif kind == "pyg":
        model = PyGModel(PyGGCN(8, 16, num_layers=2, out_channels=3))
    else:
        model = model_class(kind)(8, 3, hidden_channels=16)
    with torch.no_grad():
        expected = model.eval()(GRAPH)[NODES]
    torch.testing.assert_close(infer(model, GRAPH, NODES, block=block), expected)


def test_a_full_batch_model_refuses_mini_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from everynode.models import build
    from everynode.training import train

    monkeypatch.setattr(build, "model_class", lambda _: PyGGCN)
    with pytest.raises(UsageError, match=r"trains on the full graph only: leave out --batch-size"):
        train(GRAPH, Settings(epochs=1), batches=Batches(16))


def test_a_model_with_hops_trains_in_mini_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from everynode.models import build
    from everynode.training import train

    monkeypatch.setattr(build, "model_class", lambda _: TwoHops)
    result = train(GRAPH, Settings(epochs=2, cvg=0.1), batches=Batches(16, (3,)))
    assert isinstance(result.network, TwoHops)


@pytest.mark.parametrize("nodes", [None, NODES, torch.arange(60) % 2 == 0])
def test_prediction_takes_blocks_where_a_layer_is_large(monkeypatch, nodes):
    model = model_class("sage")(8, 3, hidden_channels=16).eval()
    expected = logits(model, GRAPH, nodes)
    calls = []

    def spy(*args: object, block: int) -> Tensor:
        calls.append(block)
        return infer(*args, block=block)

    monkeypatch.setattr(module, "infer", spy)
    logits(model, GRAPH, nodes)
    assert calls == []
    monkeypatch.setattr(module, "LARGE_LAYER", 100)
    torch.testing.assert_close(logits(model, GRAPH, nodes), expected)
    model.block = 7
    torch.testing.assert_close(logits(model, GRAPH, nodes), expected)
    model.block = 0
    assert torch.equal(logits(model, GRAPH, nodes), expected)
    assert calls == [module.BLOCK, 7]


def test_directions_and_models_without_hops_are_computed_at_once(monkeypatch):
    monkeypatch.setattr(module, "infer", None)
    monkeypatch.setattr(module, "LARGE_LAYER", 0)
    arcs = Graph.from_arrays(GRAPH.features, GRAPH.edges, GRAPH.labels, directed=True)
    model = model_class("gcn")(8, 3).eval()
    with torch.no_grad():
        assert torch.equal(logits(model, arcs), model(arcs))
        model = model_class("appnp")(8, 3).eval()
        assert torch.equal(logits(model, GRAPH), model(GRAPH))
