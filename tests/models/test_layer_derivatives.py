"""First and second derivatives of the layers and of whole networks, in all parameters, against finite differences in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from everynode.graph import Graph, Split
from everynode.models import GATLayer, GCNIILayer, GCNLayer, Network
from everynode.models.layer import brings
from everynode.models.names import MODELS, model_class
from everynode.models.receptive_field import Hop
from everynode.objectives import ENC
from everynode.sparse import SparseMatrix

#: The networks with derivatives and export; a new model of another kind has tests of its own.
NETWORKS = [
    name
    for name in MODELS
    if issubclass(model_class(name), Network) and brings(model_class(name).layer, "derivatives")
]


def make_graph(*, sparse: bool, weighted: bool = False, directed: bool = False) -> Graph:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(6, 5))
    if sparse:
        features = np.zeros((6, 5))
        features[[0, 1, 2, 3, 4, 5, 0], [0, 1, 2, 3, 4, 0, 3]] = [
            1.0,
            -0.5,
            2.0,
            1.5,
            0.75,
            1.0,
            -1.0,
        ]
    weight = [1.0, 0.5, 2.0, 1.5, 0.25] if weighted else None
    split = Split(torch.tensor([0, 1, 2, 3]), torch.tensor([4]), torch.tensor([5]))
    graph = Graph.from_arrays(
        features,
        [[0, 1, 2, 0, 3], [1, 2, 3, 3, 4]],
        [0, 1, 0, 1, 0, 1],
        splits=[split],
        edge_weight=weight,
        directed=directed,
    )
    assert isinstance(graph.features, SparseMatrix) == sparse
    return graph.to(torch.float64)


GRAPHS = {
    "dense": make_graph(sparse=False),
    "sparse": make_graph(sparse=True),
    "weighted": make_graph(sparse=False, weighted=True),
    "directed": make_graph(sparse=True, directed=True),
}


def random_parameters(module: nn.Module, seed: int) -> tuple[list[str], tuple[Tensor, ...]]:
    """Names and fresh values for all parameters: identity weights and zero biases would sit on ReLU's kink."""
    rng = np.random.default_rng(seed)
    named = {
        name: torch.from_numpy(rng.normal(0, 0.7, p.shape)).requires_grad_()
        for name, p in module.named_parameters()
    }
    return list(named), tuple(named.values())


LAYERS = {
    "gcn": lambda: GCNLayer(3),
    "gat": lambda: GATLayer(3),
    "gcnii": lambda: GCNIILayer(3, position=2, alpha=0.2, lam=1.0),
}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, kind: str) -> None:
    layer = LAYERS[name]().double()
    names, values = random_parameters(layer, 0)
    rng = np.random.default_rng(9)
    f, f_0 = (torch.from_numpy(rng.normal(size=(6, 3))).requires_grad_() for _ in range(2))

    def output(f: Tensor, f_0: Tensor, *values: Tensor) -> Tensor:
        return functional_call(
            layer, dict(zip(names, values, strict=True)), (f, f_0, Hop(GRAPHS[kind]))
        )

    assert (output(f, f_0, *values) > 0).any()
    assert gradcheck(output, (f, f_0, *values))
    assert gradgradcheck(output, (f, f_0, *values))


def network_of(backbone: str, training: bool, **options: object) -> Network:
    network = model_class(backbone)(
        5,
        2,
        hidden_channels=3,
        num_layers=2,
        dropout=0.4,
        layer_dropout=0.3,
        **options,
    ).double()
    return network.train(training)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "dropout"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_networks(backbone: str, kind: str, training: bool) -> None:
    network = network_of(backbone, training, normalize_features=kind != "dense")
    names, values = random_parameters(network, 1)

    def logits(*values: Tensor) -> Tensor:
        torch.manual_seed(5)  # the same nodes dropped at every call
        return functional_call(network, dict(zip(names, values, strict=True)), (GRAPHS[kind],))

    gradients = torch.autograd.grad(logits(*values).square().sum(), values)
    assert all(g.abs().max() > 0 for g in gradients), (
        "a parameter that nothing reaches would be checked against nothing"
    )
    assert gradcheck(logits, values)
    assert gradgradcheck(logits, values)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_the_gradient_of_cvg_through_a_network(backbone: str, kind: str) -> None:
    graph = GRAPHS[kind]
    network = network_of(backbone, True)
    _, values = random_parameters(network, 4)
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), values, strict=True):
            parameter.copy_(value)
    objective = ENC(graph, mi=0.0, tv=0.0, cvg=1.0, halves="fixed", seed=1)

    def cvg() -> Tensor:
        torch.manual_seed(6)
        return objective.breakdown(network(graph), network)["cvg"]

    value = cvg()
    assert -1 < float(value.detach()) < 1
    gradients = torch.autograd.grad(
        value, list(network.parameters()), materialize_grads=True, allow_unused=True
    )
    assert max(float(g.abs().max()) for g in gradients) > 1e-3
    step = 1e-5
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        flat = parameter.data.view(-1)
        for entry in range(flat.numel()):
            before = float(flat[entry])
            flat[entry] = before + step
            above = float(cvg().detach())
            flat[entry] = before - step
            below = float(cvg().detach())
            flat[entry] = before
            assert (above - below) / (2 * step) == pytest.approx(
                float(gradient.flatten()[entry]), rel=1e-5, abs=1e-7
            )
