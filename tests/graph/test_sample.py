"""The sample of everything, and its means."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from everynode.graph import Graph, Split
from everynode.graph.sample import Sample


@pytest.fixture(params=["dense", "sparse", "weighted"])
def graph(request: pytest.FixtureRequest) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 30)) * (rng.random((9, 30)) < (0.1 if request.param == "sparse" else 1))
    weight = rng.random(15) + 0.5 if request.param == "weighted" else None
    nodes = torch.arange(9)
    return Graph.from_arrays(
        x, rng.integers(0, 9, (2, 15)), np.arange(9) % 2,
        splits=[Split(nodes[:4], nodes[4:6], nodes[6:])], edge_weight=weight,
    )  # fmt: skip


def test_the_means_of_everything_are_means(graph):
    sample = Sample.of_graph(graph, 0)
    edges, weight = graph.undirected_edges
    of_nodes, of_edges = torch.rand(9), torch.rand(edges.shape[1])
    torch.testing.assert_close(sample.mean_over_nodes(of_nodes), of_nodes.mean())
    torch.testing.assert_close(sample.mean_over_labeled(of_nodes[:4]), of_nodes[:4].mean())
    expected = of_edges.mean() if weight is None else (of_edges * weight).mean()
    torch.testing.assert_close(sample.mean_over_edges(of_edges), expected)
    torch.testing.assert_close(sample.scale, (graph.degree.double() + 1) ** -0.5)
    assert sample.labels.tolist() == [0, 1, 0, 1]
    assert sample.is_full
    assert sample.coverage == 1.0


def test_without_a_fold_no_row_is_labeled(graph):
    assert len(Sample.of_graph(graph).labeled) == 0


def test_features_are_cut_to_the_rows(graph):
    sample = Sample.of_graph(graph, 0)
    part = Sample(
        sample.nodes[:3], sample.node_share[:3], sample.labeled[:0], sample.labels[:0], 0.0,
        sample.edges[:, :0], sample.edge_share[:0], sample.scale[:3],
    ).with_features(graph.features)  # fmt: skip
    assert part.features.shape == (3, 30)
    assert not part.is_full
    assert repr(part) == "Sample of 3 nodes (0 labeled) and 0 edges"


def test_what_is_cached_is_shared_with_the_graph_and_a_part_keeps_its_own(graph):
    one, other = Sample.of_graph(graph, 0), Sample.of_graph(graph)
    assert one.cached("key", list) is other.cached("key", list) is graph.cached("key", list)
    part = Sample(*(getattr(one, name) for name in (
        "nodes", "node_share", "labeled", "labels", "label_share", "edges", "edge_share", "scale",
    )))  # fmt: skip
    assert part.cached("key", list) is part.cached("key", list) is not graph.cached("key", list)
    assert part.with_features(graph.features).cached("key", list) is not part.cached("key", list)


def test_it_moves_and_is_never_copied(graph):
    sample = Sample.of_graph(graph, 0)
    assert sample.to("cpu") is sample is copy.deepcopy(sample)
    assert sample.to("meta").edges.device.type == "meta"
