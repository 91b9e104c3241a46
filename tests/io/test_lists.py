"""Lists in a cell become one feature for each element."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import everynode as en
from everynode.errors import DataError
from everynode.io.lists import find_separator, parse_lists

EDGES = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 4]}
TAGS = [["jazz", "rock"], ["jazz"], ["rock", "folk music"], ["folk music", "jazz"], ["rock"]]
NAMES = ["tags has folk music", "tags has jazz", "tags has rock"]
HOT = [[0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 1]]


def read(tags, **options):
    table = {"id": list(range(5)), "tags": tags, "label": ["a", "b", "a", "b", None]}
    return en.read(table, EDGES, **options)


@pytest.mark.parametrize(
    "write",
    ["; ".join, ";".join, "|".join, json.dumps, str, list],
    ids=["; ", ";", "|", "json", "python", "list"],
)
def test_every_writing_gives_the_same_features(write):
    graph = read([write(tags) for tags in TAGS])
    assert graph.feature_encoder.feature_names == NAMES
    assert graph.dense_features.tolist() == HOT
    assert graph.feature_encoder.columns[0].summary.detail == "3 elements"


def test_commas_only_where_the_column_is_declared():
    commas = [", ".join(tags) for tags in TAGS]
    assert read(commas, features="tags:list").dense_features.tolist() == HOT
    assert read(commas).feature_encoder.columns[0].kind != "list"


def test_a_model_knows_the_elements_in_any_writing(notes):
    encoder = read([";".join(tags) for tags in TAGS]).feature_encoder
    encoder = type(encoder).from_dict(encoder.to_dict())
    assert read(TAGS, feature_encoder=encoder).dense_features.tolist() == HOT
    new = read(["jazz;jazz", "opera", None, "rock", "folk music;opera"], feature_encoder=encoder)
    assert new.dense_features.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert "1 list without a known element" in notes(new)


def test_missing_lists_have_a_feature():
    graph = read(["a;b", "", "b;a", "a", None])
    assert graph.feature_encoder.feature_names[-1] == "tags is missing"
    assert graph.dense_features.tolist() == [[1, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_rare_elements_have_no_feature():
    assert read(["a;b", "a;b", "a;rare", "b", "a"]).feature_encoder.feature_names == [
        "tags has a",
        "tags has b",
    ]
    declared = read(["a;b", "c;d", "e", "f", "g"], features="tags:list").feature_encoder
    assert declared.columns[0].reason == "no element occurs in several rows"


def test_texts_are_no_lists():
    texts = [f"word{i}; a long sentence follows here and there, number {i}" for i in range(9)]
    assert find_separator(pa.chunked_array([texts])) == ""
    assert find_separator(pa.chunked_array([["a", "b", "a"]])) == ""


def test_broken_lists_stay_text():
    for cells in (["[a, b]", "[c]"], ["['a']", "b"], ['[{"a": 1}]', "[]"], ["[[1]]", "[[2]]"]):
        column = pa.chunked_array([cells])
        assert parse_lists(column) is column
    mixed = parse_lists(pa.chunked_array([['[1, "a"]', "[null]"]]))
    assert mixed.to_pylist() == [["1", "a"], [None]]


def test_a_node_has_one_label():
    table = {"id": [0, 1, 2], "label": [["a"], ["b"], ["a"]]}
    edges = {"source": [0, 1], "target": [1, 2]}
    assert en.read(table, edges).classes == ("a", "b")
    with pytest.raises(DataError, match=r"record 2, column 'label' holds several labels \(a, b;"):
        en.read({**table, "label": [["a"], ["a", "b"], ["b"]]}, edges)
