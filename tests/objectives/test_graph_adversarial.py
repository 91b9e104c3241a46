"""Graph adversarial training against its equation, with gradients by loops of differences."""

from __future__ import annotations

import math

import pytest
import torch

from everynode import ENC, Graph
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.graph.sample import Sample
from everynode.models.gcn import GCN
from everynode.models.plain_gcn import PlainGCN
from everynode.objectives.graph_adversarial import GraphAdversarial
from everynode.objectives.term import Step


def test_it_is_the_equation(monkeypatch) -> None:
    graph = generate(12, 20, 4, 3).to(torch.float64)
    torch.manual_seed(0)
    model = PlainGCN(4, 3, hidden_channels=32, dropout=0.0, layer_dropout=0.0).double().train()
    with torch.no_grad():  # a bias of 0 puts empty rows on the kink of ReLU
        model.layers[0].bias.normal_()
    term = GraphAdversarial(0.5, epsilon=0.4, neighbors=2)
    drawn = term.draw(graph)
    monkeypatch.setattr(term, "draw", lambda _: drawn)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[term])
    x = graph.dense_features

    def said(moved: torch.Tensor) -> list[list[float]]:
        with torch.no_grad():
            return model(graph.with_features(moved)).softmax(1).tolist()

    clean = said(x)

    def away(moved: torch.Tensor) -> float:
        y, total = said(moved), 0.0
        for nodes in drawn.tolist():
            for i, j in enumerate(nodes):
                pairs = zip(clean[j], y[i], strict=True)
                total += sum(p * math.log(p / q) for p, q in pairs)
        return total

    g = torch.zeros_like(x)
    for i in range(12):
        for s in range(4):
            step = torch.zeros_like(x)
            step[i, s] = 1e-5
            g[i, s] = (away(x + step) - away(x - step)) / 2e-5
    size = g.norm(dim=1, keepdim=True)  # 0 for a node that is its own neighbor
    expected = away(x + torch.where(size > 1e-8, 0.4 * g / size, 0.0)) / 24
    values = objective.breakdown(model(graph), model)
    assert values["graph_adversarial"].item() == pytest.approx(expected, rel=1e-5)
    values["graph_adversarial"].backward()
    assert model.layers[0].weight.grad.abs().sum() > 0


def test_no_gradient_flows_through_the_neighbors_and_the_step() -> None:
    graph = generate(12, 20, 4, 3).to(torch.float64)
    model = PlainGCN(4, 3, hidden_channels=32, dropout=0.0, layer_dropout=0.0).double().train()
    logits = model(graph).detach().requires_grad_()
    term = GraphAdversarial()
    value = term.evaluate(Step([logits], Sample.of_graph(graph, 0), model))
    assert torch.autograd.grad(value, logits, allow_unused=True) == (None,)


def test_neighbors_are_drawn_alike() -> None:
    star = Graph.from_arrays(torch.eye(5), [[0, 0, 0], [1, 2, 3]], [0, 1, 0, 1, 0])
    term = GraphAdversarial(neighbors=3)
    torch.manual_seed(0)
    drawn = torch.cat([term.draw(star) for _ in range(1000)])
    share = torch.bincount(drawn[:, 0], minlength=5) / len(drawn)
    torch.testing.assert_close(share, torch.tensor([0, 1, 1, 1, 0]) / 3, atol=0.03, rtol=0)
    assert (drawn[:, 1:4] == 0).all()
    assert (drawn[:, 4] == 4).all(), "a node without neighbors is its own"


def test_its_limits() -> None:
    graph, model = generate(12, 20, 4, 3), GCN(4, 3)
    with pytest.raises(UsageError, match="choose plain_gcn, or set graph_adversarial to 0"):
        ENC(graph, mi=0, tv=0, cvg=0, terms=[GraphAdversarial()])(model(graph), model)
    for wrong in ({"epsilon": 0.0}, {"neighbors": 0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            GraphAdversarial(**wrong)
