"""Reader of GraphML: nodes and edges with their attributes, in the order of the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everynode.errors import DataError
from everynode.io.column_names import mark_reserved
from everynode.io.records import Records
from everynode.io.xml_files import convert, parse_xml, required


@dataclass
class _Key:
    """A declared attribute."""

    name: str
    type: str
    #: "node", "edge", "graph" or "all".
    domain: str
    default: Any = None


@dataclass
class _Owner:
    """A node or an edge whose attributes are being read."""

    kind: str
    line: int
    ends: dict[str, Any]
    values: dict[str, Any]


def read_graphml(path: Path) -> tuple[Records, Records, bool]:
    """Return the nodes and edges of a GraphML file, and whether its edges are directed.

    Nodes of nested graphs are read too. Hyperedges are refused, as are several graphs in one file.
    """
    handler = _GraphML(path)
    parse_xml(path, "graphml", handler)
    return handler.nodes, handler.edges, handler.directed


class _GraphML:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes, self.edges = Records(), Records()
        self.directed = False
        self._num_graphs = 0
        self._keys: dict[str, _Key] = {}
        self._key: _Key | None = None
        self._owners: list[_Owner] = []

    def start(self, name: str, attributes: dict[str, str], parent: str, line: int) -> None:
        where = f"{self.path}, line {line}"
        if not parent and name != "graphml":
            raise DataError(f"{self.path} is not valid graphml (its root is <{name}>).")
        if name == "key":
            identity = required(attributes, "id", f"{where}: a key")
            self._key = self._keys[identity] = _Key(
                attributes.get("attr.name", identity),
                attributes.get("attr.type", "string"),
                attributes.get("for", "all"),
            )
        elif name == "graph":
            self._start_graph(attributes, parent, where)
        elif name == "node":
            identity = required(attributes, "id", f"{where}: a node")
            self._owners.append(_Owner("node", line, {"id": identity}, {}))
        elif name == "edge":
            ends = {end: required(attributes, end, f"{where}: an edge") for end in ENDS}
            self._check_direction(attributes, where)
            values = {"id": attributes["id"]} if "id" in attributes else {}
            self._owners.append(_Owner("edge", line, ends, values))
        elif name == "hyperedge":
            raise DataError(f"{where} is a hyperedge. Write it as edges between two nodes.")
        elif name == "data" and parent in ("node", "edge"):
            identity = required(attributes, "key", f"{where}: a value")
            if identity not in self._keys:
                raise DataError(f"{where}: key {identity!r} is not declared. Export it again.")
            self._key = self._keys[identity]

    def _start_graph(self, attributes: dict[str, str], parent: str, where: str) -> None:
        if parent == "graphml":
            self._num_graphs += 1
            if self._num_graphs > 1:
                raise DataError(f"{where}: a second graph begins. Keep one graph per file.")
            self.directed = attributes.get("edgedefault") == "directed"

    def _check_direction(self, attributes: dict[str, str], where: str) -> None:
        declared = attributes.get("directed")
        if declared is not None and (declared == "true") != self.directed:
            raise DataError(
                f"{where}: an edge declares directed={declared!r}, unlike the graph. Make all "
                "edges directed, or none."
            )

    def end(self, name: str, text: str, parent: str, line: int) -> None:
        where = f"{self.path}, line {line}"
        if name == "default" and parent == "key" and self._key:
            self._key.default = convert(text, self._key.type, where, self._key.name)
        elif name == "key":
            self._key = None
        elif name == "data" and self._key and self._owners and parent in ("node", "edge"):
            if text:
                self._set(
                    self._key.name, convert(text, self._key.type, where, self._key.name), where
                )
            self._key = None
        elif name == "NodeLabel" and text and self._owners and self._owners[-1].kind == "node":
            self._owners[-1].values.setdefault("label", text)  # the caption in files of yEd
        elif name in ("node", "edge") and self._owners:
            self._finish(self._owners.pop())

    def _set(self, name: str, value: Any, where: str) -> None:
        values = self._owners[-1].values
        if name in values and not (name == "id" and self._owners[-1].kind == "edge"):
            raise DataError(f"{where}: the {self._owners[-1].kind} has two values of {name!r}.")
        values[name] = value

    def _finish(self, owner: _Owner) -> None:
        for key in self._keys.values():
            if key.default is not None and key.domain in (owner.kind, "all"):
                owner.values.setdefault(key.name, key.default)
        records = self.nodes if owner.kind == "node" else self.edges
        records.add({**owner.ends, **mark_reserved(owner.values, owner.ends)}, owner.line)


ENDS = ("source", "target")
