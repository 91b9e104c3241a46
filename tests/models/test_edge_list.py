"""The plain edge list gives what the graph's sparse operators give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.gat import edge_softmax


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_propagation_and_softmax(weighted: bool, directed: bool) -> None:
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3.0, 30) if weighted else None
    graph = Graph.from_arrays(
        rng.normal(size=(15, 4)), rng.integers(0, 13, (2, 30)), np.arange(15) % 3,
        edge_weight=weight, directed=directed,
    ).to(torch.float64)  # fmt: skip
    edge_index, edge_weight = graph.edge_index, graph.edge_weight
    ones = torch.ones(edge_index.shape[1], dtype=torch.float64)
    edges = EdgeList.of(edge_index, ones if edge_weight is None else edge_weight.double(), 15)
    x = graph.dense_features
    torch.testing.assert_close(edges.propagate(edges.gcn_weight(), x), graph.gcn_operator @ x)
    pattern = graph.looped_adjacency.pattern
    scores = torch.from_numpy(rng.normal(size=(15, 15)))
    expected = torch.zeros(15, 15, dtype=torch.float64)
    expected[pattern.row, pattern.column] = edge_softmax(
        scores[pattern.row, pattern.column], pattern
    )
    attention = edges.softmax(scores[edges.target, edges.source])
    torch.testing.assert_close(edges.propagate(attention, x), expected @ x)
