"""The parts of a prediction, in the user's names."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en
from everynode.explanations.changes import Surroundings
from everynode.explanations.parts import Part, node_name, node_parts, own_parts


@pytest.mark.parametrize("node", [0, 1, 17])
def test_own_parts_are_the_columns_and_the_words_of_the_node(graph, node):
    parts = own_parts(Surroundings(graph), node)
    row = Surroundings(graph).row(node)
    names = graph.feature_encoder.feature_names
    words = {part.name for part in parts if part.kind == "word"}
    assert words == {n for n, v in zip(names, row, strict=True) if v and n.startswith("about: ")}
    columns = {part.name: part for part in parts if part.kind == "column"}
    assert set(columns) == {"height", "city"}
    (city,) = (names[i][7:] for i in columns["city"].features if row[i])
    assert columns["city"].value == city
    assert 130 < float(columns["height"].value) < 210
    assert columns["height"].text == f"height = {columns['height'].value}"


def test_values_are_shown_as_the_user_wrote_them():
    people = {
        "id": [1, 2, 3, 4, 5, 6],
        "joined": ["2020-01-05", "2021-03-01", "2020-06-01", None, "2019-01-01", "2020-02-02"],
        "pay": [1.0, 10.0, 100.0, 1000.0, 1e5, 1e6],
        "tags": ["a|b", "b", "a|c", "c", "a", "b|c"],
        "ok": [True, False, True, True, False, True],
        "team": ["x", "y", "x", "y", "x", None],
    }
    graph = en.read(
        people, {"source": [1, 2], "target": [2, 3]}, label="team",
        features="joined:date,pay:number,tags:list,ok:boolean",
    )  # fmt: skip
    by_node = [{p.name: p.value for p in own_parts(Surroundings(graph), i)} for i in range(4)]
    assert by_node[0]["joined"] == "2020-01-05"
    assert by_node[3]["joined"] == "missing"
    assert [by_node[i]["pay"] for i in range(4)] == ["1", "10", "100", "1000"]
    assert {"tags has a", "tags has b"} < set(by_node[0])
    assert by_node[0]["ok"] == "yes"


def test_nodes_nearby_are_named_with_their_labels(graph):
    surroundings = Surroundings(graph)
    parts = node_parts(surroundings, 4)
    near = set(surroundings.neighbors(np.array([4])).tolist())
    assert {part.nodes[0] for part in parts if part.kind == "neighbor"} == near
    further = [part for part in parts if part.kind == "labeled node"]
    assert further
    for part in parts:
        (other,) = part.nodes
        assert part.name == f"Name {other} (p{other})" == node_name(graph, other)
        label = int(graph.labels[other])
        assert part.value == ("" if label < 0 else graph.classes[label])
    assert all(part.nodes[0] not in near and part.value for part in further)
    assert Part("neighbor", "Ann", "red", nodes=(1,)).text == "neighbor Ann (label red)"


def test_a_graph_without_names_has_numbered_features_and_nodes():
    graph = en.Graph.from_arrays([[1.0, 0.0], [3.0, 0.0], [2.0, 0.5]], [[0], [1]], [0, 1, 0])
    parts = own_parts(Surroundings(graph), 0)
    assert [(part.name, part.value) for part in parts] == [("feature 0", "1")]
    assert [part.name for part in node_parts(Surroundings(graph), 0)] == ["1"]
