"""Reader of GEXF: nodes and edges with their attributes, in the order of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everynode.errors import DataError
from everynode.io.column_names import mark_reserved
from everynode.io.records import Records
from everynode.io.summary import Notes, counted
from everynode.io.xml_files import convert, parse_xml, required

#: Attributes of the element that become columns; GEXF's label is a caption.
NODE_COLUMNS = {"id": "id", "label": "name"}
EDGE_COLUMNS = {
    "source": "source",
    "target": "target",
    "weight": "weight",
    "id": "id",
    "label": "name",
}


def read_gexf(path: Path, notes: Notes) -> tuple[Records, Records, bool]:
    """Return the nodes and edges of a GEXF file, and whether its edges are directed.

    If an attribute changes over time, the last value is used, with a warning.
    """
    handler = _Gexf(path)
    parse_xml(path, "gexf", handler)
    if handler.num_repeated:
        notes.warn(
            f"{counted(handler.num_repeated, 'attribute')} of {path} have several values, as in a "
            "graph that changes over time. The last value is used.",
            handler.num_repeated,
        )
    return handler.nodes, handler.edges, handler.directed


class _Gexf:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes, self.edges = Records(), Records()
        self.directed = False
        self.num_repeated = 0
        self._num_graphs = 0
        #: Class ("node" or "edge"), then id, to title, type and default.
        self._declared: dict[str, dict[str, list[Any]]] = {"node": {}, "edge": {}}
        self._class = "node"
        self._attribute: list[Any] | None = None
        #: The nodes and edges around the current element: kind, line, columns, attributes.
        self._owners: list[tuple[str, int, dict[str, Any], dict[str, Any]]] = []

    def start(self, name: str, attributes: dict[str, str], parent: str, line: int) -> None:
        where = f"{self.path}, line {line}"
        if not parent and name != "gexf":
            raise DataError(f"{self.path} is not valid gexf (its root is <{name}>).")
        if name == "graph":
            self._num_graphs += 1
            if self._num_graphs > 1:
                raise DataError(f"{where}: a second graph begins. Keep one graph per file.")
            self.directed = attributes.get("defaultedgetype") == "directed"
        elif name == "attributes":
            self._class = attributes.get("class", "node")
        elif name == "attribute" and self._class in self._declared:
            identity = required(attributes, "id", f"{where}: an attribute")
            title, type_name = attributes.get("title", identity), attributes.get("type", "string")
            self._attribute = [title, type_name, None]
            self._declared[self._class][identity] = self._attribute
        elif name == "node":
            self._open("node", NODE_COLUMNS, attributes, line, ("id",))
        elif name == "edge":
            self._open("edge", EDGE_COLUMNS, attributes, line, ("source", "target"))
            self._check_direction(attributes, where)
        elif name == "attvalue" and self._owners:
            self._read_value(attributes, where)

    def _open(
        self,
        kind: str,
        columns: dict[str, str],
        attributes: dict[str, str],
        line: int,
        needed: tuple[str, ...],
    ) -> None:
        where = f"{self.path}, line {line}"
        for name in needed:
            required(attributes, name, f"{where}: {'an edge' if kind == 'edge' else 'a node'}")
        values: dict[str, Any] = {
            column: attributes[name] for name, column in columns.items() if name in attributes
        }
        if kind == "edge" and "weight" in values:
            values["weight"] = convert(values["weight"], "double", where, "weight")
        self._owners.append((kind, line, values, {}))

    def _check_direction(self, attributes: dict[str, str], where: str) -> None:
        declared = attributes.get("type", "").lower()
        differs = declared == ("undirected" if self.directed else "directed")
        if differs or (declared == "mutual" and self.directed):
            raise DataError(
                f"{where}: an edge is {declared}, unlike the default of the graph. Make all edges "
                "directed, or none."
            )

    def _read_value(self, attributes: dict[str, str], where: str) -> None:
        kind, _, _, values = self._owners[-1]
        identity = attributes.get("for", attributes.get("id"))
        if identity not in self._declared[kind]:
            raise DataError(f"{where}: attribute {identity!r} is not declared. Export it again.")
        title, type_name, _ = self._declared[kind][identity]
        self.num_repeated += title in values
        values[title] = convert(attributes.get("value", ""), type_name, where, title)

    def end(self, name: str, text: str, parent: str, line: int) -> None:
        if name == "default" and parent == "attribute" and self._attribute:
            title, type_name, _ = self._attribute
            self._attribute[2] = convert(text, type_name, f"{self.path}, line {line}", title)
        elif name == "attribute":
            self._attribute = None
        elif name in ("node", "edge") and self._owners:
            kind, first_line, columns, values = self._owners.pop()
            for title, _, default in self._declared[kind].values():
                if default is not None:
                    values.setdefault(title, default)
            records = self.nodes if kind == "node" else self.edges
            records.add({**columns, **mark_reserved(values, columns)}, first_line)
