"""Closed-form models: solved in stages, saved as buffers, refused for batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.closed_form import ClosedFormModel, hop_rows, sample_weight
from everynode.models.names import MODELS, model_class
from everynode.training.mini_batch.sampler import Sampler

CLOSED = [name for name in MODELS if issubclass(model_class(name), ClosedFormModel)]


class Majority(ClosedFormModel):
    """The most frequent class, and as many numbers as there are training nodes."""

    share: Tensor

    def __init__(self, num_features: int, num_classes: int):
        super().__init__(num_features, num_classes)
        self.learn("share", torch.zeros(num_classes))
        self.learn("seen", torch.empty(0, dtype=torch.int64))

    def solve(self, graph, train_nodes, *, seed=0, class_weight=None, stage=0):
        labels = graph.labels[train_nodes]
        self.learn("share", torch.bincount(labels, minlength=self.num_classes).to(graph.dtype))
        self.learn("seen", train_nodes)

    def logits(self, graph, nodes):
        logits = self.share.expand(graph.num_nodes, -1)
        return logits if nodes is None else logits[nodes]


def test_the_state_of_another_shape_is_loaded(random_graph) -> None:
    graph, model, other = random_graph(), Majority(5, 3).double(), Majority(5, 3).double()
    model.solve(graph, graph.nodes("train"))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(graph), model(graph))
    assert other.seen.dtype == torch.int64
    with pytest.raises(RuntimeError, match="seen"):
        other.load_state_dict({"share": torch.zeros(3)})


def test_rows_of_some_nodes(random_graph) -> None:
    graph, model = random_graph(), Majority(5, 3).double()
    model.solve(graph, graph.nodes("train"))
    mask = torch.arange(20) < 4
    assert model(graph, mask).shape == (4, 3)


def test_a_batch_is_refused(random_graph) -> None:
    batch = Sampler(random_graph()).batch(np.arange(3), [-1], np.random.default_rng(0))
    with pytest.raises(UsageError, match="Majority trains on the full graph only"):
        Majority(5, 3).double()(batch)


def test_weights_of_nodes_are_those_of_their_classes() -> None:
    labels = torch.tensor([1, 0, 1])
    assert sample_weight(labels, None).tolist() == [1, 1, 1]
    assert sample_weight(labels, torch.tensor([3.0, 0.5])).tolist() == [0.5, 3, 0.5]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("sparse", [False, True])
def test_only_training_labels_are_read(name: str, sparse: bool, random_graph) -> None:
    graph: Graph = random_graph(3, sparse=sparse)
    train = graph.nodes("train")
    hidden = torch.full_like(graph.labels, -1)
    hidden[train] = graph.labels[train]
    logits = []
    for labels in (graph.labels, hidden):
        model = model_class(name)(5, 3).double()
        model.solve(graph.with_labels(labels), train, stage=1)
        logits.append(model(graph))
    torch.testing.assert_close(*logits, rtol=0, atol=0)


@pytest.mark.parametrize("name", CLOSED)
def test_stages_in_any_order_give_one_solution(name: str, random_graph) -> None:
    graph: Graph = random_graph(4)
    train = graph.nodes("train")
    one, other = (model_class(name)(5, 3).double() for _ in range(2))
    for stage in range(one.num_stages):
        one.solve(graph, train, stage=stage)
    other.solve(graph, train, stage=one.num_stages - 1)
    torch.testing.assert_close(one(graph), other(graph), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", CLOSED)
def test_a_class_without_training_nodes_is_not_predicted(name: str, random_graph) -> None:
    graph: Graph = random_graph(5)
    train = graph.nodes("train")
    for absent in ([1], [0, 1]):
        rest = train[~torch.isin(graph.labels[train], torch.tensor(absent))]
        model = model_class(name)(5, 3).double()
        model.solve(graph, rest)
        predicted = model(graph)
        assert predicted.isfinite().all()
        others = [c for c in range(3) if c not in absent]
        assert (predicted[:, absent].amax(1) <= predicted[:, others].amax(1)).all()


@pytest.mark.parametrize("name", CLOSED)
def test_a_class_weight_moves_predictions(name: str, random_graph) -> None:
    graph: Graph = random_graph(6)
    share = []
    for weight in (None, torch.tensor([10.0, 0.1, 0.1])):
        model = model_class(name)(5, 3).double()
        model.solve(graph, graph.nodes("train"), class_weight=weight, stage=1)
        share.append(float(model(graph).softmax(1)[:, 0].mean()))
    assert share[1] > share[0]


@pytest.mark.parametrize("columns", [2, 16])
def test_hops_by_columns_are_those_of_the_matrix(random_graph, monkeypatch, columns) -> None:
    monkeypatch.setattr("everynode.models.closed_form.COLUMNS", columns)
    graph, nodes = random_graph(), torch.tensor([3, 0, 3])
    x, operator = graph.dense_features, graph.neighbor_operator
    dense = operator.to_dense()
    expected = torch.cat([x, dense @ x, dense @ dense @ x], dim=1)
    joined = hop_rows(x, operator, None, 2, torch.float64)
    torch.testing.assert_close(joined, expected.double())
    assert torch.equal(hop_rows(x, operator, nodes, 2, torch.float64), joined[nodes])


@pytest.mark.parametrize("name", CLOSED)
def test_blocks_of_rows_and_columns_change_nothing(random_graph, monkeypatch, name) -> None:
    graph = random_graph()
    expected = _solved(name, graph)
    monkeypatch.setattr("everynode.models.closed_form.COLUMNS", 2)
    monkeypatch.setattr("everynode.models.boosting.ROWS", 3)
    assert torch.equal(_solved(name, graph), expected)


def _solved(name: str, graph: Graph) -> Tensor:
    model = model_class(name)(graph.num_features, graph.num_classes).double()
    model.solve(graph, graph.nodes("train"))
    return model(graph)
