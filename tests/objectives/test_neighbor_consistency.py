"""Neighbor consistency against loops written from its equation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from everynode import ENC, Graph
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.objectives.neighbor_consistency import NeighborConsistency, neighbor_consistency
from everynode.settings import Settings
from everynode.training import train
from everynode.training.full_batch import build, step


def make(weighted: bool = False) -> Graph:
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 14) if weighted else None
    graph = Graph.from_arrays(
        rng.normal(size=(9, 4)), rng.integers(0, 8, (2, 14)), np.arange(9) % 3, edge_weight=weight,
        splits=[np.split(np.arange(9), [4, 6])],
    )  # fmt: skip
    return graph.to(torch.float64)


def loop(logits: torch.Tensor, graph: Graph, temperature: float) -> tuple[float, torch.Tensor]:
    """Value and gradient, number by number; the targets are constants."""
    n, k = logits.shape
    weight = [{i: 1.0} for i in range(n)]
    values = graph.edge_weight
    for e, (a, b) in enumerate(graph.edge_index.T.tolist()):
        weight[b][a] = 1.0 if values is None else float(values[e])
    y = logits.softmax(1).tolist()
    value, gradient = 0.0, torch.zeros(n, k, dtype=torch.float64)
    for i in range(n):
        total = sum(weight[i].values())
        mean = [sum(w * y[j][s] for j, w in weight[i].items()) / total for s in range(k)]
        sharp = [m ** (1 / temperature) for m in mean]
        target = [s / sum(sharp) for s in sharp]
        for j, w in weight[i].items():
            for s in range(k):
                value += w / total * target[s] * math.log(target[s] / y[j][s]) / n
                gradient[j, s] += w / total * (y[j][s] - target[s]) / n
    return value, gradient


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("temperature", [0.2, 0.5, 1.0])
def test_it_is_the_equation(weighted: bool, temperature: float) -> None:
    graph = make(weighted)
    logits = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    loss = neighbor_consistency(logits, graph, temperature=temperature)
    value, gradient = loop(logits, graph, temperature)
    assert loss.item() == pytest.approx(value, rel=1e-10)
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], gradient)


def test_the_neighbors_are_those_of_the_graph_that_the_pass_saw(monkeypatch) -> None:
    graph = generate(30, 60, 8, 3)
    settings = Settings(
        backbone="plain_gcn", neighbor_consistency=1.0, replace_edges=0.5, dropout=0.0,
        layer_dropout=0.0,
    ).for_objective("neighbor_consistency")  # fmt: skip
    network, objective, optimizer = build(graph, settings, fold=0, seed=0)
    seen = []
    forward = type(network).forward

    def watch(self, other, nodes=None):
        seen.append((other, forward(self, other, nodes)))
        return seen[-1][1]

    monkeypatch.setattr(type(network), "forward", watch)
    terms = step(network, objective, optimizer, graph, replace=0.5)
    ((other, logits),) = seen
    assert other is not graph
    expected = neighbor_consistency(logits, other).item()
    assert terms["neighbor_consistency"] == pytest.approx(expected)
    assert objective.graphs == ()


def test_two_passes_are_averaged_each_on_its_graph() -> None:
    one, other = make(), make().with_splits([np.split(np.arange(9), [4, 6])])
    objective = ENC(one, mi=0, tv=0, cvg=0, terms=[NeighborConsistency(temperature=0.3)])
    a, b = torch.randn(9, 3).double(), torch.randn(9, 3).double()
    objective.graphs = [one, other]
    value = objective.breakdown([a, b])["neighbor_consistency"]
    mean = sum(neighbor_consistency(z, g, temperature=0.3) for z, g in ((a, one), (b, other))) / 2
    torch.testing.assert_close(value, mean)


def test_confident_logits_stay_finite() -> None:
    logits = torch.tensor([[1000.0, 0.0, 0.0]] * 9).double().requires_grad_()
    loss = neighbor_consistency(logits, make(), temperature=0.1)
    assert math.isfinite(loss.item())
    assert torch.autograd.grad(loss, logits)[0].isfinite().all()


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="temperature"):
        NeighborConsistency(temperature=0.0)
    settings = Settings(neighbor_consistency=1.0).for_objective("neighbor_consistency")
    with pytest.raises(UsageError, match="needs the predictions of every node"):
        train(generate(60, 120, 8, 3), settings, batches=Batches(20))
