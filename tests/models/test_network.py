"""The network against the paper's architecture table, and CVG both ways through it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from everynode.errors import DataError, UsageError
from everynode.graph import Graph, Split
from everynode.models import GCN, Network
from everynode.models.layer import brings
from everynode.models.names import MODELS, model_class
from everynode.models.receptive_field import ReceptiveField
from everynode.sparse import SparseMatrix
from helpers.halves import Halves
from helpers.layers import N, close, make_graph, random

#: The networks with derivatives and export; a new model of another kind has tests of its own.
NETWORKS = [
    name
    for name in MODELS
    if issubclass(model_class(name), Network) and brings(model_class(name).layer, "derivatives")
]


# ---------------------------------------------------------------- the architecture table


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_parameter_shapes(backbone: str, num_layers: int) -> None:
    network = model_class(backbone)(11, 4, num_layers=num_layers, hidden_channels=7)
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    of_a_layer = {
        "weight": (7, 7),
        **({"attention_weight": (7, 7), "a": (2, 7)} if backbone == "gat" else {}),
    }
    expected = {
        "opening.weight": (11, 7),
        "opening.bias": (7,),
        "closing.weight": (7, 4),
        "closing.bias": (4,),
    }
    expected |= {
        f"layers.{i}.{name}": shape for i in range(num_layers) for name, shape in of_a_layer.items()
    }
    assert shapes == expected


@pytest.mark.parametrize("backbone", NETWORKS)
def test_the_two_groups_cover_every_parameter_once(backbone: str) -> None:
    network = model_class(backbone)(11, 4, num_layers=3, hidden_channels=7)
    groups = network.parameter_groups()
    assert list(groups) == ["gnn", "rest"]
    grouped = [id(p) for group in groups.values() for p in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {id(p) for p in network.parameters()}
    assert {id(p) for p in groups["gnn"]} == {
        id(p) for name, p in network.named_parameters() if name.startswith("layers.")
    }


@pytest.mark.parametrize("backbone", NETWORKS)
def test_initial_weights(backbone: str) -> None:
    network = model_class(backbone)(50, 4, num_layers=2, hidden_channels=30)
    glorot = {"opening.weight": (50, 30), "closing.weight": (30, 4)}
    for name, p in network.named_parameters():
        kind = name.rsplit(".", 1)[-1]
        if name.startswith("layers.") and kind == "weight":
            assert torch.equal(p, torch.eye(30)), name
        elif kind == "bias":
            assert not p.any(), name
        else:
            bound = math.sqrt(6 / sum(glorot.get(name, tuple(p.shape))))
            assert 0.8 * bound < float(p.detach().abs().max()) <= bound, name
            assert float(p.detach().mean().abs()) < 5 * bound / math.sqrt(3 * p.numel()), name


@pytest.mark.parametrize("backbone", NETWORKS)
def test_the_seed_alone_decides_the_weights(backbone: str) -> None:
    def weights(seed: int, outside: int) -> list[Tensor]:
        torch.manual_seed(outside)
        return list(
            model_class(backbone)(11, 4, num_layers=2, hidden_channels=7, seed=seed).parameters()
        )

    assert all(map(torch.equal, weights(3, 0), weights(3, 1)))
    assert not torch.equal(weights(3, 0)[0], weights(4, 0)[0])
    if backbone == "gat":
        first, second = (
            layer.a for layer in model_class("gat")(11, 4, num_layers=2, hidden_channels=7).layers
        )
        assert not torch.equal(first, second)


def sparse_and_dense() -> tuple[Graph, Graph]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N, 12)) * (rng.random((N, 12)) < 0.15)
    sparse = Graph.from_arrays(x, rng.integers(0, N, (2, 40)), np.arange(N) % 3).to(torch.float64)
    assert isinstance(sparse.features, SparseMatrix)
    dense = Graph(sparse.dense_features, sparse.edges, sparse.labels, sparse.classes)
    assert isinstance(dense.features, Tensor)
    return sparse, dense


@pytest.mark.parametrize("normalize_features", [True, False])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_sparse_and_dense_features_give_the_same_logits(
    backbone: str, normalize_features: bool
) -> None:
    sparse, dense = sparse_and_dense()
    network = (
        model_class(backbone)(12, 3, hidden_channels=5, normalize_features=normalize_features)
        .double()
        .eval()
    )
    logits = network(sparse)
    assert logits.shape == (N, 3)
    torch.testing.assert_close(logits, network(dense), rtol=1e-10, atol=1e-12)


def test_the_network_is_the_table_read_from_top_to_bottom() -> None:
    sparse, dense = sparse_and_dense()
    network = (
        model_class("gcnii")(
            12,
            3,
            num_layers=3,
            hidden_channels=5,
            gcnii_alpha=0.3,
            gcnii_lambda=1.2,
            normalize_features=True,
        )
        .double()
        .eval()
    )
    with torch.no_grad():
        for number, p in enumerate(network.parameters()):
            p.copy_(random(*p.shape, seed=number))
    x = dense.features / dense.features.abs().sum(1, keepdim=True).clamp_min(1e-300)
    f = f_0 = torch.relu(x @ network.opening.weight + network.opening.bias)
    for position, layer in enumerate(network.layers, 1):
        s = 0.7 * sparse.gcn_operator.to_dense() @ f + 0.3 * f_0
        beta = math.log(1.2 / position + 1)
        f = torch.relu(beta * s @ layer.weight + (1 - beta) * s)
    close(network(sparse), f @ network.closing.weight + network.closing.bias)


def test_input_row_and_raw_differ() -> None:
    sparse, _ = sparse_and_dense()
    row, raw = (
        GCN(12, 3, normalize_features=normalize_features, hidden_channels=5).double().eval()(sparse)
        for normalize_features in (True, False)
    )
    assert not torch.allclose(row, raw)


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize("kind", [0, 1], ids=["sparse", "dense"])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_dropout_is_off_in_eval_and_obeys_the_seed_in_training(backbone: str, kind: int) -> None:
    graph = sparse_and_dense()[kind]
    network = model_class(backbone)(12, 3, hidden_channels=16, dropout=0.5).double().eval()
    quiet = model_class(backbone)(12, 3, hidden_channels=16, dropout=0.0).double().eval()
    state = torch.get_rng_state()
    assert torch.equal(network(graph), network(graph))
    assert torch.equal(network(graph), quiet(graph))
    assert torch.equal(torch.get_rng_state(), state), "eval draws nothing"
    network.train()

    def logits(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return network(graph)

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))


@pytest.mark.parametrize("kind", [0, 1], ids=["sparse", "dense"])
def test_dropout_acts_on_the_input_and_keeps_its_mean(kind: int) -> None:
    graph = sparse_and_dense()[kind]
    network = GCN(12, 3, hidden_channels=16, dropout=0.5).double()
    opened: list[Tensor] = []
    network.opening.register_forward_hook(
        lambda _, inputs, output: opened.append(output.detach().clone())
    )
    network.eval()(graph)
    (whole,) = opened
    opened.clear()
    torch.manual_seed(0)
    network.train()
    for _ in range(400):
        network(graph)
    drawn = torch.stack(opened)
    assert torch.equal(drawn.std(0).amax(1) > 0, whole.abs().amax(1) > 0), (
        "every node with features loses some now and then"
    )
    error = (drawn.mean(0) - whole).abs() / (drawn.std(0) / math.sqrt(400) + 1e-12)
    assert error.max() < 6


def test_layer_dropout_acts_before_each_layer_and_in_training_only() -> None:
    graph, _ = sparse_and_dense()
    network = GCN(12, 3, hidden_channels=16, num_layers=3, dropout=0.0, layer_dropout=0.5).double()
    plain = GCN(12, 3, hidden_channels=16, num_layers=3, dropout=0.0, layer_dropout=0.0).double()
    assert torch.equal(network.eval()(graph), plain.eval()(graph))
    assert torch.equal(plain.train()(graph), plain.eval()(graph))
    seen: list[Tensor] = []
    for layer in network.layers:
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.manual_seed(0)
    network.train()(graph)
    training = seen.copy()
    seen.clear()
    network.eval()(graph)
    assert len(training) == len(seen) == 3
    for dropped, whole in zip(training, seen, strict=True):
        share = float(((dropped == 0) & (whole != 0)).sum() / (whole != 0).sum())
        assert 0.2 < share < 0.8


def test_dropout_acts_before_the_closing_layer() -> None:
    graph, _ = sparse_and_dense()
    network = GCN(12, 3, hidden_channels=16, dropout=0.5).double()
    seen: list[Tensor] = []
    network.layers[-1].register_forward_hook(lambda _, inputs, output: seen.append(output))
    network.closing.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.manual_seed(0)
    network.train()(graph)
    whole, dropped = seen
    share = float(((dropped == 0) & (whole != 0)).sum() / (whole != 0).sum())
    assert 0.3 < share < 0.7
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


# ---------------------------------------------------------------- what some nodes see


def chain(*, sparse: bool, directed: bool = False, n: int = 40) -> Graph:
    """A long path with a few shortcuts, on which a few nodes see little."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 12)) * (rng.random((n, 12)) < (0.15 if sparse else 1.0))
    edges = np.array([[*range(n - 1), 3, 9], [*range(1, n), 0, 30]])
    weight = rng.uniform(0.5, 2.0, edges.shape[1])
    graph = Graph.from_arrays(x, edges, np.arange(n) % 3, edge_weight=weight, directed=directed).to(
        torch.float64
    )
    assert isinstance(graph.features, SparseMatrix) == sparse
    return graph


NODES = torch.tensor([1, 5, 30, 39])


def trained(backbone: str, num_layers: int = 2, **options: object) -> Network:
    network = model_class(backbone)(
        12, 3, hidden_channels=6, num_layers=num_layers, **options
    ).double()
    with torch.no_grad():
        for number, (name, p) in enumerate(network.named_parameters()):
            p.copy_(0.5 * random(*p.shape, seed=number))
            if name.startswith("layers.") and name.endswith(".weight"):
                p.add_(
                    torch.eye(6)
                )  # not far from where training starts, or ReLU leaves nothing alive
    return network


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_the_logits_of_some_nodes_are_those_of_the_whole_pass(
    backbone: str, sparse: bool, directed: bool
) -> None:
    graph, network = chain(sparse=sparse, directed=directed), trained(backbone).eval()
    assert ReceptiveField.of(graph, NODES, 2).cost < 0.8, "or the shortcut is not taken"
    logits = network(graph)[NODES]
    assert logits.std(0).min() > 1e-3, "the nodes differ"
    torch.testing.assert_close(network(graph, NODES), logits, rtol=1e-10, atol=1e-12)
    everyone = torch.arange(graph.num_nodes)
    torch.testing.assert_close(network(graph, everyone), network(graph), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backbone", NETWORKS)
def test_the_same_nodes_of_another_graph_are_other_nodes(backbone: str) -> None:
    network = trained(backbone).eval()
    for graph in (chain(sparse=True), chain(sparse=True, directed=True), chain(sparse=False)):
        torch.testing.assert_close(
            network(graph, NODES), network(graph)[NODES], rtol=1e-10, atol=1e-12
        )


# CVG knows a shorter way through this library's networks than through other people's. Given the parameters instead of the network,
# it takes the long way: the two must agree in value and in gradient.


def labeled_chain(nodes: Tensor = NODES, **options: bool) -> Graph:
    nothing = torch.zeros(0, dtype=torch.int64)
    return chain(**options).with_splits([Split(nodes, nothing, nothing)])


def both_ways(
    network: Network,
    graph: Graph,
    change: Callable[[Tensor], Tensor] = lambda logits: logits,
    is_short: bool = True,
) -> None:
    parameters = [p for p in network.parameters() if p.requires_grad]

    def cvg(model: Network | list[Tensor], seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        logits, halves = change(network(graph)), Halves(graph, seed)
        value = halves.short(logits, model) if isinstance(model, Network) else None
        assert value is not None or not isinstance(model, Network) or not is_short
        value = halves.long(logits, parameters) if value is None else value
        return [
            value.detach(),
            *torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True),
        ]

    moved = [0.0] * len(parameters)
    for seed in range(3):
        short, long = cvg(network, seed), cvg(parameters, seed)
        assert -1 - 1e-9 <= float(long[0]) <= 1 + 1e-9
        moved = [max(m, float(g.abs().max())) for m, g in zip(moved, long[1:], strict=True)]
        for ours, whole in zip(short, long, strict=True):
            torch.testing.assert_close(ours, whole, rtol=1e-8, atol=1e-10)
    assert min(moved) > 1e-5, "a gradient of zero would agree with anything"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways(backbone: str, sparse: bool, directed: bool) -> None:
    both_ways(
        trained(backbone, dropout=0.4, layer_dropout=0.2),
        labeled_chain(sparse=sparse, directed=directed),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.0},
        {"dropout": 0.5},
        {"dropout": 0.0, "layer_dropout": 0.5},
        {"normalize_features": False},
    ],
)
@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways_with_any_dropout(
    backbone: str, options: dict[str, object]
) -> None:
    both_ways(trained(backbone, **options), labeled_chain(sparse=True))


@pytest.mark.parametrize("num_layers", [1, 4])
@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways_at_any_depth(backbone: str, num_layers: int) -> None:
    both_ways(trained(backbone, num_layers, layer_dropout=0.1), labeled_chain(sparse=True))


def test_cvg_is_the_same_both_ways_for_gcnii_without_a_way_back() -> None:
    both_ways(trained("gcnii", gcnii_alpha=0.0), labeled_chain(sparse=True))


@pytest.mark.parametrize(
    "nodes", [[30, 1, 39, 5], list(range(40)), [7, 8]], ids=["unsorted", "all", "two"]
)
@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways_for_any_labeled_nodes(backbone: str, nodes: list[int]) -> None:
    both_ways(trained(backbone), labeled_chain(torch.tensor(nodes), sparse=True))


@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways_for_logits_that_were_changed(backbone: str) -> None:
    both_ways(
        trained(backbone, dropout=0.4),
        labeled_chain(sparse=True),
        lambda logits: logits / 3,
        is_short=False,
    )


@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_is_the_same_both_ways_in_evaluation_and_with_frozen_parameters(backbone: str) -> None:
    network = trained(backbone, dropout=0.4)
    network.opening.weight.requires_grad_(False)
    both_ways(network, labeled_chain(sparse=True), is_short=False)
    both_ways(trained(backbone, dropout=0.4).eval(), labeled_chain(sparse=True), is_short=False)


@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_of_a_graph_when_the_network_has_seen_another_since(backbone: str) -> None:
    large, network = labeled_chain(sparse=True), trained(backbone, dropout=0.0)
    for n in (6, 60):
        other = (
            chain(sparse=True, n=max(n, 32))
            if n > 6
            else Graph.from_arrays(np.ones((6, 12)), [[0], [1]], [0] * 6).to(torch.float64)
        )
        logits = network(large)
        network(other)
        assert Halves(large).short(logits, network) is None


@pytest.mark.parametrize("backbone", NETWORKS)
def test_cvg_of_a_pass_before_the_last_one(backbone: str) -> None:
    graph, network = labeled_chain(sparse=True), trained(backbone, dropout=0.5)
    torch.manual_seed(0)
    logits = network(graph)
    network(graph)  # other dropout
    assert Halves(graph).short(logits, network) is None


def test_a_network_can_be_copied_after_use() -> None:
    graph, network = labeled_chain(sparse=True), trained("gcn")
    Halves(graph).short(network(graph), network)
    twin = copy.deepcopy(network)
    assert torch.equal(twin.eval()(graph), network.eval()(graph))
    with torch.no_grad():
        twin.closing.bias.add_(1.0)
    assert not torch.equal(twin(graph), network(graph))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_layers": 0}, "The 'num_layers' of GCN must be >= 1. Got 0."),
        ({"hidden_channels": 0}, "The 'hidden_channels' of GCN must be >= 1. Got 0."),
        ({"dropout": 1.0}, "The 'dropout' of GCN must be in [0, 1). Got 1.0."),
        ({"dropout": -0.1}, "The 'dropout' of GCN must be in [0, 1). Got -0.1."),
        ({"layer_dropout": 1.5}, "The 'layer_dropout' of GCN must be in [0, 1). Got 1.5."),
    ],
)
def test_bad_parameters(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        GCN(11, 4, **options)
    assert str(refused.value) == sentence


def test_a_graph_with_other_features_is_refused() -> None:
    with pytest.raises(
        DataError,
        match=r"^This model was made for 11 features a node, but graph 'graph' has 5. Use the columns",
    ):
        GCN(11, 4)(make_graph(0))


# ---------------------------------------------------------------- some nodes only


@pytest.mark.parametrize("training", [False, True])
def test_a_mask_is_as_good_as_indices(training):
    graph = make_graph(0)
    network = GCN(5, 3, hidden_channels=4, dropout=0.0, layer_dropout=0.0).double()
    network.train(training)
    mask = torch.arange(N) % 7 == 0
    torch.testing.assert_close(network(graph, mask), network(graph)[mask])
    torch.testing.assert_close(network(graph, mask.nonzero()[:, 0].int()), network(graph)[mask])


@pytest.mark.parametrize(
    "nodes",
    [
        torch.ones(N),
        torch.ones(N - 1, dtype=torch.bool),
        torch.zeros(2, 2).long(),
        torch.tensor([N]),
        torch.tensor([-1]),
    ],
)
def test_what_are_no_nodes_is_refused(nodes):
    with pytest.raises(UsageError):
        GCN(5, 3, hidden_channels=4).double().eval()(make_graph(0), nodes)


def test_nodes_that_were_written_to_are_others():
    graph, nodes = make_graph(0), torch.arange(3)
    network = GCN(5, 3, hidden_channels=4).double().eval()
    network(graph, nodes)
    nodes += 10
    torch.testing.assert_close(network(graph, nodes), network(graph)[10:13])
