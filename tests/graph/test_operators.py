"""What a graph computes from its arrays: operators, homophily, the cache, the digest."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import homophily, to_dense_adj

from everynode.errors import DataError
from everynode.graph import Graph, Split
from everynode.sparse import Pattern, SparseMatrix

X = np.arange(12.0).reshape(4, 3) + 1
EDGES = [[0, 1, 2], [1, 2, 3]]
LABELS = [0, 1, 0, 1]


def split(train: list[int], val: list[int], test: list[int]) -> Split:
    return Split(*(torch.tensor(part, dtype=torch.int64) for part in (train, val, test)))


@pytest.mark.parametrize("sparse", [False, True])
def test_normalized_features(sparse: bool) -> None:
    x = np.zeros((5, 8))
    x[0, :2], x[1, 3], x[3, 4:6] = (1.0, -3.0), 5.0, (2.0, 2.0)
    graph = Graph.from_arrays(x, [[0], [1]])
    if not sparse:
        graph = Graph(graph.dense_features, graph.edges, graph.labels, graph.classes)
    rows = graph.normalized_features
    dense = rows.to_dense() if isinstance(rows, SparseMatrix) else rows
    expected = np.zeros((5, 8))
    expected[0, :2], expected[1, 3], expected[3, 4:6] = (0.25, -0.75), 1.0, (0.5, 0.5)
    assert isinstance(rows, SparseMatrix) == sparse
    assert dense.tolist() == expected.tolist()


def test_normalized_features_of_stored_zeros() -> None:
    matrix = SparseMatrix(
        Pattern(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), (2, 8)), torch.tensor([0.0, 3.0])
    )
    rows = Graph.from_arrays(matrix, [[0], [1]]).normalized_features
    assert rows.to_dense()[:, :2].tolist() == [[0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_operators_are_their_dense_formulas(
    random_graph, seed: int, weighted: bool, directed: bool
) -> None:
    graph = random_graph(seed, weighted=weighted, directed=directed).to(torch.float64)
    index, weight = graph.edge_index, graph.edge_weight
    a = (
        to_dense_adj(index, edge_attr=weight, max_num_nodes=graph.num_nodes)[0].double().T
    )  # row = target
    looped = a + torch.eye(graph.num_nodes, dtype=torch.float64)
    d = looped.sum(1)
    close(graph.looped_adjacency.to_dense(), looped)
    close(graph.gcn_operator.to_dense(), torch.diag(d**-0.5) @ looped @ torch.diag(d**-0.5))
    close(graph.mean_operator.to_dense(), torch.diag(1 / d) @ looped)
    close(graph.gcn_operator.transpose.to_dense(), graph.gcn_operator.to_dense().T)
    close(graph.mean_operator.to_dense().sum(1), torch.ones(graph.num_nodes, dtype=torch.float64))
    symmetric = torch.maximum(a, a.T)
    close(graph.degree, symmetric.sum(1))


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_gcn_operator_is_pygs(random_graph, seed: int, weighted: bool, directed: bool) -> None:
    graph = random_graph(seed, weighted=weighted, directed=directed).to(torch.float64)
    index, weight = gcn_norm(
        graph.edge_index, graph.edge_weight, num_nodes=graph.num_nodes, dtype=torch.float64
    )
    close(
        graph.gcn_operator.to_dense(),
        to_dense_adj(index, edge_attr=weight, max_num_nodes=graph.num_nodes)[0].T,
    )


@pytest.mark.parametrize("seed", range(4))
def test_homophilies_are_pygs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    ring = np.stack(
        [np.arange(n), (np.arange(n) + 1) % n]
    )  # so that no node is on its own: PyG counts such a node as 0
    edges = np.concatenate([ring, rng.integers(0, n, (2, 20))], axis=1)
    graph = Graph.from_arrays(np.ones((n, 1)), edges, rng.integers(0, 3, n))
    y, index = graph.labels, graph.edge_index
    assert graph.edge_homophily == pytest.approx(homophily(index, y, method="edge"), rel=1e-6)
    assert graph.node_homophily == pytest.approx(homophily(index, y, method="node"), rel=1e-6)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_conv_of_pyg_on_edge_index_loses_no_message(
    random_graph, weighted: bool, directed: bool
) -> None:
    graph = random_graph(1, weighted=weighted, directed=directed).to(torch.float64)
    conv = GCNConv(graph.num_features, 4, bias=False).double()
    theirs = conv(graph.dense_features, graph.edge_index, graph.edge_weight)
    close(graph.gcn_operator @ conv.lin(graph.dense_features), theirs)
    if not directed:
        assert graph.edge_index.shape[1] == 2 * graph.num_edges


def test_edge_weight_is_aligned_with_edge_index() -> None:
    graph = Graph.from_arrays(X, EDGES, edge_weight=[1.0, 2.0, 3.0])
    assert graph.edge_index.tolist() == [[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]
    assert graph.edge_weight.tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
    assert Graph.from_arrays(X, EDGES).edge_weight is None


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_survives_the_way_to_pyg_and_back(
    random_graph, weighted: bool, directed: bool
) -> None:
    graph = random_graph(2, weighted=weighted, directed=directed)
    data = graph.to_pyg()
    assert torch.equal(data.edge_index, graph.edge_index)
    back = Graph.from_pyg(data, directed=directed)
    assert back.digest == graph.digest
    assert not any(back.repairs.values())


def test_homophily_looks_at_labeled_nodes_only() -> None:
    graph = Graph.from_arrays(np.ones((5, 1)), [[0, 1, 2, 0], [1, 2, 3, 4]], [0, 0, 1, -1, -1])
    assert graph.edge_homophily == 0.5  # 0-1 agree, 1-2 do not, 2-3 and 0-4 are not known
    assert graph.node_homophily == pytest.approx((1 + 0.5 + 0) / 3)


@pytest.mark.parametrize("directed", [False, True])
def test_what_depends_on_the_graph_alone_is_computed_once(random_graph, directed: bool) -> None:
    graph = random_graph(0, weighted=True, directed=directed)
    names = [
        "degree",
        "edge_index",
        "edge_weight",
        "undirected_edges",
        "neighbors",
        "looped_adjacency",
        "gcn_operator",
        "mean_operator",
        "dense_features",
        "digest",
    ]
    for name in [*names, "normalized_features", "edge_homophily", "node_homophily"]:
        assert getattr(graph, name) is getattr(graph, name), name
    operator = graph.gcn_operator
    assert (operator.transpose is operator) == (not directed)


SHARED = [
    "edge_index",
    "edge_weight",
    "undirected_edges",
    "degree",
    "looped_adjacency",
    "gcn_operator",
    "mean_operator",
    "dense_features",
    "normalized_features",
    "neighbors",
]


def test_other_splits_and_labels_share_the_operators(
    random_graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(0, weighted=True)
    before = {name: getattr(graph, name) for name in SHARED}
    digest = graph.digest
    scans: list[object] = []
    monkeypatch.setattr("everynode.graph.graph.check_features", scans.append)
    monkeypatch.setattr(Graph, "_hash_structure", lambda self: scans.append(self))
    other = graph.with_splits([split([0], [1], [2])]).with_labels(graph.labels.flip(0))
    for name, value in before.items():
        assert getattr(other, name) is value, name
    assert other.features is graph.features
    assert other.digest != digest
    assert not scans, "the features were scanned again"
    lazily = graph.cached("made later", object)
    assert other.cached("made later", object) is lazily


def test_a_changed_graph_has_its_own_cache(random_graph) -> None:
    graph = random_graph(0)
    operator = graph.gcn_operator
    assert graph.to(torch.float32) is graph
    assert graph.to("cpu") is graph
    assert graph.to(torch.float64).gcn_operator is not operator
    fewer = dataclasses.replace(graph, edges=graph.edges[:, :1])
    assert fewer.gcn_operator.pattern.nnz == graph.num_nodes + 2
    pickled = pickle.loads(pickle.dumps(graph))
    assert pickled._cache == {}
    assert pickled.gcn_operator is not operator
    assert pickled.digest == graph.digest


def test_the_digest_is_of_the_content() -> None:
    def build(**changes: object) -> str:
        arguments = {
            "features": X,
            "edge_index": EDGES,
            "labels": LABELS,
            "splits": [split([0], [1], [2])],
        } | changes
        return Graph.from_arrays(**arguments).digest

    changed = [
        {"features": X + 1},
        {"edge_index": [[0, 1, 2], [1, 2, 0]]},
        {"labels": [0, 1, 1, 1]},
        {"labels": ["a", "b", "a", "b"]},
        {"splits": [split([0], [2], [1])]},
        {"edge_weight": [1.0, 2.0, 1.0]},
        {"directed": True},
    ]
    digests = [build(), *(build(**change) for change in changed)]
    assert len(set(digests)) == len(digests)
    assert build(edge_index=[[3, 2, 1, 1], [2, 1, 0, 1]], name="another") == build(), (
        "order, direction, loops and the name do not count"
    )


def test_the_digest_never_changes() -> None:
    """Stored runs name their graph by its digest."""
    folds = [split([0], [1], [2])]
    weighted = Graph.from_arrays(X, EDGES, LABELS, splits=folds, edge_weight=[1.0, 2.0, 0.5])
    assert weighted.digest == "0b938c3e828467bfd1aa26106554627de98809e8b53a95d4bebbaf059ac39fce"
    labels = ["a", "b", None, "b"]
    directed = Graph.from_arrays(np.eye(4), [[0, 1, 2], [1, 2, 0]], labels, directed=True)
    assert directed.digest == "bf8d186e8fb1645a8f398db501d7c8c5ac351623c310fb08c7b26d785bc55504"


def test_other_features_share_the_operators_of_the_edges_only(random_graph) -> None:
    graph = random_graph(1)
    operators = graph.gcn_operator, graph.neighbors, graph.degree
    before = graph.normalized_features, graph.digest
    other = graph.with_features(torch.rand(15, 3))
    assert (other.gcn_operator, other.neighbors, other.degree) == operators
    assert other.normalized_features.shape == (15, 3)
    assert other.digest != before[1]
    assert graph.normalized_features is before[0]
    assert other.with_splits([]).gcn_operator is graph.gcn_operator
    assert graph.to(torch.float64).with_features(torch.rand(15, 3)).dtype == torch.float64
    with pytest.raises(DataError, match="15 nodes have features for 14"):
        graph.with_features(torch.rand(14, 3))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_over_neighbors(random_graph, directed: bool, weighted: bool) -> None:
    graph = random_graph(2, directed=directed, weighted=weighted)
    adjacency = graph.looped_adjacency.to_dense() - torch.eye(15)
    for operator, expected in (
        (graph.neighbor_operator, adjacency),
        (graph.reverse_neighbor_operator, adjacency.T),
    ):
        total = expected.sum(1, keepdim=True)
        expected = expected / torch.where(total > 0, total, 1)
        torch.testing.assert_close(operator.to_dense(), expected.float())
