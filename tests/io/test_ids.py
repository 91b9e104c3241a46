"""Ids: compared as text, then by value."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import everynode as en
from everynode.errors import DataError


def test_ids_that_look_like_numbers_are_text_in_one_file(write):
    write(
        nodes_csv="id,x,label\n007,1,a\n7,2,b\n08,3,b\n", edges_csv="source,target\n007,7\n7,08\n"
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.node_ids == ("007", "7", "08")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ("7,8,9", "7.0,8.0,9.0"),
        ("007,008,9", "7,8,9"),
        ("7.0,8.0,9.0", "7,8,9"),
        ("7,8,9", "07,8,+9"),
        ("-7,8,9", "-7.0,8.0,9.0"),
        ("100000,12000000,7", "1e+05,1.2e+07,7"),
    ],  # as R writes them
)
def test_ids_written_in_two_ways_match_by_value(write, nodes, edges, notes):
    a, b, c = edges.split(",")
    rows = "\n".join(f"{i},{x},{x % 2}" for x, i in enumerate(nodes.split(",")))
    write(nodes_csv=f"id,x,label\n{rows}\n", edges_csv=f"source,target\n{a},{b}\n{b},{c}\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert "matched by value" in notes(graph)


@pytest.mark.parametrize(
    ("node", "end"),
    [("1.1", "1.10"), ("10", "1e1"), ("0", "0e12"), ("5", "5e0"), ("1e1", "10"), ("2.50", "2.5")],
)
def test_ids_that_are_versions_or_codes_do_not_match_by_value(write, node, end, refused):
    write(nodes_csv=f"id,x,label\n{node},1,a\nb,2,b\n", edges_csv=f"source,target\nb,{end}\n")
    refused(f"row 2: '{end}'")
    assert en.read("nodes.csv", "edges.csv", unknown="add").node_ids == (node, "b", end)


def test_an_id_that_could_be_two_nodes_is_refused(write, refused):
    write(nodes_csv="id,x,label\n007,1,a\n7,2,b\n", edges_csv="source,target\n007,7.0\n")
    refused("'7.0'", "row 2", "'drop'")


def test_ids_from_pandas_that_a_missing_value_made_fractions():
    nodes = pandas.DataFrame({"id": [3.0, 5.0], "x": [1, 2], "label": ["a", "b"]})
    graph = en.read(nodes, {"source": [3], "target": ["5"]})
    assert graph.node_ids == (3, 5)
    assert graph.num_edges == 1
    with pytest.raises(DataError, match=r"record 2.*2\.5"):
        en.read(nodes.assign(id=[1.0, 2.5]), {"source": [3], "target": [5]})


@pytest.mark.parametrize(("kind", "digits"), [("float64", 53), ("float32", 24)])
def test_ids_that_lost_digits_as_fractions_are_refused(kind, digits, refused):
    """Beyond 2^53 two whole numbers are one fraction: an edge would be given to the wrong node without a word."""
    ids = [2**digits - 1, 2**digits, 2**digits + 1]
    nodes = {"id": ids, "x": [1, 2, 5], "label": ["a", "b", "b"]}
    edges = pandas.DataFrame({"source": ids[:2], "target": ids[1:]})
    assert en.read(nodes, edges).edges.tolist() == [[0, 1], [1, 2]]
    refused(
        "record 2, column 'source'",
        "lost digits",
        "text",
        "whole numbers",
        nodes=nodes,
        edges=edges.astype(kind),
    )
    assert (
        en.read(nodes, edges.iloc[:1].assign(target=ids[0]).astype(kind), unknown="drop").num_edges
        == 0
    )
    refused(
        "record 1, column 'label' holds",
        "lost digits",
        nodes={**nodes, "label": [2.0**60, 1.0, 1.0]},
        edges=edges,
    )
    refused(
        "record 2, column 'target' holds inf. Ids are text or whole numbers",
        nodes=nodes,
        edges=edges.assign(target=[1, np.inf]),
    )
