"""Copies of the surroundings of a node: they predict as the changed graph does, for every model."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from everynode.datasets import generate
from everynode.explanations.changes import Change, Surroundings
from everynode.graph import Graph
from everynode.models.build import build_model
from everynode.models.model import Model
from everynode.models.names import MODELS
from everynode.settings import Settings

NODE = 2


def graph_of(kind: str) -> Graph:
    """A sparse random graph, so that the surroundings of a node are not the whole graph."""
    drawn = generate(120, 130, 8, 3, seed=1)
    random = np.random.default_rng(0)
    weight = random.uniform(0.5, 3.0, drawn.num_edges) if kind == "weighted" else None
    features = drawn.dense_features.numpy()
    if kind == "sparse":
        features = scipy.sparse.csr_array(features * (random.random(features.shape) < 0.3))
    return Graph.from_arrays(
        features, drawn.edges, drawn.labels, edge_weight=weight, directed=kind == "directed"
    )


def without(graph: Graph, change: Change) -> Graph:
    """The changed graph, built from its arrays."""
    matrix = graph.features
    dense = (matrix if isinstance(matrix, torch.Tensor) else matrix.to_dense()).numpy().copy()
    for i in change.features:
        dense[NODE, i] = Surroundings(graph).neutral[i]
    lonely = set(change.removed)
    if change.kept is not None:
        lonely |= set(range(graph.num_nodes)) - {NODE, *change.kept}
    stay = [not lonely & set(pair) for pair in graph.edges.T.tolist()]
    weight = None if graph.weights is None else graph.weights[stay]
    sparse = not isinstance(matrix, torch.Tensor)
    return Graph.from_arrays(
        scipy.sparse.csr_array(dense) if sparse else dense, graph.edges[:, stay], graph.labels,
        edge_weight=weight, directed=graph.directed,
    )  # fmt: skip


def small(name: str, num_features: int) -> Model:
    settings = Settings(backbone=name, hidden_channels=8, num_layers=2)
    return build_model(num_features, 3, settings).eval()


def is_local(name: str) -> bool:
    """Whether a model's logits depend on a neighborhood only, and it has weights before training."""
    model = small(name, 4)
    return model.reach is not None and not hasattr(model, "solve")


def test_most_networks_are_local():
    assert {"gcn", "gat", "gcnii", "sage", "mlp"} <= {name for name in MODELS if is_local(name)}


def changes_of(graph: Graph) -> list[Change]:
    near = Surroundings(graph).neighbors(np.array([NODE])).tolist()
    far = Surroundings(graph).neighbors(np.array(near)).tolist()
    assert len(near) >= 2
    return [
        Change(), Change(removed=(near[0],)), Change((1, 2)), Change(removed=(NODE,)),
        Change((0,), (near[1],)), Change(removed=(far[0], far[-1])), Change(kept=(near[0],)),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["plain", "weighted", "sparse", "directed"])
@pytest.mark.parametrize("name", sorted(name for name in MODELS if is_local(name)))
def test_a_copy_predicts_as_the_changed_graph(name, kind):
    graph = graph_of(kind)
    model = small(name, graph.num_features)
    surroundings, changes = Surroundings(graph), changes_of(graph)
    ball = surroundings.ball(NODE, model.reach)
    assert len(ball) < 0.6 * graph.num_nodes
    rows = surroundings.changed_rows(NODE, changes)
    copies, centers = surroundings.copies(NODE, changes, ball, graph.features, rows)
    with torch.no_grad():
        found = model(copies, centers)
        expected = [model(without(graph, change))[NODE] for change in changes]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-5)
    assert (found[1:] - found[0]).abs().max() > 1e-4 or model.reach == 0


def test_the_graph_itself_does_not_change():
    graph = graph_of("plain")
    before = graph.looped_adjacency.values.clone()
    assert Surroundings(graph).incoming.diagonal().sum() == 0
    torch.testing.assert_close(graph.looped_adjacency.values, before)


def test_neutral_is_zero_where_most_values_are_zero_and_else_the_mean():
    x = [[0.0, 1.0], [0.0, 3.0], [2.0, 2.0]]
    dense = Graph.from_arrays(x, [[0], [1]], [0, 0, 0])
    sparse = Graph.from_arrays(scipy.sparse.csr_array(np.array(x)), [[0], [1]], [0, 0, 0])
    for graph in (dense, sparse):
        assert Surroundings(graph).neutral.tolist() == [0.0, 2.0]


def test_balls_grow_by_one_edge_and_end_with_the_component():
    path = Graph.from_arrays(np.eye(6), [[0, 1, 2, 3], [1, 2, 3, 4]], [0] * 6)
    surroundings = Surroundings(path)
    assert surroundings.ball(1, 0).tolist() == [1]
    assert surroundings.ball(1, 1).tolist() == [0, 1, 2]
    assert surroundings.ball(1, 40).tolist() == [0, 1, 2, 3, 4]
    assert surroundings.ball(1, None).tolist() == list(range(6))
