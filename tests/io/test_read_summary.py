"""What the summary says of every column and file."""

from __future__ import annotations

import everynode as en


def test_every_column_has_a_role_a_type_or_no_use():
    nodes = {"id": [1, 2, 3], "age": [4, 5, 9], "constant": [1, 1, 1], "label": ["a", "b", "a"]}
    edges = {"source": [1, 2], "target": [2, 3], "since": [2020, 2021]}
    summary = en.read(nodes, edges, features="age").summary
    assert {column.name: column.kind for column in summary.columns} == {
        "id": "id",
        "label": "label",
        "age": "number",
        "constant": "not used",
        "source": "source",
        "target": "target",
        "since": "not used",
    }
    assert (summary.nodes, summary.edges, summary.edge_rows) == (3, 2, 2)
    assert summary.files == {}


def test_edges_alone_have_no_columns_of_nodes():
    summary = en.read(edges={"source": [1, 2], "target": [2, 3]}).summary
    assert [column.kind for column in summary.columns] == ["source", "target"]
    assert summary.structural
