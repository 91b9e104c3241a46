"""Graphs of other libraries as plain arrays; the graphs themselves are tested in test_graph.py."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import everynode
from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.conversions import networkx_arrays, pyg_arrays, splits_from_masks


def test_pyg_data_stays_as_it_is():
    data = Data(
        x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([[0], [1], [1]])
    )
    arrays = pyg_arrays(data)
    assert arrays["labels"].tolist() == [0, 1, 1]
    assert arrays["splits"] == []
    assert arrays["edge_weight"] is None
    assert data.y.shape == (3, 1)
    sparse = pyg_arrays(Data(x=torch.eye(3).to_sparse(), edge_index=data.edge_index))
    np.testing.assert_array_equal(sparse["features"].toarray(), np.eye(3))
    assert sparse["labels"].tolist() == [-1, -1, -1]


def test_masks_of_one_fold_and_of_several():
    train = torch.tensor([[True, False], [False, True], [False, False]])
    val = torch.tensor([False, False, True])
    first, second = splits_from_masks(train, val, None)
    assert [part.tolist() for part in first] == [[0], [2], []]
    assert [part.tolist() for part in second] == [[1], [2], []]


def test_networkx_edges_go_both_ways_unless_directed():
    graph = nx.Graph()
    graph.add_node("a", label="x")
    graph.add_edge("a", "b", weight=2.0)
    arrays = networkx_arrays(graph, None, "label", "weight")
    assert arrays["edge_index"].tolist() == [[0, 1], [1, 0]]
    assert arrays["edge_weight"] == [2.0, 2.0]
    assert (arrays["labels"], arrays["classes"]) == ([0, -1], ["x"])
    assert networkx_arrays(nx.DiGraph(graph), None, None, None)["directed"]
    with pytest.warns(UserWarning, match="No node has the attribute 'y'"):
        networkx_arrays(graph, None, "y", None)


def test_a_graph_of_several_types_is_refused_in_a_sentence():
    data = HeteroData()
    data["person"].x = torch.eye(3)
    data["person", "knows", "person"].edge_index = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(UsageError, match=r"several types of nodes and edges.*to_homogeneous"):
        pyg_arrays(data)


def test_floats_of_whole_numbers_are_classes_without_a_point():
    graph = nx.Graph([(0, 1), (1, 2), (2, 3)])
    for node, side in enumerate((0.0, 1.0, float("nan"), 1.0)):
        graph.nodes[node]["side"] = side
    converted = Graph.from_networkx(graph, features=None, label="side")
    assert converted.classes == (0, 1)
    assert str(converted.classes[0]) == "0"
    assert converted.labels.tolist() == [0, 1, -1, 1]


@pytest.mark.parametrize("use", ["read", "fit"])
def test_graphs_of_pyg_are_refused_with_the_conversion(use):
    call = {"read": everynode.read, "fit": everynode.NodeClassifier().fit}[use]
    data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(UsageError, match=r"not a Data: call .*Graph\.from_pyg\(data\)"):
        call(data)
    several = HeteroData()
    several["page"].x = torch.ones(3, 2)
    several["page", "likes", "page"].edge_index = torch.tensor([[0], [1]])
    for refused in (call, everynode.Graph.from_pyg):
        with pytest.raises(UsageError, match="several types of nodes and edges"):
            refused(several)
