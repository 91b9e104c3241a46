"""GCN-LPA's label loss against loops written from its equation."""

from __future__ import annotations

import math

import pytest
import torch

from everynode import ENC
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.gcn_lpa import GCNLPA
from everynode.models.plain_gcn import PlainGCN
from everynode.objectives.label_loss import LabelLoss


def setup(graph):
    model = GCNLPA(8, 3, hidden_channels=4)
    model.prepare(graph)
    model = model.double().train()
    with torch.no_grad():
        model.edge_scores.normal_()
    return model


@pytest.mark.parametrize("steps", [1, 4])
def test_it_is_the_equation(steps: int) -> None:
    graph = generate(30, 60, 8, 3).to(torch.float64)
    model = setup(graph)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[LabelLoss(2.0, steps=steps)])
    pattern = graph.looped_adjacency.pattern
    weight = torch.zeros(30, 30, dtype=torch.float64)
    scores = model.edge_scores.tolist()
    for i, j, a in zip(pattern.row.tolist(), pattern.column.tolist(), scores, strict=True):
        weight[i, j] = math.exp(a)
    weight = weight / weight.sum(1, keepdim=True)
    nodes = graph.nodes("train").tolist()
    y = [[1 / 3] * 3 for _ in range(30)]
    for i in nodes:
        y[i] = [float(s == graph.labels[i]) for s in range(3)]
    for _ in range(steps):
        y = [
            [sum(float(weight[i, j]) * y[j][s] for j in range(30)) for s in range(3)]
            for i in range(30)
        ]
    expected = -sum(math.log(y[i][int(graph.labels[i])]) for i in nodes) / len(nodes)
    values = objective.breakdown(model(graph), model)
    assert values["lpa"].item() == pytest.approx(expected, rel=1e-9)
    assert values["total"].item() == pytest.approx(values["ce"].item() + 2 * expected)
    values["lpa"].backward()
    assert model.edge_scores.grad.abs().sum() > 0
    assert all(one.grad is None for one in model.weights)


def test_the_labels_of_other_nodes_are_not_read() -> None:
    graph = generate(30, 60, 8, 3).to(torch.float64)
    model = setup(graph).eval()
    labels = graph.labels.clone()
    nodes = torch.cat([graph.nodes("val"), graph.nodes("test")])
    labels[nodes] = (labels[nodes] + 1) % 3
    one, other = (
        ENC(g, mi=0, tv=0, cvg=0, terms=[LabelLoss()]).breakdown(model(g), model)["lpa"]
        for g in (graph, graph.with_labels(labels, graph.classes))
    )
    assert torch.equal(one, other)


def test_its_limits() -> None:
    graph, other = generate(30, 60, 8, 3), PlainGCN(8, 3)
    with pytest.raises(UsageError, match="choose the model gcn_lpa"):
        ENC(graph, mi=0, tv=0, cvg=0, terms=[LabelLoss()])(other(graph), other)
    with pytest.raises(UsageError, match="steps"):
        LabelLoss(steps=0)
