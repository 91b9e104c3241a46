"""Graphs as node-link JSON."""

from __future__ import annotations

import json

import pytest

import everynode as en
from everynode.errors import DataError


def save(folder, content):
    path = folder / "g.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def with_ids(*ids):
    return {
        "nodes": [{"id": value, "team": "abb"[i]} for i, value in enumerate(ids)],
        "links": [{"source": ids[0], "target": ids[-1]}],
    }


REFUSED = {
    "1 and 1.0": (with_ids(1, 2, 1.0), r"node 3, column 'id': id '1' appears twice"),
    "1 and true": (with_ids(1, 2, True), r"node 3: the id is true"),
    "1 and '1'": (with_ids(1, 2, "1"), r"node 3, column 'id': id '1' appears twice"),
    "a fraction": (with_ids(1, 2, 2.5), r"node 3: the id is 2.5"),
    "a float beyond exact numbers": (with_ids(1, 2, 1e17), r"node 3: the id is 1e\+17"),
    "null": (with_ids(1, None, 2), r"node 2: the id is null"),
    "a list": (with_ids(1, [2], 3), r"node 2: the id is \[2\]"),
    "some ids absent": (
        {"nodes": [{"id": 1}, {"team": "a"}], "links": [{"source": 1, "target": 1}]},
        "node 2 has no 'id'",
    ),
    "no target": ({"nodes": [{"id": 1}], "links": [{"source": 1}]}, "edge 1 has no 'target'"),
    "a true end": (
        {"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": True, "target": 2}]},
        "edge 1: the source is true",
    ),
    "not an object": ({"nodes": [{"id": 1}, 7], "links": []}, "node 2 is not an object"),
    "nodes by name": ({"nodes": {"a": 1}, "links": []}, "'nodes' must be a list"),
    "a list at the top": ([1, 2], "It must hold"),
    "no edges": ({"nodes": [{"id": 1}]}, "It must hold"),
    "edges and links": (
        {"nodes": [{"id": 1}], "links": [{"source": 1, "target": 1}], "edges": [{"source": 1, "target": 1}]},
        "both 'edges' and 'links'",
    ),
    "directed as a word": ({**with_ids(1, 2), "directed": "no"}, "'directed' must be true or false"),
    "nodes twice": ('{"nodes": [{"id": 1}], "nodes": [{"id": 2}], "links": []}', "'nodes' twice"),
    "id twice": ('{"nodes": [{"id": 1, "id": 2}], "links": []}', "'id' twice"),
    "deep": ('{"nodes": ' + "[" * 100_000, "is not valid json"),
    "nothing": ("", "is not valid json"),
    "bytes": ('{"nodes": \udcff', "is not valid json"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path, case):
    content, message = REFUSED[case]
    path = tmp_path / "g.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=message) as caught:
        en.read(path)
    assert "\n" not in str(caught.value)


def test_nodes_without_ids_are_numbered_from_0(tmp_path):
    content = {
        "nodes": [{"team": "a"}, {"team": "b"}, {"team": "a"}],
        "links": [{"source": 0, "target": 2}],
    }
    graph = en.read(save(tmp_path, content), label="team")
    assert graph.node_ids == (0, 1, 2)
    assert graph.edges.tolist() == [[0], [2]]


def test_whole_floats_are_whole_numbers(tmp_path):
    graph = en.read(save(tmp_path, with_ids(1.0, 2, 3.0)), label="team")
    assert graph.node_ids == (1, 2, 3)


def test_attributes_and_direction(tmp_path):
    content = {
        "directed": True,
        "nodes": [{"id": "a", "age": 3}, {"id": "b", "age": 4, "vip": True}],
        "edges": [
            {"source": "a", "target": "b", "weight": 2.0, "key": 0},
            {"source": "b", "target": "a", "weight": 1.0, "key": 0},
        ],
    }
    graph = en.read(save(tmp_path, content), directed=True)
    assert graph.summary.weighted
    kinds = {column.name: column.kind for column in graph.summary.columns}
    assert kinds["age"] == "number"
    assert kinds["key"] == "not used"
