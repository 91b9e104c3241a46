"""PTA's loss and its propagated labels against loops written from the equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from everynode import ENC, Graph
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.objectives.soft_labels import SoftLabels, propagated_labels, soft_labels
from everynode.settings import Settings
from everynode.training import train


@pytest.mark.parametrize("epoch", [None, 0, 70])
def test_it_is_the_equation(epoch: int | None) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(6, 3))).requires_grad_()
    targets = torch.from_numpy(rng.random((6, 3)))
    gamma = math.log(1 + (epoch or 0) / 50)
    y = logits.softmax(1).tolist()
    value, gradient = 0.0, torch.zeros(6, 3, dtype=torch.float64)
    for i in range(6):
        weight = [float(targets[i, s]) * y[i][s] ** gamma for s in range(3)]
        for s in range(3):
            value -= weight[s] * math.log(y[i][s]) / 3
            gradient[i, s] = (y[i][s] * sum(weight) - weight[s]) / 3
    loss = soft_labels(logits, targets, epoch=epoch, ramp=50)
    assert loss.item() == pytest.approx(value, rel=1e-12)
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], gradient)


def test_the_labels_are_propagated_and_those_of_training_nodes_stay() -> None:
    graph = generate(30, 60, 8, 3).to(torch.float64)
    nodes = graph.nodes("train")
    matrix = graph.gcn_operator.to_dense()
    start = torch.zeros(30, 3, dtype=torch.float64)
    for i in nodes.tolist():
        start[i, graph.labels[i]] = 1
    y = start
    for _ in range(4):
        y = matrix @ y
        for i in nodes.tolist():
            y[i] = start[i]
        y = 0.7 * y + 0.3 * start
    torch.testing.assert_close(propagated_labels(graph, nodes, alpha=0.3, steps=4), y)


def test_the_term_counts_the_epochs() -> None:
    graph = generate(30, 60, 8, 3)
    logits, term = torch.randn(30, 3), SoftLabels(weight=0.5)
    objective = ENC(graph, ce=0, mi=0, tv=0, cvg=0, terms=[term])
    for epoch in (0, 200):
        objective.epoch = epoch
        values = objective.breakdown(logits)
        expected = soft_labels(logits, term.targets, epoch=epoch)
        torch.testing.assert_close(values["soft_labels"], expected)
        torch.testing.assert_close(values["total"], 0.5 * expected)
    torch.testing.assert_close(
        term(logits, objective._everything), soft_labels(logits, term.targets)
    )


def test_the_labels_of_test_nodes_are_not_read() -> None:
    graph = generate(30, 60, 8, 3)
    labels = graph.labels.clone()
    labels[graph.nodes("test")] = (labels[graph.nodes("test")] + 1) % 3
    one, other = (
        SoftLabels().bind(g).targets for g in (graph, graph.with_labels(labels, graph.classes))
    )
    assert torch.equal(one, other)


def test_mini_batches_are_refused() -> None:
    settings = Settings(soft_labels=0.5).for_objective("soft_labels")
    with pytest.raises(UsageError, match="needs the predictions of every node"):
        train(generate(60, 120, 8, 3), settings, batches=Batches(20))


@pytest.mark.parametrize("wrong", [{"alpha": 2.0}, {"steps": -1}, {"ramp": 0}])
def test_its_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        SoftLabels(**wrong)


def test_an_isolated_node_has_no_soft_label() -> None:
    graph = Graph.from_arrays(torch.eye(3), [[0], [1]], [0, 1, 0], splits=[([0], [1], [2])])
    targets = SoftLabels().bind(graph).targets
    assert targets[2].sum() == 0
    assert targets[1, 0] > 0
