"""Balanced classes: cross-entropy and CVG against loops written from the definition, and all ways to compute them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from everynode import ENC, Graph, Split
from everynode.errors import UsageError
from everynode.graph.sample import Sample
from everynode.models.names import model_class
from everynode.objectives import CrossEntropy, CrossValidatingGradients
from everynode.objectives.cross_entropy import balanced
from everynode.objectives.fused import Fused, at_once, one_by_one
from everynode.objectives.mutual_information import MutualInformation
from everynode.objectives.total_variation import TotalVariation
from everynode.settings import Settings
from helpers.layers import WITH_DERIVATIVES

#: Twelve training nodes: eight, three and one of a class.
LABELS = [0] * 8 + [1] * 3 + [2] + [0, 1, 2, 0, 1, 2, -1, -1]


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    n, nodes = len(LABELS), torch.arange(len(LABELS))
    edges = rng.integers(0, n, (2, 40))
    split = Split(nodes[:12], nodes[12:18], nodes[18:])
    return Graph.from_arrays(
        rng.normal(size=(n, 5)), edges, LABELS, classes=[0, 1, 2], splits=[split]
    ).to(torch.float64)


@pytest.fixture
def logits(graph: Graph) -> torch.Tensor:
    values = torch.randn(
        graph.num_nodes, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    return values.requires_grad_()


def by_hand(logits: torch.Tensor, nodes: list[int]) -> float:
    """Every class weighs the same among the twelve training nodes: n / (k n_c)."""
    weight = {c: 12 / (3 * LABELS[:12].count(c)) for c in (0, 1, 2)}
    total = whole = 0.0
    for i in nodes:
        row = logits[i].tolist()
        whole += weight[LABELS[i]]
        total += weight[LABELS[i]] * (math.log(sum(math.exp(v) for v in row)) - row[LABELS[i]])
    return total / whole


def test_cross_entropy_against_a_loop(graph, logits):
    term, sample = CrossEntropy().bind(graph, class_weight="balanced"), Sample.of_graph(graph, 0)
    found = term(logits, sample).item()
    assert found == pytest.approx(by_hand(logits, list(range(12))), rel=1e-12)
    assert CrossEntropy().bind(graph)(logits, sample).item() != pytest.approx(found, rel=1e-3)
    assert term.class_weight[sample.labels].mean().item() == pytest.approx(1.0)


def loop(logits: torch.Tensor, nodes: range, weight: dict[int, float]) -> float:
    """The weighted mean, number by number; a class that is missing weighs 1."""
    total = whole = 0.0
    for i in nodes:
        row, w = logits[i].tolist(), weight.get(LABELS[i], 1.0)
        whole += w
        total += w * (math.log(sum(math.exp(v) for v in row)) - row[LABELS[i]])
    return total / whole


@pytest.mark.parametrize("weight", [{0: 1.0, 1: 2.5, 2: 7.0}, {1: 3.0}, {0: 0.0}, {}])
def test_a_weight_for_each_class_against_a_loop(graph, logits, weight):
    """As a dict, as pairs, and with the names as strings."""
    expected = loop(logits, range(12), weight)
    for given in (weight, tuple(weight.items()), {str(c): w for c, w in weight.items()}):
        found = ENC(graph, mi=0.7, tv=1.0, cvg=0.0, class_weight=given).breakdown(logits)
        assert found["ce"].item() == pytest.approx(expected, rel=1e-12)
        alone = ENC(graph, mi=0, tv=0, cvg=0, class_weight=given)(logits)
        assert alone.item() == pytest.approx(expected, rel=1e-12)
    settings = Settings(mi=0.0, tv=0.0, cvg=0.0, class_weight=weight)
    assert ENC.from_settings(graph, settings)(logits).item() == pytest.approx(expected, rel=1e-12)


def test_cvg_takes_the_same_class_weights(graph):
    model = torch.nn.Linear(5, 3, dtype=torch.float64)
    options = {"mi": 0, "tv": 0, "cvg": 1.0, "seed": 2}
    counts = [8, 3, 1]
    values = [
        ENC(graph, class_weight=weight, **options)(model(graph.dense_features), model).item()
        for weight in (None, "balanced", {c: 12 / (3 * n) for c, n in enumerate(counts)})
    ]
    assert values[1] == pytest.approx(values[2], rel=1e-12)
    assert values[0] != pytest.approx(values[1], rel=1e-3)


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ({"blue": 1.0}, "Unknown class 'blue'. Choose from: 0, 1, 2."),
        ({0: -1.0}, "The 'class_weight' of ENC must be finite numbers >= 0. Got -1.0."),
        ({0: 0, 1: 0, 2: 0}, "Every training node of fold 0 has class weight 0: give a class with training nodes a weight above 0."),
    ],
)  # fmt: skip
def test_class_weights_that_are_refused(graph, weight, sentence):
    with pytest.raises(UsageError) as refused:
        ENC(graph, class_weight=weight)
    assert str(refused.value) == sentence


def test_a_class_without_training_nodes_weighs_nothing():
    assert balanced(torch.tensor([0, 0, 2]), 3)[[0, 2]].tolist() == [0.75, 1.5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_kernels_give_what_torch_gives(graph, logits, dtype):
    mine = graph.to(dtype)
    terms = Fused(
        CrossEntropy().bind(mine, class_weight="balanced"),
        MutualInformation(lam=0.5).bind(mine),
        TotalVariation().bind(mine),
    )
    sample = Sample.of_graph(mine, 0)
    x = logits.detach().to(dtype).requires_grad_()
    close = 1e-12 if dtype == torch.float64 else 3e-6
    both = at_once(x, sample, terms, 0.7, 1.9), one_by_one(x, sample, terms, 0.7, 1.9)
    for a, b in zip(*both, strict=True):
        torch.testing.assert_close(a, b, rtol=close, atol=close)
    torch.testing.assert_close(
        *(torch.autograd.grad(values.total, x)[0] for values in both), rtol=close, atol=close
    )


@pytest.mark.parametrize("backbone", WITH_DERIVATIVES)
def test_cvg_by_hand_is_cvg_by_autograd(graph, backbone):
    network = (
        model_class(backbone)(
            graph.num_features,
            3,
            hidden_channels=7,
            num_layers=2,
            normalize_features=False,
        )
        .double()
        .train()
    )
    term = CrossValidatingGradients(halves="stratified").bind(graph, class_weight="balanced")
    logits, sample = network(graph), Sample.of_graph(graph, 0)
    halves = term.partition(sample)
    parameters = list(network.parameters())
    gradients = []
    for half in halves:
        weight = balanced(graph.labels[:12], 3)[graph.labels[half]]
        losses = -torch.log_softmax(logits[half], 1)[torch.arange(len(half)), graph.labels[half]]
        loss = (weight * losses).sum() / weight.sum()
        assert loss.item() == pytest.approx(by_hand(logits, half.tolist()), rel=1e-12)
        parts = torch.autograd.grad(
            loss, parameters, create_graph=True, allow_unused=True, materialize_grads=True
        )
        gradients.append(torch.cat([part.flatten() for part in parts]))
    expected = -torch.nn.functional.cosine_similarity(*gradients, dim=0)
    slopes = torch.autograd.grad(
        expected, parameters, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    shortcut = network.gradient_cosine(
        logits, sample.labeled, sample.labels, term._positions(sample), term.class_weight
    )
    assert shortcut is not None, "the shortcut is really taken"
    found = term(logits, sample, network)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    for a, b in zip(
        slopes,
        torch.autograd.grad(found, parameters, allow_unused=True, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_cvg_of_any_model_is_weighted_too(graph):
    """A module that knows no short way."""
    model = torch.nn.Linear(5, 3, dtype=torch.float64)
    sample = Sample.of_graph(graph, 0)
    values = [
        CrossValidatingGradients(halves="fixed")
        .bind(graph, class_weight=weight)(model(graph.dense_features), sample, model)
        .item()
        for weight in (None, "balanced")
    ]
    assert values[0] != pytest.approx(values[1], rel=1e-6)


def test_enc_passes_it_on(graph, logits):
    model = torch.nn.Linear(5, 3, dtype=torch.float64)
    terms = ENC(graph, cvg=0.0, class_weight="balanced").breakdown(logits)
    assert terms["ce"].item() == pytest.approx(by_hand(logits, list(range(12))), rel=1e-12)
    assert ENC(graph, class_weight="balanced").terms["cvg"].class_weight is not None
    assert torch.isfinite(ENC(graph, class_weight="balanced")(model(graph.dense_features), model))
    with pytest.raises(
        UsageError, match="must be None, 'balanced' or a weight for each class name"
    ):
        ENC(graph, class_weight="even")


def test_the_rare_class_is_found_more_often():
    """What it is for: nine in ten nodes are of one class, and the features tell little."""
    from everynode.settings import Settings
    from everynode.training import train

    rng = np.random.default_rng(3)
    n = 400
    labels = (np.arange(n) % 10 == 0).astype(int)
    features = labels[:, None] * 0.8 + rng.normal(size=(n, 4))
    nodes = torch.from_numpy(rng.permutation(n))
    graph = Graph.from_arrays(
        features.astype(np.float32),
        np.zeros((2, 0), int),
        labels,
        splits=[nodes.split([200, 100, 100])],
    )
    found = []
    for weight in (None, "balanced"):
        settings = Settings(
            hidden_channels=8, epochs=60, class_weight=weight, monitor="loss"
        ).for_objective("ce")
        fitted = train(graph, settings)
        with torch.no_grad():
            predicted = fitted.network(graph)[nodes[300:]].argmax(1)
        truth = graph.labels[nodes[300:]]
        found.append(((predicted == 1) & (truth == 1)).sum().item() / (truth == 1).sum().item())
    assert found[1] > found[0] + 0.2
