"""Edges: weights, unknown nodes, self-loops and repetitions."""

from __future__ import annotations

import json

import pytest

import everynode as en
from everynode.errors import UsageError
from everynode.io import FeatureEncoder

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""


LINKS = "source,target\nann,bob\nbob,cas\ncas,dan\ndan,eve\n"


def test_a_weight_column_is_used_unless_told_otherwise(write, notes):
    write(nodes_csv=PEOPLE, edges_csv="source,target,weight\nann,bob,2.5\nbob,cas,0\ncas,dan,1\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == pytest.approx([2.5 / 1.75, 1 / 1.75])
    assert "1 edge of edges.csv with weight 0 dropped (row 3)." in notes(graph)
    plain = en.read("nodes.csv", "edges.csv", label="team", weight="none")
    assert plain.weights is None
    assert plain.num_edges == 3


def test_loops_repeats_and_stray_spaces(write, notes):
    write(
        nodes_csv=PEOPLE.replace("red", " red "),
        edges_csv=LINKS + "\nann,ann\nann,bob\n bob , cas\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.classes == ("blue", "red")
    assert graph.num_edges == 4
    said = notes(graph)
    assert "2 labels in column 'team' trimmed: surrounding spaces removed (rows 2, 4)." in said
    assert "1 self-loop of edges.csv dropped (row 7)." in said
    assert "2 repeated edges of edges.csv dropped (rows 8, 9)." in said
    assert "edges.csv: 1 blank row skipped." in said


def test_edges_to_unknown_nodes(write, refused, notes):
    write(nodes_csv=PEOPLE, edges_csv=LINKS + "ann,zoe\nyan,bob\nxi,wu\nvic,ann\n")
    refused(
        "4 edges",
        "row 6: 'zoe'; row 7: 'yan'; row 8: 'xi'",
        "unknown='add' or 'drop'",
        label="team",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert graph.num_edges == 4
    assert "4 edges of edges.csv to unknown nodes dropped" in notes(graph)
    more = en.read("nodes.csv", "edges.csv", label="team", unknown="add")
    assert more.node_ids == ("ann", "bob", "cas", "dan", "eve", "yan", "xi", "vic", "zoe", "wu")
    assert more.num_edges == 8
    assert more.labels[5:].tolist() == [-1] * 5
    assert "5 nodes added that only edges.csv has ('yan')." in notes(more)
    assert more.summary.files["nodes.csv"].startswith("5 rows, "), (
        "those of the file, without the nodes that were added"
    )
    assert (
        en.read(
            "nodes.csv", {"source": ["ann"], "target": ["bob"]}, label="team", unknown="add"
        ).num_nodes
        == 5
    )
    with pytest.raises(UsageError, match=r"'dorp'.*did you mean 'drop'"):
        en.read("nodes.csv", "edges.csv", unknown="dorp")


def test_what_becomes_of_edges_to_unknown_nodes_is_in_the_feature_encoder(write, refused):
    write(nodes_csv=PEOPLE, edges_csv=LINKS + "ann,zoe\n")
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(
            json.dumps(
                en.read(
                    "nodes.csv", "edges.csv", label="team", unknown="drop"
                ).feature_encoder.to_dict()
            )
        )
    )
    assert en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder).num_nodes == 5
    assert (
        en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder, unknown="add").num_nodes
        == 6
    )
    refused("1 edge", unknown="refuse", feature_encoder=feature_encoder)


@pytest.mark.parametrize(
    "edges", ["source,target\nann,ann\nbob,bob\n", "source,target,weight\nann,bob,0\ncas,cas,2\n"]
)
def test_edges_that_join_nothing_are_warned_of(write, edges):
    """Only a count of what was dropped told that a network was trained without any edge."""
    write(nodes_csv=PEOPLE, edges_csv=edges)
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.num_edges == 0
    assert any(
        "No edge of edges.csv joins two nodes" in warning.text for warning in graph.summary.warnings
    )


def test_dropping_edges_must_leave_some(write, refused):
    """All were dropped and counted as repaired, and a network was trained without any."""
    write(nodes_csv=PEOPLE, edges_csv="source,target\nx1,x2\nx2,ann\n")
    refused(
        "No edge of edges.csv joins two of the 5 nodes in the node table (row 2: 'x1'; row 3: 'x2')",
        "Name the right columns",
        label="team",
        unknown="drop",
    )
    write(edges_csv="source,target\nx1,x2\nx2,ann\nann,bob\n")
    graph = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert [note.text for note in graph.summary.warnings] == [
        "2 edges of edges.csv to unknown nodes dropped (row 2: 'x1'; row 3: 'x2'), more than half of its 3."
    ]
    write(edges_csv="source,target\nx1,x2\ncas,bob\nann,bob\n")
    assert not en.read("nodes.csv", "edges.csv", label="team", unknown="drop").summary.warnings


def test_ids_that_differ_only_in_capitals_or_spaces_are_named(write, refused, notes):
    write(nodes_csv=PEOPLE, edges_csv="source,target\nx1,ann\nBob,ann\nCAS,Ann\n")
    alike = "; 'Bob' and 'bob' differ only in capitals or spaces"
    refused(
        f"row 3: 'Bob'; row 4: 'CAS'){alike}. Write the ids alike, name the right columns",
        label="team",
    )
    refused(
        f"row 4: 'CAS'){alike}. Write the ids alike", "unknown='add'", label="team", unknown="drop"
    )
    added = en.read("nodes.csv", "edges.csv", label="team", unknown="add")
    first, second = (note.text for note in added.summary.warnings)
    assert first == f"4 nodes added that only edges.csv has ('x1'){alike}."
    assert second.startswith("4 of 5 nodes in nodes.csv have no edge, while 4 nodes were added.")
    write(edges_csv="source,target\nann,bob\nbob,cas\nann, c a s\n")
    dropped = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert (
        "1 edge of edges.csv to unknown nodes dropped (row 4: 'c a s'); 'c a s' and 'cas' differ only in capitals or spaces."
        in notes(dropped)
    )


def test_edges_in_both_directions_are_counted_once_and_it_is_said(write, notes):
    write(nodes_csv=PEOPLE, edges_csv="source,target,weight\nann,bob,1\nbob,ann,3\nbob,cas,2\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == [1.5, 1.0]
    assert (
        "1 edge of edges.csv listed in both directions, counted once; the largest weight is kept."
        in notes(graph)
    )
    assert "directions" not in notes(en.read("nodes.csv", "edges.csv", label="team", directed=True))
    write(
        edges_csv="source,target\nann,bob\nbob,ann\n"
    )  # every one of them: that is how it is written
    assert "directions" not in notes(en.read("nodes.csv", "edges.csv", label="team"))


def test_a_feature_encoder_keeps_the_unit_of_weights_that_are_all_one(write):
    """They are none only if the feature encoder's weights were one on average too."""
    write(
        nodes_csv=PEOPLE,
        edges_csv="source,target,weight\nann,bob,2\nbob,cas,6\n",
        new_csv="source,target,weight\nann,bob,1\nbob,cas,1\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    assert feature_encoder.weight_unit == 4
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.25,
        0.25,
    ]
    assert en.read("nodes.csv", "new.csv", label="team").weights is None


def test_a_feature_encoder_reads_commas_in_weights_as_before(write, refused):
    """1,250 alone may be a thousand or a fraction: whatever it was taken for, it is the same in the next file."""
    write(
        nodes_csv=PEOPLE,
        edges_csv="source;target;weight\nann;bob;1,250\nbob;cas;3,750\n",
        new_csv="source;target;weight\nann;bob;1,250\nbob;cas;3,75\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == [0.5, 1.5]
    refused(
        "new.csv, row 3, column 'weight' holds '3,75'",
        edges="new.csv",
        feature_encoder=graph.feature_encoder,
    )
    write(edges_csv="source;target;weight\nann;bob;0,250\nbob;cas;3,750\n")
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    assert feature_encoder.weight_unit == 2
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.625,
        1.875,
    ]


def test_commas_in_weights_that_may_be_either_are_refused_as_in_features(write, refused):
    write(
        nodes_csv=PEOPLE,
        edges_csv="source;target;weight\nann;bob;1\nbob;cas;3\n",
        new_csv="source;target;weight\nann;bob;1,500\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    refused(
        "Column 'weight' of new.csv holds 1,500, which may mean 1.500 or 1500",
        edges="new.csv",
        feature_encoder=feature_encoder,
    )
    write(new_csv="source;target;weight\nann;bob;1,500\nbob;cas;2,5\n")
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.75,
        1.25,
    ]
    write(new_csv="source;target;weight\nann;bob;12,5\nbob;cas;1.234\ncas;dan;1.5\n")
    refused(
        "Column 'weight' of new.csv holds 1.234 beside 12,5, which may mean 1.234 or 1234",
        edges="new.csv",
        label="team",
    )
