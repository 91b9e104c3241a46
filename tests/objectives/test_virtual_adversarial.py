"""Virtual adversarial training against its equation, with gradients by loops of differences."""

from __future__ import annotations

import math

import pytest
import torch

from everynode import ENC
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.gcn import GCN
from everynode.models.plain_gcn import PlainGCN
from everynode.objectives.virtual_adversarial import VirtualAdversarial, divergence
from everynode.settings import Settings
from everynode.training import train


def setup():
    graph = generate(12, 20, 4, 3).to(torch.float64)
    torch.manual_seed(0)
    options = {"hidden_channels": 32, "dropout": 0.0, "layer_dropout": 0.0}
    options |= {"normalize_features": True}
    model = PlainGCN(4, 3, **options).double().train()
    with torch.no_grad():  # a bias of 0 puts empty rows on the kink of ReLU
        model.layers[0].bias.normal_()
    return graph, model


def kl(a: list[float], b: list[float]) -> float:
    return sum(p * math.log(p / q) for p, q in zip(a, b, strict=True))


def said(model, graph, x: torch.Tensor) -> list[list[float]]:
    """The probabilities for features that are not normalized again."""
    with torch.no_grad():
        return model.compute(x, model.hops_of(graph)).softmax(1).tolist()


def rows(x: torch.Tensor) -> torch.Tensor:
    total = x.abs().sum(1, keepdim=True)
    return x / torch.where(total > 0, total, 1.0)


def steepest(away, x: torch.Tensor, epsilon: float) -> torch.Tensor:
    """The step of each row along the gradient of a function, by central differences."""
    g = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for s in range(x.shape[1]):
            step = torch.zeros_like(x)
            step[i, s] = 1e-5
            g[i, s] = (away(x + step) - away(x - step)) / 2e-5
    size = g.norm(dim=1, keepdim=True)
    return torch.where(size > 1e-8, epsilon * g / size, 0.0)  # below it: rounding


def test_it_is_the_equation(monkeypatch) -> None:
    graph, model = setup()
    x, drawn = rows(graph.dense_features), torch.randn(12, 4).double()
    monkeypatch.setattr(torch, "randn_like", lambda like: drawn.clone())
    term = VirtualAdversarial(0.5, epsilon=0.7, xi=0.3)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[term])
    before = said(model, graph, x)
    start = x + 0.3 * drawn / drawn.norm(dim=1, keepdim=True)

    def away(moved: torch.Tensor) -> float:
        return sum(map(kl, before, said(model, graph, moved)))

    expected = away(x + steepest(away, start, 0.7)) / 12
    values = objective.breakdown(model(graph), model)
    assert values["vat"].item() == pytest.approx(expected, rel=1e-5)
    assert values["total"].item() == pytest.approx(values["ce"].item() + 0.5 * expected, rel=1e-5)


def test_no_gradient_flows_through_the_clean_prediction_and_the_step(monkeypatch) -> None:
    graph, model = setup()
    drawn = torch.randn(12, 4).double()
    monkeypatch.setattr(torch, "randn_like", lambda like: drawn.clone())
    term = VirtualAdversarial(epsilon=0.7, xi=0.3)
    objective = ENC(graph, ce=0.0, mi=0, tv=0, cvg=0, terms=[term])
    weight = model.layers[0].weight
    gradient = torch.autograd.grad(objective(model(graph), model), weight)[0]
    before = said(model, graph, rows(graph.dense_features))
    d = 0.3 * drawn / drawn.norm(dim=1, keepdim=True)
    d.requires_grad_()
    x = rows(graph.dense_features)
    y = torch.tensor(before).double()
    z = model.compute(x + d, model.hops_of(graph))
    away = (y * (y.log() - z.log_softmax(1))).sum()
    g = torch.autograd.grad(away, d)[0]
    step = (0.7 * g / g.norm(dim=1, keepdim=True)).detach()
    z = model.compute(x + step, model.hops_of(graph))
    expected = torch.autograd.grad((y * (y.log() - z.log_softmax(1))).sum() / 12, weight)[0]
    torch.testing.assert_close(gradient, expected)


def test_divergence_is_the_loop_and_finite_for_confident_rows() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    pairs = zip(a.softmax(1).tolist(), b.softmax(1).tolist(), strict=True)
    torch.testing.assert_close(
        divergence(a, b), torch.tensor([kl(p, q) for p, q in pairs]).double()
    )
    sure = torch.tensor([[1000.0, 0.0]])
    assert divergence(sure, -sure).isfinite().all()


def test_it_trains_on_sparse_features() -> None:
    graph = generate(40, 80, 8, 3)
    settings = Settings(backbone="plain_gcn", epochs=3, vat=0.5, normalize_features=True)
    result = train(graph, settings.for_objective("vat"))
    assert len(result.history["vat"]) == 3
    assert all(value >= 0 for value in result.history["vat"])


def test_its_limits() -> None:
    graph, _ = setup()
    model = GCN(4, 3).double()
    with pytest.raises(UsageError, match="choose plain_gcn, or set vat to 0"):
        ENC(graph, mi=0, tv=0, cvg=0, terms=[VirtualAdversarial()])(model(graph), model)
    for wrong in ({"epsilon": 0.0}, {"xi": 0.0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            VirtualAdversarial(**wrong)
