"""The features of a node table: which columns are used, and how the blocks are joined."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en

EDGES = {"source": [1, 2], "target": [2, 3]}


def test_the_layout_of_gephi_is_left_out_unless_it_is_named():
    nodes = {"id": [1, 2, 3], "age": [4, 5, 9]}
    nodes |= {name: [0.1, 0.2, 0.4] for name in ("x", "y", "r", "g", "b")}
    graph, named = en.read(nodes, EDGES), en.read(nodes, EDGES, features="age,x,y")
    assert [c.name for c in graph.feature_encoder.columns] == ["age"]
    assert [c.name for c in named.feature_encoder.columns] == ["age", "x", "y"]
    (repair,) = (line for line in graph.summary.lines() if "Gephi" in line)
    assert "Columns x, y, r, g, b left out" in repair


def test_a_table_without_a_usable_column_has_the_features_of_its_edges():
    graph = en.read({"id": [1, 2, 3], "same": [7, 7, 7]}, EDGES)
    assert graph.summary.structural
    assert graph.num_features > 0


def test_structure_comes_after_the_columns():
    nodes = {"id": [1, 2, 3], "age": [4.0, 5.0, 9.0]}
    alone = en.read(nodes, EDGES, features="age").dense_features.numpy()
    both = en.read(nodes, EDGES, features="age,structure").dense_features.numpy()
    assert both.shape[1] > alone.shape[1]
    np.testing.assert_array_equal(both[:, : alone.shape[1]], alone)


def test_a_matrix_of_another_width_is_refused(tmp_path):
    edges = np.array([[0, 1], [1, 2]])
    for name, width in (("first", 4), ("second", 5)):
        x = np.eye(3, width)
        np.savez(tmp_path / f"{name}.npz", x=x, edge_index=edges, y=[0, 1, 0])
    encoder = en.read(tmp_path / "first.npz").feature_encoder
    with pytest.raises(en.DataError, match=r"must hold a matrix of 4 features\. It has 5"):
        en.read(tmp_path / "second.npz", feature_encoder=encoder)
