"""DropEdge: the operator of fewer arcs, in training only."""

from __future__ import annotations

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.graph.drop_edge import drop_edges
from everynode.models import Model
from everynode.settings import Settings
from everynode.training import train
from everynode.training.full_batch import WholeGraph


def test_the_operator_is_that_of_the_arcs_that_are_left() -> None:
    graph = generate(30, 90, 8, 3).to(torch.float64)
    torch.manual_seed(1)
    thinned = drop_edges(graph, 0.4)
    arcs = thinned.edge_index.T.tolist()
    number = graph.edge_index.shape[1]
    assert len(arcs) == number - int(0.4 * number) < number
    assert {tuple(arc) for arc in arcs} < {tuple(arc) for arc in graph.edge_index.T.tolist()}
    matrix = torch.eye(30, dtype=torch.float64)
    for source, target in arcs:
        matrix[target, source] = 1
    scale = matrix.sum(1).rsqrt()
    expected = scale[:, None] * matrix * scale
    torch.testing.assert_close(thinned.gcn_operator.to_dense(), expected)


def test_each_draw_is_another_and_each_arc_is_drawn_alike() -> None:
    graph = generate(20, 40, 8, 3)
    torch.manual_seed(1)
    count = torch.zeros(20, 20)
    for _ in range(400):
        source, target = drop_edges(graph, 0.25).edge_index
        count[source, target] += 1
    source, target = graph.edge_index
    assert (count[source, target] / 400 - 0.75).abs().max() < 0.12
    assert count.sum() == 400 * (len(source) - len(source) // 4)


def test_weights_and_features_follow() -> None:
    graph = generate(20, 40, 8, 3)
    features = graph.normalized_features
    thinned = drop_edges(graph, 0.5)
    assert thinned.normalized_features is features
    assert thinned.gcn_operator is not graph.gcn_operator


def test_every_pass_of_training_sees_other_edges_and_evaluation_sees_all(monkeypatch) -> None:
    graph = generate(60, 120, 8, 3)
    seen: list[tuple[bool, int]] = []
    check = Model.check_graph

    def watch(self, other) -> None:
        seen.append((self.training, other.edge_index.shape[1]))
        check(self, other)

    monkeypatch.setattr(Model, "check_graph", watch)
    settings = Settings(backbone="plain_gcn", drop_edge=0.3, consistency=1.0)
    runner = WholeGraph(graph, settings.for_objective("consistency"), fold=0, seed=0, watch=None)
    runner.advance(0)
    runner.validate()
    number = graph.edge_index.shape[1]
    thinned = number - int(0.3 * number)
    assert seen == [(True, thinned), (True, thinned), (False, number)]


@pytest.mark.parametrize("backbone", ["gcn", "jknet", "plain_gcn"])
def test_it_trains_with_every_term(backbone: str) -> None:
    settings = Settings.preset(backbone=backbone, epochs=20, drop_edge=0.5).for_objective("enc")
    assert train(generate(120, 400, 8, 3), settings).metrics["val_accuracy"] > 0.5


def test_mini_batches_are_refused() -> None:
    with pytest.raises(UsageError, match="drop_edge=0"):
        train(generate(60, 120, 8, 3), Settings(drop_edge=0.5), batches=Batches(20))
