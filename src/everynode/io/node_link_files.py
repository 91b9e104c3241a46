"""Reader of node-link JSON: nodes and links with their attributes, in the order of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everynode.errors import DataError
from everynode.io.formats import open_binary
from everynode.io.records import Records
from everynode.storage.json_text import parse_json

LAYOUT = 'It must hold {"nodes": [...], "links": [...]}.'
#: From here on, several whole numbers share one float.
EXACT = 2.0**53


def read_node_link(path: Path) -> tuple[Records, Records, bool]:
    """Return the nodes and edges of a JSON file, and whether its edges are directed.

    If no node has an id, nodes are numbered from 0.
    """
    with open_binary(path) as file:
        content = file.read()
    try:
        graph = parse_json(content)
    except ValueError as error:
        raise DataError(f"{path} is not valid json ({str(error)[:80]}). {LAYOUT}") from None
    if not isinstance(graph, dict) or "nodes" not in graph:
        raise DataError(f"{path} is not valid json of a graph. {LAYOUT}")
    if graph.get("edges") and graph.get("links"):
        raise DataError(f"{path} holds both 'edges' and 'links'. Keep one of them.")
    edge_list = "edges" if graph.get("edges") or "links" not in graph else "links"
    if edge_list not in graph:
        raise DataError(f"{path} holds no edges. {LAYOUT}")
    directed = graph.get("directed", False)
    if not isinstance(directed, bool):
        raise DataError(f"{path}: 'directed' must be true or false. Got {json.dumps(directed)}.")
    nodes = _objects(graph["nodes"], "nodes", "node", path)
    are_numbered = not any("id" in node for node in nodes)
    if are_numbered:
        nodes = [{"id": number, **node} for number, node in enumerate(nodes)]
    edges = _objects(graph[edge_list], edge_list, "edge", path)
    return (
        _records(nodes, "node", ("id",), path),
        _records(edges, "edge", ("source", "target"), path),
        directed,
    )


def _objects(values: Any, name: str, unit: str, path: Path) -> list[dict[str, Any]]:
    if not isinstance(values, list):
        raise DataError(f"{path}: {name!r} must be a list of objects. {LAYOUT}")
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise DataError(f"{path}, {unit} {number} is not an object. {LAYOUT}")
    return values


def _records(objects: list[dict[str, Any]], unit: str, ids: tuple[str, ...], path: Path) -> Records:
    records = Records()
    for number, values in enumerate(objects, 1):
        where = f"{path}, {unit} {number}"
        for name in ids:
            if name not in values:
                raise DataError(f"{where} has no {name!r}.")
        checked = {name: _check_id(values[name], name, where) for name in ids}
        records.add({**values, **checked})
    return records


def _check_id(value: Any, name: str, where: str) -> str | int:
    """Return an id as text or as a whole number, and refuse every other value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise DataError(
        f"{where}: the {name} is {json.dumps(value)[:40]}. Ids are text or whole numbers."
    )
