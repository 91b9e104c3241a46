"""CVG without autograd, over the receptive field, equals autograd over the graph to 1e-12."""

import copy
import pickle

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from everynode.graph import Graph, Split
from everynode.models import Network
from everynode.models.layer import brings
from everynode.models.names import MODELS, model_class
from helpers.halves import Halves

#: The networks with derivatives and export; a new model of another kind has tests of its own.
NETWORKS = [
    name
    for name in MODELS
    if issubclass(model_class(name), Network) and brings(model_class(name).layer, "derivatives")
]


def make(
    *, dense: bool, weighted: bool, directed: bool = False, nodes: int = 40, labeled: int = 10
) -> Graph:
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(nodes, 9, generator=generator)
    if not dense:
        x = torch.rand(nodes, 30, generator=generator) * (
            torch.rand(nodes, 30, generator=generator) < 0.15
        )
    edges = torch.randint(
        nodes - 4, (2, 60), generator=generator
    )  # the last four have no neighbors
    weight = torch.rand(60, generator=generator) + 0.5 if weighted else None
    none = torch.arange(0)
    train = torch.randperm(nodes - 1, generator=generator)[: labeled - 1]
    split = Split(torch.cat([train, torch.tensor([nodes - 1])]), none, none)
    labels = torch.arange(nodes) % 3
    return Graph.from_arrays(
        x, edges, labels, splits=[split], edge_weight=weight, directed=directed
    ).to(torch.float64)


def network_for(graph: Graph, backbone: str = "gcn", **options: object) -> Network:
    network = model_class(backbone)(
        graph.num_features, 3, hidden_channels=7, normalize_features=False, **options
    ).double()  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(5)
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn(
            parameter.shape, generator=generator, dtype=torch.float64
        )
    return network.train()


def check(graph: Graph, network: Network) -> None:
    """Value and gradient are the same both ways, to twelve digits."""
    halves = Halves(graph)
    logits = network(graph)
    parameters = list(network.parameters())
    reference = halves.long(logits, parameters)
    expected = torch.autograd.grad(
        reference, parameters, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    value = halves.short(logits, network)
    assert value is not None
    found = torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
    assert value.item() == pytest.approx(reference.item(), abs=1e-12)
    size = torch.stack([g.norm() for g in expected]).norm()
    assert size > 1e-6
    for a, b in zip(expected, found, strict=True):
        assert (a - b).norm() <= 1e-12 * size


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("num_layers", [1, 2, 5])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(
    ("dropout", "layer_dropout"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.4), (0.0, 0.4)]
)
@pytest.mark.parametrize(("weighted", "directed"), [(False, False), (True, False), (False, True)])
def test_short_way_is_the_long_way(
    backbone: str,
    num_layers: int,
    dense: bool,
    dropout: float,
    layer_dropout: float,
    weighted: bool,
    directed: bool,
) -> None:
    graph = make(dense=dense, weighted=weighted, directed=directed)
    check(
        graph,
        network_for(
            graph,
            backbone=backbone,
            num_layers=num_layers,
            dropout=dropout,
            layer_dropout=layer_dropout,
        ),
    )


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("labeled", [2, 5, 20, 40])
def test_few_and_many_labels(backbone: str, labeled: int) -> None:
    """A field that is small, one that reaches everywhere after some layers, and all of the graph."""
    graph = make(dense=False, weighted=True, labeled=labeled)
    network = network_for(graph, backbone=backbone, num_layers=2)
    check(graph, network)
    levels = network._view(graph, graph.nodes("train")).field.levels
    assert (levels[0].nodes is None) == (labeled > 2)


def test_a_weight_in_two_places_counts_in_both() -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph, backbone="gat")
    for layer in network.layers:
        layer.attention_weight = layer.weight
    check(graph, network)


@pytest.mark.parametrize("backbone", NETWORKS)
def test_changed_logits_take_the_long_way(backbone: str) -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph, backbone=backbone)
    for logits in (network(graph) / 2.0, network(graph).div_(2.0)):
        assert Halves(graph).short(logits, network) is None


@pytest.mark.parametrize("backbone", NETWORKS)
def test_another_pass_in_between_takes_the_long_way(backbone: str) -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph, backbone=backbone)
    logits = network(graph)
    for mode in (True, False):
        network.train(mode)(graph)
        assert Halves(graph).short(logits, network) is None


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("change", ["hook", "parametrisation"])
def test_a_network_that_somebody_has_changed_takes_the_long_way(backbone: str, change: str) -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph, backbone=backbone)
    layer = network.layers[0]
    if change == "hook":
        layer.register_forward_hook(lambda module, inputs, output: 2.0 * output)
    else:
        torch.nn.utils.parametrizations.weight_norm(layer, "weight")
    assert Halves(graph).short(network(graph), network) is None


def test_a_frozen_parameter_takes_the_long_way() -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph)
    network.opening.bias.requires_grad_(False)
    assert Halves(graph).short(network(graph), network) is None


@pytest.mark.parametrize("backbone", NETWORKS)
def test_vanishing_gradients_give_zero(backbone: str) -> None:
    graph = make(dense=True, weighted=False)
    network = network_for(graph, backbone=backbone, dropout=0.0)
    with torch.no_grad():
        network.closing.weight.zero_()
        network.closing.bias.zero_()
    # Every training node surely of its own class: softmax saturates and all gradients are exactly zero.
    graph = Graph.from_arrays(
        graph.dense_features,
        graph.edges,
        torch.zeros(40, dtype=torch.int64),
        classes=range(3),
        splits=graph.splits,
    )
    graph = graph.to(torch.float64)
    with torch.no_grad():
        network.closing.bias[0] = 1e5
    value = Halves(graph).short(network(graph), network)
    grads = torch.autograd.grad(
        value, list(network.parameters()), allow_unused=True, materialize_grads=True
    )
    assert value.item() == 0.0
    assert all(torch.equal(g, torch.zeros_like(g)) for g in grads)


@pytest.mark.parametrize("backbone", NETWORKS)
def test_logits_of_some_nodes_are_those_of_all(backbone: str) -> None:
    graph = make(dense=False, weighted=True)
    network = network_for(graph, backbone=backbone, num_layers=2).eval()
    nodes = torch.tensor([7, 3, 21])
    torch.testing.assert_close(network(graph, nodes), network(graph)[nodes], rtol=1e-10, atol=1e-12)
    assert network._view(graph, nodes).field.cost < 1.0


def test_copies_do_not_carry_the_graph() -> None:
    graph = make(dense=False, weighted=False)
    network = network_for(graph)
    Halves(graph).short(network(graph), network).backward()
    assert network._fields
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert not twin._fields
        assert twin._last is None
        torch.testing.assert_close(twin.eval()(graph), network.eval()(graph))
        network.train()


class _Products(TorchDispatchMode):
    """Counts matrix products, dense and sparse, of each half."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__.split(".")[0].rstrip("_") in (
            "mm", "addmm", "bmm", "baddbmm", "addbmm", "_sparse_addmm", "_sparse_mm",
        )  # fmt: skip
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("backbone", ["gcn", "gcnii"])
def test_a_layer_takes_fourteen_products(backbone: str) -> None:
    graph = make(dense=True, weighted=False)

    def products(num_layers: int) -> int:
        network = network_for(graph, backbone=backbone, num_layers=num_layers)
        logits, halves = network(graph), Halves(graph)
        halves.short(logits, network)  # prepares the receptive field
        with _Products() as counted:
            halves.short(logits, network)
        return counted.count

    assert products(5) - products(4) == 14
