"""Logistic regression on neighbor means against scikit-learn and its own export."""

from __future__ import annotations

import numpy as np
import torch

from everynode.graph import Graph
from everynode.models.logistic_hops import LogisticHops
from everynode.models.logistic_neighbors import LogisticNeighbors


def test_the_second_block_leaves_the_node_out() -> None:
    # A path 0 - 1 - 2: the mean of node 0's neighbors is node 1's row alone.
    graph = Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]], [0, 1, 0])
    model = LogisticNeighbors(3, 2)
    model.weight.zero_()
    model.weight[3:6] = torch.tensor([[1.0, 0.0], [2.0, 0.0], [5.0, 0.0]])
    torch.testing.assert_close(model(graph)[:, 0], torch.tensor([2.0, 3.0, 2.0]))


def test_it_learns_that_neighbors_differ() -> None:
    # Two classes in a bipartite graph, where every edge joins different classes and one node in
    # four has no features: a mean with the node itself blurs what the neighbors say.
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], 100)
    edges = np.stack([random.integers(0, 100, 600), random.integers(100, 200, 600)])
    features = np.eye(2)[labels] + random.normal(0, 1.5, (200, 2))
    graph = Graph.from_arrays(features.astype(np.float32), edges, labels)
    train, test = torch.arange(0, 200, 5), torch.arange(1, 200, 5)
    accuracy = {}
    for cls in (LogisticNeighbors, LogisticHops):
        model = cls(2, 2)
        model.solve(graph, train, stage=1)
        accuracy[cls] = float((model(graph)[test].argmax(1) == graph.labels[test]).double().mean())
    assert accuracy[LogisticNeighbors] >= max(0.85, accuracy[LogisticHops])


def test_export_is_the_same(random_graph) -> None:
    graph, model = random_graph(2, weighted=True), LogisticNeighbors(5, 3).double()
    model.solve(graph, graph.nodes("train"))
    exported = model.export(graph.dense_features, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(exported, model(graph))
