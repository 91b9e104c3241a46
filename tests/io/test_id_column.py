"""The id column is the one that matches the edges, and repeated rows are dropped or refused."""

from __future__ import annotations

import pytest

import everynode as en

CUSTOMERS = {
    "name": [f"Firma {i}" for i in range(20)],
    "customer_id": [f"K{i:03}" for i in range(20)],
    "umsatz": [float(i * i % 7) for i in range(20)],
    "label": ["a", "b"] * 10,
}
LINKS = {"source": [f"K{i:03}" for i in range(19)], "target": [f"K{i:03}" for i in range(1, 20)]}


def test_the_column_that_matches_the_edges_is_the_id_and_not_the_name(notes):
    graph = en.read(CUSTOMERS, LINKS)
    assert graph.feature_encoder.roles["id"] == "customer_id"
    assert graph.node_ids[0] == "K000"
    assert graph.num_edges == 19
    assert "ids of the table of nodes are in column 'customer_id'" in notes(graph)


def test_a_named_id_and_a_matching_one_stay():
    edges = {"source": ["Firma 1"], "target": ["Firma 2"]}
    assert en.read(CUSTOMERS, edges).feature_encoder.roles["id"] == "name"
    with pytest.raises(en.DataError, match="--id"):
        en.read(CUSTOMERS, LINKS, id="name")


def test_added_nodes_that_leave_the_given_ones_alone_are_a_warning():
    graph = en.read(CUSTOMERS, LINKS, id="name", unknown="add")
    (text,) = [note.text for note in graph.summary.warnings if "have no edge" in note.text]
    assert text.startswith("20 of 20 nodes in the table of nodes have no edge, while 20 nodes")
    assert "--id" in text
    assert "have no edge" not in str(en.read(CUSTOMERS, LINKS, unknown="add").summary)


def test_identical_rows_are_dropped_and_counted(notes):
    twice = {name: values + values[3:5] for name, values in CUSTOMERS.items()}
    graph = en.read(twice, LINKS)
    assert graph.num_nodes == 20
    assert "2 rows of the table of nodes identical to another, dropped" in notes(graph)
    plain = en.read(CUSTOMERS, LINKS)
    assert graph.node_ids == plain.node_ids
    assert graph.labels.tolist() == plain.labels.tolist()


def test_conflicting_rows_are_refused():
    twice = {name: values + values[3:5] for name, values in CUSTOMERS.items()}
    twice["umsatz"] = [*twice["umsatz"][:-1], 99.0]
    with pytest.raises(en.DataError, match=r"'K004' appears twice .* --id"):
        en.read(twice, LINKS)
