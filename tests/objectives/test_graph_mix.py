"""GraphMix's loss against loops written from its equation."""

from __future__ import annotations

import math

import pytest
import torch

from everynode import ENC
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.graphmix import GraphMix
from everynode.models.plain_gcn import PlainGCN
from everynode.objectives import graph_mix
from everynode.objectives.graph_mix import GraphMixLoss, binary_cross_entropy
from everynode.settings import Settings
from everynode.training import train


def test_binary_cross_entropy_is_that_of_torch() -> None:
    torch.manual_seed(0)
    logits = 4 * torch.randn(5, 3, dtype=torch.float64)
    logits[0] = torch.tensor([900.0, 0.0, 0.0])
    targets = torch.rand(5, 3, dtype=torch.float64)
    targets[0] = torch.tensor([1.0, 0.0, 0.0])
    expected = torch.nn.functional.binary_cross_entropy(logits.softmax(1), targets)
    torch.testing.assert_close(binary_cross_entropy(logits, targets), expected)
    wrong = torch.tensor([[900.0, 0.0]], requires_grad=True)
    loss = binary_cross_entropy(wrong, torch.tensor([[0.0, 1.0]]))
    assert torch.isfinite(torch.autograd.grad(loss, wrong)[0]).all()


class Script:
    """Answers in place of the random draws, in the order in which the term asks."""

    def __init__(self, monkeypatch, coin: float, shares: list[float]):
        self.shares, self.orders, self.chosen = list(shares), [], []
        monkeypatch.setattr(graph_mix.torch, "rand", lambda *_: torch.tensor(coin))
        permute, draw = torch.randperm, torch.randint
        monkeypatch.setattr(graph_mix, "Beta", lambda a, b: self)
        monkeypatch.setattr(
            graph_mix.torch, "randperm", lambda n, **_: self.keep(self.orders, permute(n))
        )
        monkeypatch.setattr(
            graph_mix.torch, "randint", lambda n, size: self.keep(self.chosen, draw(n, size))
        )

    def sample(self) -> float:
        return self.shares.pop(0)

    @staticmethod
    def keep(where: list, value):
        where.append(value)
        return value


def setup(**options):
    graph = generate(30, 60, 8, 3).to(torch.float64)
    settings = {"hidden_channels": 4, "dropout": 0.0, "layer_dropout": 0.0}
    model = GraphMix(8, 3, **settings).double().train()
    term = GraphMixLoss(**options)
    return graph, model, term, ENC(graph, ce=0, mi=0, tv=0, cvg=0, terms=[term])


def test_heads_is_the_mixture_with_sharpened_targets(monkeypatch) -> None:
    graph, model, _, objective = setup(unlabeled=2.0, temperature=0.4, start=10, end=20)
    script = Script(monkeypatch, 0.7, [0.3, 0.8])
    objective.epoch = 15
    value = objective.breakdown(model(graph), model)["graphmix"].item()
    nodes, y = graph.nodes("train").tolist(), graph.labels.tolist()
    first, second = model.layers
    hidden = torch.relu(graph.dense_features @ first.weight + first.bias)
    said = model(graph).softmax(1).tolist()  # without dropout, all passes are equal
    sharp = [[v ** (1 / 0.4) for v in row] for row in said]

    def loss(members: list[int], target: list[list[float]], order, share: float) -> float:
        total = 0.0
        for i, j in enumerate(order.tolist()):
            h = share * hidden[members[i]] + (1 - share) * hidden[members[j]]
            out = (h @ second.weight + second.bias).softmax(0).tolist()
            for s in range(3):
                t = share * target[i][s] + (1 - share) * target[j][s]
                total -= t * math.log(out[s]) + (1 - t) * math.log(1 - out[s])
        return total / (3 * len(members))

    labeled = [[float(y[i] == s) for s in range(3)] for i in nodes]
    expected = loss(nodes, labeled, script.orders[0], 0.3)
    rest = [i for i in range(30) if i not in nodes]
    chosen = [rest[place] for place in script.chosen[0].tolist()]
    assert len(chosen) == len(nodes)
    targets = [[v / sum(sharp[i]) for v in sharp[i]] for i in chosen]
    weight = 2.0 * math.exp(-5 * 0.5**2)
    expected += weight * loss(chosen, targets, script.orders[1], 0.8)
    assert value == pytest.approx(expected, rel=1e-9)


def test_tails_is_the_cross_entropy_of_the_gcn(monkeypatch) -> None:
    graph, model, _, objective = setup()
    monkeypatch.setattr(graph_mix.torch, "rand", lambda *_: torch.tensor(0.2))
    logits = model(graph)
    nodes = graph.nodes("train")
    expected = torch.nn.functional.cross_entropy(logits[nodes], graph.labels[nodes])
    torch.testing.assert_close(objective.breakdown(logits, model)["graphmix"], expected)


def test_the_coin_is_fair() -> None:
    graph, model, _, objective = setup(unlabeled=0.0)
    torch.manual_seed(0)
    logits = model(graph)
    tails = objective.breakdown(logits, model)["graphmix"]
    nodes = graph.nodes("train")
    ce = torch.nn.functional.cross_entropy(logits[nodes], graph.labels[nodes])
    values = [objective.breakdown(logits, model)["graphmix"] for _ in range(400)]
    same = sum(torch.isclose(value, ce).item() for value in [tails, *values]) / 401
    assert same == pytest.approx(0.5, abs=0.08)


def test_the_weight_of_unlabeled_nodes_grows() -> None:
    term = GraphMixLoss(unlabeled=10.0)
    assert [term.ramp(epoch) for epoch in (0, 499, 1000, 1999, None)] == [0, 0, 10, 10, 10]
    assert term.ramp(750) == pytest.approx(10 * math.exp(-1.25))


def test_targets_are_the_mean_of_passes_that_differ_and_carry_no_gradient() -> None:
    graph, model, term, _ = setup(temperature=1.0)
    model.dropout = 0.5
    torch.manual_seed(3)
    targets = term.targets(model, graph)
    torch.manual_seed(3)
    mean = sum(model(graph).softmax(1) for _ in range(10)) / 10
    torch.testing.assert_close(targets, mean)
    assert not targets.requires_grad


def test_the_labels_of_other_nodes_are_not_read(monkeypatch) -> None:
    graph, model, _, _ = setup()
    labels = graph.labels.clone()
    nodes = graph.nodes("test")
    labels[nodes] = (labels[nodes] + 1) % 3
    values = []
    for one in (graph, graph.with_labels(labels, graph.classes)):
        torch.manual_seed(0)
        objective = ENC(one, ce=0, mi=0, tv=0, cvg=0, terms=[GraphMixLoss()])
        values += [[objective.breakdown(model(one), model)["graphmix"] for _ in range(6)]]
    assert values[0] == values[1]


def test_its_limits() -> None:
    graph = generate(30, 60, 8, 3)
    other = PlainGCN(8, 3)
    with pytest.raises(UsageError, match="choose the model graphmix"):
        ENC(graph, mi=0, tv=0, cvg=0, terms=[GraphMixLoss()])(other(graph), other)
    for wrong in ({"temperature": 0.0}, {"unlabeled": -1.0}, {"passes_for_targets": 0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            GraphMixLoss(**wrong)
    settings = Settings(backbone="graphmix", graphmix=1.0).for_objective("graphmix")
    with pytest.raises(UsageError, match="full graph only"):
        train(graph, settings, batches=Batches(20))
