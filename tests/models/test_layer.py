"""A made-up layer: right without derivatives, refused without export, and never silently wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.graph import Graph, Split
from everynode.models import GCN, GCNLayer, Layer, Network
from everynode.models.edge_list import EdgeList
from everynode.models.export import Portable
from everynode.models.layer import brings
from everynode.models.linear import Linear
from everynode.models.receptive_field import Hop
from everynode.numerics import gradient_cosine
from everynode.objectives import ENC


class Squashed(Layer):
    """S = tanh(P f diag(g)) + f: nonlinear, with a parameter of its own."""

    def __init__(self, channels: int, **options: Any):
        super().__init__(channels, **options)
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, channels))

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        return torch.tanh(hop.gcn_operator @ f * self.gain) + hop.target_rows(f), ()


class Squash(Network):
    layer = Squashed


class Bent(GCNLayer):
    """Changes the forward pass of GCN, and inherits its derivatives and its export."""

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        return torch.tanh(hop.gcn_operator @ f), ()


class Bend(Network):
    layer = Bent


class Whole(Layer):
    """Another forward pass altogether, which knows no traces."""

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        raise NotImplementedError

    def forward(self, f: Tensor, f_0: Tensor, hop: Hop) -> Tensor:  # type: ignore[override]
        return torch.sigmoid(hop.gcn_operator @ f @ self.weight) * hop.opening_rows(f_0)

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        return torch.sigmoid(edges.propagate(edges.gcn_weight(), f) @ self.weight) * f_0


class Others(Network):
    layer = Whole


MADE_UP = [Squash, Bend, Others]


def make(n: int = 14) -> Graph:
    rng = np.random.default_rng(0)
    none = torch.arange(0)
    split = Split(torch.arange(0, n, 2), none, none)
    edges = rng.integers(0, n, (2, 2 * n))
    labels = np.arange(n) % 3
    return Graph.from_arrays(rng.normal(size=(n, 5)), edges, labels, splits=[split]).to(
        torch.float64
    )


def network_for(cls: type[Network], **options: Any) -> Network:
    network = cls(5, 3, hidden_channels=4, num_layers=2, **{"layer_dropout": 0.0} | options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in network.parameters():
            p += 0.2 * torch.randn(p.shape, generator=generator)
    return network.double()


@pytest.mark.parametrize("cls", MADE_UP)
def test_cvg_takes_the_autograd_path_and_is_right(cls: type[Network]) -> None:
    graph, network = make(), network_for(cls, layer_dropout=0.3)
    parameters = list(network.parameters())
    recorded = []

    def record(logits: Tensor, nodes: Tensor, labels: Tensor, halves: Any, *a: Any, **o: Any):
        recorded.append((nodes, labels, halves))
        return type(network).gradient_cosine(network, logits, nodes, labels, halves, *a, **o)

    network.gradient_cosine = record
    objective = ENC(graph, mi=0.0, tv=0.0, cvg=1.0, halves="random")
    logits = network.train()(graph)
    value = objective.breakdown(logits, network)["cvg"]
    ((nodes, labels, halves),) = recorded
    assert Network.gradient_cosine(network, logits, nodes, labels, halves) is None
    losses = [nn.functional.cross_entropy(logits[nodes[half]], labels[half]) for half in halves]
    expected = -gradient_cosine(losses, parameters)
    assert value.item() == pytest.approx(expected.item(), abs=1e-13)
    assert -1 < value.item() < 1
    gradients, references = (
        torch.autograd.grad(
            v, parameters, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for v in (value, expected)
    )
    assert max(float(g.abs().max()) for g in references) > 1e-3
    for gradient, reference in zip(gradients, references, strict=True):
        torch.testing.assert_close(gradient, reference, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("cls", MADE_UP)
def test_second_derivatives_of_the_network(cls: type[Network]) -> None:
    graph, network = make(7), network_for(cls, dropout=0.0).train()
    names = [name for name, _ in network.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in network.parameters())

    def logits(*values: Tensor) -> Tensor:
        return functional_call(network, dict(zip(names, values, strict=True)), (graph,))

    assert gradcheck(logits, values)
    assert gradgradcheck(logits, values)


@pytest.mark.parametrize("cls", MADE_UP)
def test_some_nodes_have_the_logits_of_the_whole_pass(cls: type[Network]) -> None:
    graph, network = make(), network_for(cls).eval()
    nodes = torch.tensor([3, 8])
    torch.testing.assert_close(network(graph, nodes), network(graph)[nodes])


@pytest.mark.parametrize(("cls", "layer"), [(Squash, "Squashed"), (Bend, "Bent")])
def test_a_layer_without_export_is_refused_in_one_sentence(cls: type[Network], layer: str) -> None:
    with pytest.raises(UsageError) as refused:
        Portable([network_for(cls)])
    assert str(refused.value) == (
        f"{cls.__name__} cannot be exported: its layer {layer} does not implement export(). "
        "Save the model instead."
    )


def test_a_layer_with_export_is_exported() -> None:
    graph, network = make(), network_for(Others).eval()
    edge_index = graph.edge_index
    ones = torch.ones(edge_index.shape[1], dtype=torch.float64)
    probabilities = Portable([network])(graph.dense_features, edge_index, ones)
    torch.testing.assert_close(probabilities, torch.softmax(network(graph), 1))


def test_what_a_layer_brings() -> None:
    assert brings(GCNLayer, "derivatives")
    assert brings(GCNLayer, "export")
    for layer in (Squashed, Bent):
        assert not brings(layer, "derivatives")
        assert not brings(layer, "export")
    assert brings(Whole, "export")
    with pytest.raises(UsageError, match=r"^Squashed cannot be exported"):
        Squashed(3).export(torch.ones(1, 3), torch.ones(1, 3), None)


def test_a_subclass_that_changes_nothing_keeps_both() -> None:
    class Named(GCNLayer):
        pass

    class Names(GCN):
        layer = Named

    graph = make()
    network = network_for(Names).train()
    logits, nodes = network(graph), graph.nodes("train")
    halves = torch.arange(3), torch.arange(3, len(nodes))
    assert network.gradient_cosine(logits, nodes, graph.labels[nodes], halves) is not None
    Portable([network])


def test_derivatives_may_say_none() -> None:
    class Shy(GCNLayer):
        def derivatives(self, *_: Any) -> None:  # type: ignore[override]
            return None

    class Shies(Network):
        layer = Shy

    graph = make()
    network = network_for(Shies).train()
    logits, nodes = network(graph), graph.nodes("train")
    halves = torch.arange(3), torch.arange(3, len(nodes))
    assert network.gradient_cosine(logits, nodes, graph.labels[nodes], halves) is None


def test_a_network_without_a_layer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^Network has no layers: use GCN, GAT or GCNII"):
        Network(5, 3)


class Damped(GCNLayer):
    """A layer that sets the share of its weight as an attribute, as the docstring allows."""

    beta = 0.5


class DampedNetwork(Network):
    layer = Damped


class CurvedLinear(Linear):
    """Not the opening layer that the derivatives by hand know."""

    def forward(self, x):
        return nn.functional.softplus(super().forward(x))


@pytest.mark.parametrize("case", ["beta", "opening"])
def test_cvg_is_that_of_autograd_for_changed_parts(case: str) -> None:
    graph = generate(40, 100, 8, 3).to(torch.float64)
    model = (DampedNetwork if case == "beta" else GCN)(
        8, 3, hidden_channels=5, dropout=0.0, layer_dropout=0.0
    )
    if case == "opening":
        model.opening = CurvedLinear(8, 5)
    model = model.double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    gradients = []
    for parameters in (model, list(model.parameters())):  # the short way, if allowed; the long way
        objective = ENC(graph, mi=0, tv=0, cvg=1.0)
        model.zero_grad()
        objective.breakdown(model(graph), parameters)["cvg"].backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for short, long in zip(*gradients, strict=True):
        torch.testing.assert_close(short, long, rtol=1e-9, atol=1e-11)
