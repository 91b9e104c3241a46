"""Files that hold a whole graph: GraphML, GEXF, node-link JSON, NumPy archives; and NetworkX."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from everynode.errors import DataError
from everynode.io.column_names import CLASH_SUFFIX
from everynode.io.formats import GRAPH_FORMATS, check_path, ending, open_binary
from everynode.io.npz_files import read_npz
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, make_table


class GraphTables(NamedTuple):
    """The node table and the edge table of a graph, and what does not fit into tables."""

    #: None with edges alone.
    nodes: Table | None
    edges: Table
    #: An n x c feature matrix, if the file has one.
    features: Any = None
    #: Training, validation and test masks of one or several folds.
    splits: Sequence[Sequence[Any]] = ()
    #: Whether the file declares its edges directed.
    directed: bool = False


def is_graph(source: Any) -> bool:
    """Return whether the source is a NetworkX graph or a file of nodes and edges."""
    if isinstance(source, str | os.PathLike):
        return ending(Path(source)) in GRAPH_FORMATS
    return hasattr(source, "nodes") and hasattr(source, "edges") and hasattr(source, "is_directed")


def read_graph(source: Any, notes: Notes) -> GraphTables:
    """Read a graph file by its ending, or a NetworkX graph. Attributes become columns."""
    if not isinstance(source, str | os.PathLike):
        return _from_networkx(source, "the graph", "networkx")
    path = Path(source)
    check_path(path)
    format = ending(path)
    try:
        if format == "npz":
            return GraphTables(*read_npz(path, notes))
        return _from_networkx(_read_networkx(path, format), str(path), format)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def _read_networkx(path: Path, format: str) -> Any:
    import networkx

    try:
        if format == "json":
            with open_binary(path) as file:
                content = json.loads(file.read())
            edges = "edges" if "edges" in content else "links"
            return networkx.node_link_graph(content, edges=edges)
        return networkx.read_graphml(path) if format == "graphml" else networkx.read_gexf(path)
    except OSError:
        raise
    except Exception as error:  # a parser may raise anything on a broken file
        advice = "Export it again"
        if format == "json":
            advice = 'It must hold {"nodes": [...], "links": [...]}'
        raise DataError(
            f"{path} is not valid {format} ({type(error).__name__}: {str(error)[:80]}). {advice}."
        ) from error


def _from_networkx(graph: Any, where: str, format: str) -> GraphTables:
    ids = list(graph.nodes)
    if not ids or not graph.number_of_edges():
        raise DataError(
            f"{where} holds {counted(len(ids), 'node')} and "
            f"{counted(graph.number_of_edges(), 'edge')}. A graph needs both."
        )
    renamed = {"label": "name"} if format == "gexf" else {}  # GEXF's label is a caption
    attributes = [_rename(graph.nodes[i], renamed, ("id", *renamed.values())) for i in ids]
    node_columns = [("id", ids), *_columns(attributes)]
    second_id = f"id{CLASH_SUFFIX}"
    id_texts = list(map(str, ids))
    node_columns = [
        (name, cells)
        for name, cells in node_columns
        if name != second_id or list(map(str, cells)) != id_texts
    ]
    nodes = make_table(where, node_columns, format, "node", ids)
    edge_list = list(graph.edges(data=True))
    edge_columns = [
        ("source", [source for source, _, _ in edge_list]),
        ("target", [target for _, target, _ in edge_list]),
        *_columns([_rename(data, {}, ("source", "target")) for _, _, data in edge_list]),
    ]
    edges = make_table(where, edge_columns, "", "edge", range(1, len(edge_list) + 1))
    return GraphTables(nodes, edges, directed=graph.is_directed())


def _rename(
    attributes: Mapping[Any, Any], renamed: Mapping[str, str], reserved: Sequence[str]
) -> dict[str, Any]:
    """Rename attributes; mark those whose name is reserved for a column."""
    return {
        renamed.get(str(key), f"{key}{CLASH_SUFFIX}" if str(key) in reserved else str(key)): value
        for key, value in attributes.items()
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    names = dict.fromkeys(key for row in rows for key in row)
    return [(name, [row.get(name) for row in rows]) for name in names]
