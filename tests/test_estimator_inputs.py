"""Graphs from a Graph or from arrays; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.estimator_inputs import moved, training_graph
from everynode.graph.label_encoding import encode


def test_arrays_become_a_graph():
    model, labels = NodeClassifier(), np.array([0, 1, -1])
    edges = np.array([[0, 1], [1, 2]])
    graph = training_graph(model, np.eye(3), labels, edges, None, encode(labels))
    assert (graph.num_nodes, graph.num_edges, model.n_features_in_) == (3, 2, 3)
    assert graph.labels.tolist() == [0, 1, -1]
    with pytest.raises(DataError, match="3 rows of X, 2 labels"):
        training_graph(model, np.eye(3), labels[:2], edges, None, encode(labels[:2]))


def test_a_graph_has_its_own_labels():
    graph = generate(20, 30, 4, 2)
    assert training_graph(NodeClassifier(), graph, None, None, None, None) is graph
    with pytest.raises(UsageError, match="has its own labels and edges"):
        training_graph(NodeClassifier(), graph, graph.labels, None, None, None)


def test_a_graph_on_its_device_is_not_copied():
    graph = generate(20, 30, 4, 2)
    assert moved(graph, torch.device("cpu")) is graph
