"""Types of link: strengths by slow loops, and weights of edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.graph.edge_types import MOST_TYPES


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_strengths_are_those_of_slow_loops(directed, weighted):
    random = np.random.default_rng(3)
    n, m = 12, 60
    edges, kinds = random.integers(0, n, (2, m)), random.choice(["a", "b", "c"], m)
    weight = random.random(m).astype(np.float32) + 0.1 if weighted else None
    slow: dict[tuple[int, int], dict[str, float]] = {}
    for e in range(m):
        a, b = map(int, edges[:, e])
        if a == b:
            continue
        pair = (a, b) if directed else (min(a, b), max(a, b))
        value = float(weight[e]) if weighted else 1.0
        of_pair = slow.setdefault(pair, {})
        of_pair[str(kinds[e])] = max(of_pair.get(str(kinds[e]), 0.0), value)
    graph = Graph.from_arrays(
        np.ones((n, 1)), edges, edge_weight=weight, edge_type=kinds, directed=directed
    )
    assert {tuple(pair) for pair in graph.edges.T.tolist()} == set(slow)
    assert graph.edge_types.names == ("a", "b", "c")
    scaled = graph.with_edge_type_weights({"a": 2.0, "b": 0.5, "c": 1.0})
    for e, pair in enumerate(graph.edges.T.tolist()):
        parts = slow[tuple(pair)]
        assert float(graph.weights[e]) == pytest.approx(sum(parts.values()), rel=1e-5)
        expected = sum({"a": 2.0, "b": 0.5, "c": 1.0}[kind] * v for kind, v in parts.items())
        assert float(scaled.weights[e]) == pytest.approx(expected, rel=1e-5)
    assert scaled.edge_types.relative == {"a": 1.0, "b": 0.25, "c": 0.5}


def test_operators_follow_the_weights():
    graph = Graph.from_arrays(np.ones((3, 1)), [[0, 1], [1, 2]], edge_type=["x", "y"])
    assert graph.weights is None
    before = graph.gcn_operator.to_dense()
    weighted = graph.with_edge_type_weights({"x": 1.0, "y": 0.01})
    same = Graph.from_arrays(np.ones((3, 1)), [[0, 1], [1, 2]], edge_weight=[1.0, 0.01])
    assert torch.allclose(weighted.gcn_operator.to_dense(), same.gcn_operator.to_dense())
    assert not torch.allclose(weighted.gcn_operator.to_dense(), before)
    assert weighted.with_labels([0, 1, 0]).edge_types.weights == (1.0, 0.01)


def test_bad_types_are_refused():
    x, pairs = np.ones((3, 1)), [[0, 1], [1, 2]]
    with pytest.raises(DataError, match="Edge 1 has no type"):
        Graph.from_arrays(x, pairs, edge_type=["a", None])
    with pytest.raises(DataError, match="2 edges have 3 types"):
        Graph.from_arrays(x, pairs, edge_type=["a", "b", "c"])
    many = [str(i) for i in range(MOST_TYPES + 1)]
    with pytest.raises(DataError, match="edge_type has 21 values"):
        Graph.from_arrays(x, [[0] * len(many), [1] * len(many)], edge_type=many)
    graph = Graph.from_arrays(x, pairs, edge_type=["a", "b"])
    with pytest.raises(DataError, match="Type of link 'b' has no positive weight"):
        graph.with_edge_type_weights({"a": 1.0})
    with pytest.raises(UsageError, match="no types of link, and the model weighs them"):
        Graph.from_arrays(x, pairs).with_edge_type_weights({"a": 1.0})
