"""Consistency against loops written from its equation, alone and within ENC."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import GCN

from everynode import ENC, Graph, UsageError
from everynode.graph import Split
from everynode.objectives import (
    Consistency,
    consistency,
    cross_entropy,
    mutual_information,
    total_variation,
)

N, K = 7, 3


def draw(views: int, seed: int = 0, scale: float = 2.0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [
        torch.from_numpy(scale * rng.normal(size=(N, K))).requires_grad_() for _ in range(views)
    ]


def loop(views: list[Tensor], temperature: float) -> tuple[float, list[list[list[float]]]]:
    """Value and gradient for the logits, number by number; the targets are constants."""
    said = [
        [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in view.tolist()]
        for view in views
    ]
    value, gradient = 0.0, [[[0.0] * K for _ in range(N)] for _ in views]
    for i in range(N):
        mean = [sum(y[i][s] for y in said) / len(views) for s in range(K)]
        sharp = [m ** (1 / temperature) for m in mean]
        target = [s / sum(sharp) for s in sharp]
        for v, y in enumerate(said):
            for s in range(K):
                value -= target[s] * math.log(y[i][s]) / (len(views) * N)
                gradient[v][i][s] = (y[i][s] - target[s]) / (len(views) * N)
    return value, gradient


@pytest.mark.parametrize("views", [2, 3, 5])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 2.0])
def test_it_is_the_equation(views, temperature):
    drawn = draw(views)
    found = consistency(drawn, temperature=temperature)
    value, gradient = loop(drawn, temperature)
    assert found.item() == pytest.approx(value, rel=1e-12)
    for got, expected in zip(torch.autograd.grad(found, drawn), gradient, strict=True):
        torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("views", [2, 4])
def test_the_squared_distance_is_grands_equation(views):
    drawn, temperature = draw(views), 0.5
    said = [view.softmax(1).tolist() for view in drawn]
    value = 0.0
    for i in range(N):
        mean = [sum(y[i][s] for y in said) / views for s in range(K)]
        sharp = [m ** (1 / temperature) for m in mean]
        target = [s / sum(sharp) for s in sharp]
        for y in said:
            value += sum((y[i][s] - target[s]) ** 2 for s in range(K)) / (views * N)
    found = consistency(drawn, temperature=temperature, distance="squared")
    assert found.item() == pytest.approx(value, rel=1e-12)


def test_the_number_of_passes_is_a_choice():
    with pytest.raises(UsageError, match="passes"):
        Consistency(passes=1)
    with pytest.raises(UsageError, match="distance"):
        Consistency(distance="cosine")
    assert Consistency(passes=4).passes == 4


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_passes_that_agree_are_left_with_the_entropy_and_with_nothing_to_learn_from_agreement(
    seed, views
):
    one = draw(1, seed)[0].detach()
    y = torch.softmax(one, 1)
    same = [one.clone().requires_grad_() for _ in range(views)]
    found = consistency(same, temperature=1.0)
    assert found.item() == pytest.approx(-(y * y.log()).sum(1).mean().item())
    assert all(gradient.abs().max() < 1e-12 for gradient in torch.autograd.grad(found, same))


@given(st.integers(0, 10_000), st.permutations(range(3)), st.permutations(range(K)))
def test_neither_the_order_of_passes_nor_of_classes_matters(seed, order, classes):
    views = draw(3, seed)
    other = [views[v][:, list(classes)] for v in order]
    assert consistency(other).item() == pytest.approx(consistency(views).item())


@given(st.integers(0, 10_000))
def test_a_step_along_its_gradient_brings_the_passes_together(seed):
    views = draw(2, seed)
    gradients = torch.autograd.grad(consistency(views, temperature=1.0), views)
    after = [view - 0.1 * N * gradient for view, gradient in zip(views, gradients, strict=True)]

    def apart(pair: list[Tensor]) -> float:
        a, b = (torch.softmax(view, 1) for view in pair)
        return (a - b).square().sum().item()

    assert apart(after) <= apart(views)


def test_predictions_that_are_quite_sure_stay_finite():
    views = [
        torch.tensor([[1000.0, 0.0], [0.0, 1000.0]], requires_grad=True),
        torch.tensor([[0.0, 1000.0], [0.0, 1000.0]], requires_grad=True),
    ]
    found = consistency(views, temperature=0.1)
    assert math.isfinite(found.item())
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(found, views))


@pytest.mark.parametrize(
    ("views", "got"),
    [
        ([], "none"), ([torch.zeros(2, 2)], "one"), (torch.zeros(5, 3), "one"),
        ([torch.zeros(2, 2), torch.zeros(3, 2)], r"\(2, 2\) and \(3, 2\)"),
    ],
)  # fmt: skip
def test_less_than_two_passes_are_refused(views, got):
    with pytest.raises(UsageError, match=f"logits of two in a tuple. Got {got}."):
        consistency(views)


def test_one_pass_twice_is_refused():
    view = draw(1)[0]
    with pytest.raises(UsageError, match="one pass twice"):
        consistency([view, view])


def test_the_temperature_is_above_zero():
    with pytest.raises(UsageError, match="temperature"):
        Consistency(temperature=0.0)
    with pytest.raises(UsageError, match="'ramp' of Consistency must be >= 0"):
        Consistency(ramp=-1)


# ---------------------------------------------------------------- within ENC


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(3)
    nodes = torch.arange(N)
    return Graph.from_arrays(
        rng.normal(size=(N, 4)).astype(np.float32), [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]], [0, 1, 2, 0, 1, 2, 0],
        splits=[Split(nodes[:4], nodes[4:6], nodes[6:])],
    )  # fmt: skip


def test_of_several_passes_the_other_terms_are_the_mean(graph):
    views = [view.detach().float() for view in draw(3)]
    found = ENC(
        graph, mi=0.7, tv=1.9, cvg=0.0, consistency=0.4, consistency_temperature=0.3, mi_lambda=0.5
    ).breakdown(views)
    mean = lambda term: torch.stack([term(view) for view in views]).mean()  # noqa: E731
    ce, mi, tv = (
        mean(lambda view: cross_entropy(view, graph.labels, graph.nodes("train"))),
        mean(lambda view: mutual_information(view, lam=0.5)),
        mean(lambda view: total_variation(view, graph)),
    )
    agreement = consistency(views, temperature=0.3)
    expected = {
        "ce": ce,
        "mi": mi,
        "tv": tv,
        "consistency": agreement,
        "total": ce + 0.7 * mi + 1.9 * tv + 0.4 * agreement,
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)


def test_in_somebodys_own_loop(graph):
    """Two passes of any model, CVG being that of the second."""
    torch.manual_seed(0)
    data = graph.to_pyg()
    model = GCN(4, 8, num_layers=2, out_channels=K, dropout=0.5)
    objective = ENC(graph, mi=0.1, tv=0.1, cvg=0.1, consistency=1.0, seed=5)
    first, second = model(data.x, data.edge_index), model(data.x, data.edge_index)
    assert not torch.equal(first, second), "dropout differs"
    found = objective.breakdown((first, second), model)
    alone = ENC(graph, mi=0.1, tv=0.1, cvg=0.1, seed=5).breakdown(second, model)
    torch.testing.assert_close(found["cvg"], alone["cvg"])
    parameters = list(model.parameters())
    whole = torch.autograd.grad(found["total"], parameters, retain_graph=True)
    parts = [weight * found[name] for name, weight in objective.weights.items() if name in found]
    assert len(parts) == 5
    for got, *of in zip(
        whole,
        *(torch.autograd.grad(part, parameters, retain_graph=True) for part in parts),
        strict=True,
    ):
        torch.testing.assert_close(got, sum(of))


def test_how_many_passes_a_step_takes(graph):
    assert (ENC(graph).passes, ENC(graph, consistency=0.1).passes) == (1, 2)


def test_one_pass_in_a_list_is_that_pass(graph):
    logits = draw(1)[0].float()
    objective = ENC(graph, cvg=0.0)
    one, other = objective.breakdown(logits), objective.breakdown([logits])
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("logits", "says"),
    [([], "at least one pass"), ([torch.zeros(N, K), torch.zeros(N, 2)], "7 x 3. Got 7 x 2")],
)
def test_passes_that_are_none_are_refused(graph, logits, says):
    with pytest.raises(UsageError, match=says):
        ENC(graph)(logits)


def test_the_weight_grows_over_the_ramp() -> None:
    nodes = torch.arange(N)
    split = Split(nodes[:3], nodes[3:5], nodes[5:])
    graph = Graph.from_arrays(torch.eye(N), [[0, 1], [1, 2]], [0, 1, 2, 0, 1, 2, 0], splits=[split])
    objective = ENC(graph, mi=0, tv=0, cvg=0, consistency=2.0, consistency_ramp=4)
    views = [view.detach() for view in draw(2)]
    values = objective.breakdown(views)
    assert values["total"].item() == pytest.approx(float(values["ce"] + 2 * values["consistency"]))
    for epoch, weight in ((0, 0.0), (1, 0.5), (4, 2.0), (9, 2.0)):
        objective.epoch = epoch
        assert objective.current_weights() == {"ce": 1.0, "consistency": weight}
        values = objective.breakdown(views)
        expected = float(values["ce"] + weight * values["consistency"])
        assert values["total"].item() == pytest.approx(expected)
