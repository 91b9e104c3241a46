"""Missing values: usual words, and the user's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import everynode as en


def test_what_else_is_missing_can_be_said(write):
    write(nodes_csv="id,x,label\n1,1,a\n2,2,b\n3,?,?\n4,5,b\n", edges_csv="1,2\n2,3\n")
    assert en.read("nodes.csv", "edges.csv").classes == ("?", "a", "b")
    graph = en.read("nodes.csv", "edges.csv", na=["?"])
    assert graph.classes == ("a", "b")
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    write(nodes_csv="id,x,label,split\n1,1,a,train\n2,2,b,val\n3,?,a,?\n4,5,b,test\n")
    assert [part.tolist() for part in en.read("nodes.csv", "edges.csv", na=["?"]).splits[0]] == [
        [0],
        [1],
        [3],
    ]


@pytest.mark.parametrize("kind", [int, float, str, "{}.0".format, "{},0".format])
def test_what_else_is_missing_is_compared_by_value_among_numbers(kind, notes, same):
    nodes = {
        "id": ["n0", "n1", "n2", "n3"],
        "x": [kind(x) for x in (3, -999, 5, 8)],
        "label": [*map(str, (0, 1, 1, -1))],
    }
    edges = {"source": ["n0"], "target": ["n1"]}
    graph = en.read(nodes, edges, na=["-999", "?"])
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    assert graph.dense_features[:, 1].tolist() == [0, 1, 0, 0]
    assert "not a number" not in notes(graph)
    one = en.read(
        {"id": ["n0"], "x": [kind(-999)]},
        {"source": ["n0"], "target": ["n0"]},
        feature_encoder=graph.feature_encoder,
    )
    assert one.dense_features.tolist() == [[0, 1]]
    assert same(en.read(nodes, edges, na=["-999.0"]), graph)


def test_what_else_is_missing_leaves_codes_alone():
    """007 is a code, 1.10 a version, and 1,000 a thousand: none of them is 7, 1.1 or 1."""
    nodes = {
        "id": [0, 1, 2, 3],
        "code": ["007", "7", "008", "008"],
        "version": ["1.10", "2.b", "2.b", "3.c"],
        "x": ["1,000", "2,500", "7", "8"],
    }
    graph = en.read(
        nodes,
        {"source": [0], "target": [1]},
        na=["7", "1.1", "1"],
        features="code:category,version,x",
    )
    assert graph.feature_encoder.feature_names == [
        "code = 007", "code = 008", "code is missing", "version = 1.10", "version = 2.b", "version = 3.c", "x", "x is missing",
    ]  # fmt: skip
    assert graph.dense_features[:, -1].tolist() == [0, 0, 1, 0]


def test_a_day_may_stand_for_a_missing_one():
    days = pa.array(np.array(["1900-01-01", "2020-01-31", "2021-01-31"], "datetime64[D]"))
    graph = en.read(
        {"id": [0, 1, 2], "day": days}, {"source": [0], "target": [1]}, na=["1900-01-01"]
    )
    assert graph.feature_encoder.feature_names == ["day", "day is missing"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.large_string()),
        pa.large_list(pa.string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_lists_of_words_in_any_of_arrows_types(kind):
    tags = pa.array([["a", "b"], ["a", "c"], None, [None, "a"], ["a", "b"]], kind)
    graph = en.read(
        pa.table({"id": range(5), "tags": tags}),
        {"source": [0, 1, 2, 3], "target": [1, 2, 3, 4]},
        features="tags:category",
    )
    assert graph.feature_encoder.feature_names == [
        "tags = a",
        "tags = a b",
        "tags = a c",
        "tags is missing",
    ]
    assert graph.dense_features.argmax(1).tolist() == [1, 2, 3, 0, 1]
