"""The base class of models, through the smallest subclass."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.models import GCN, Model
from everynode.models.export import Portable
from everynode.models.model import node_indices


class Features(Model):
    def __init__(self, num_features: int, num_classes: int):
        super().__init__()
        self.num_features = num_features
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        self.check_graph(graph)
        logits = nn.functional.dropout(self.linear(graph.dense_features), 0.5, self.training)
        return logits if nodes is None else logits[node_indices(nodes, graph)]


def test_the_defaults_of_a_model() -> None:
    graph, model = generate(20, 40, 8, 3), Features(8, 3).train()
    assert model.num_hops is None
    assert {name: len(group) for name, group in model.parameter_groups().items()} == {"rest": 2}
    embedding = model.embed(graph)
    assert model.training
    assert torch.equal(embedding, model.eval()(graph))
    model.clear_cache()


def test_a_model_without_export_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^Features cannot be exported: only networks whose"):
        Portable([Features(8, 3)])


def test_a_graph_of_another_kind_is_refused() -> None:
    model = Features(8, 3)
    with pytest.raises(DataError, match=r"made for 8 features a node, but graph .* has 9"):
        model(generate(20, 40, 9, 3))
    with pytest.raises(DataError, match=r"is torch.float32, but graph .* is torch.float64"):
        model(generate(20, 40, 8, 3).to(torch.float64))


def test_masks_become_indices() -> None:
    graph = generate(20, 40, 8, 3)
    mask = torch.arange(20) % 3 == 0
    assert torch.equal(node_indices(mask, graph), mask.nonzero()[:, 0])
    indices = torch.tensor([4, 2])
    assert node_indices(indices, graph) is indices
    for wrong in (torch.ones(20), torch.ones(19, dtype=torch.bool), torch.zeros(2, 2).long()):
        with pytest.raises(UsageError, match="Got"):
            node_indices(wrong, graph)


def test_the_paper_network_is_a_model() -> None:
    model = GCN(8, 3, num_layers=4)
    assert isinstance(model, Model)
    assert model.num_hops == 4
