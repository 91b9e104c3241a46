"""Files that hold a whole graph: GraphML, GEXF, node-link JSON, NumPy archives; and NetworkX."""

from __future__ import annotations

import os
import zlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from everynode.errors import DataError
from everynode.io.column_names import CLASH_SUFFIX, mark_reserved
from everynode.io.formats import GRAPH_FORMATS, check_path, ending, is_database
from everynode.io.gexf_files import read_gexf
from everynode.io.graphml_files import read_graphml
from everynode.io.node_link_files import read_node_link
from everynode.io.npz_files import read_npz
from everynode.io.records import Records
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, make_table


class GraphTables(NamedTuple):
    """The node table and the edge table of a graph, with its matrix and splits.

    Attributes
    ----------
    nodes : Table or None
        The node table; None if there are only edges.
    edges : Table
        The edge table.
    features : array or sparse matrix, optional
        The n x c feature matrix, if the file has one.
    splits : sequence
        Training, validation and test masks of one or several folds.
    directed : bool
        Whether the file declares its edges directed.
    ids : sequence of hashable
        The ids as Python values, if the id column holds text in their place.
    labels : Table or None
        The file of labels, if one is given.
    """

    nodes: Table | None
    edges: Table
    features: Any = None
    splits: Sequence[Sequence[Any]] = ()
    directed: bool = False
    ids: Sequence[Hashable] = ()
    labels: Table | None = None


def is_graph(source: Any) -> bool:
    """Return whether the source is a NetworkX graph or a file of nodes and edges."""
    if isinstance(source, str | os.PathLike):
        return not is_database(source) and ending(Path(source)) in GRAPH_FORMATS
    return hasattr(source, "nodes") and hasattr(source, "edges") and hasattr(source, "is_directed")


def read_graph(source: Any, notes: Notes) -> GraphTables:
    """Read a graph file by its ending, or a NetworkX graph. Attributes become columns."""
    if not isinstance(source, str | os.PathLike):
        return _from_networkx(source)
    path = Path(source)
    check_path(path)
    format = ending(path)
    try:
        if format == "npz":
            return GraphTables(*read_npz(path, notes))
        if format == "json":
            nodes, edges, directed = read_node_link(path)
        elif format == "graphml":
            nodes, edges, directed = read_graphml(path)
        else:
            nodes, edges, directed = read_gexf(path, notes)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"Cannot read {path}: {reason}.") from error
    return _make_tables(nodes, edges, directed, str(path), format)


def _from_networkx(graph: Any) -> GraphTables:
    """Return the tables of a NetworkX graph. Messages name its nodes by id.

    The id column has the ids as text; the graph keeps the nodes themselves.
    """
    nodes, edges, ids = Records(), Records(), list(graph.nodes)
    text = dict(zip(ids, _distinct_texts(ids), strict=True))
    for node, attributes in graph.nodes(data=True):
        nodes.add({"id": text[node], **mark_reserved(attributes, ("id",))})
    for source, target, attributes in graph.edges(data=True):
        ends = {"source": text[source], "target": text[target]}
        edges.add({**ends, **mark_reserved(attributes, ends)})
    tables = _make_tables(nodes, edges, graph.is_directed(), "the graph", "networkx", ids)
    return tables._replace(ids=ids)


def _distinct_texts(ids: Sequence[Hashable]) -> list[str]:
    """Return a text for each id: 1 and "1" are two nodes."""
    texts = [str(node) for node in ids]
    stripped = {text.strip() for text in texts}
    return texts if len(stripped) == len(ids) and "" not in stripped else list(map(repr, ids))


def _make_tables(
    nodes: Records,
    edges: Records,
    directed: bool,
    where: str,
    format: str,
    numbers: Sequence[Any] | None = None,
) -> GraphTables:
    """Make the two tables. The node table holds the declared nodes, with repetitions.

    Repeated ids and edges to undeclared nodes are then treated as in any other table.
    """
    if not len(nodes) or not len(edges):
        raise DataError(
            f"{where} holds {counted(len(nodes), 'node')} and {counted(len(edges), 'edge')}. "
            "A graph needs both."
        )
    columns = dict(nodes.columns(where))
    second_id = columns.get(f"id{CLASH_SUFFIX}")
    if second_id is not None and list(map(str, second_id)) == list(map(str, columns["id"])):
        del columns[f"id{CLASH_SUFFIX}"]
    return GraphTables(
        make_table(where, columns.items(), format, "node", numbers or nodes.numbers),
        make_table(where, edges.columns(where), "", "edge", edges.numbers),
        directed=directed,
    )
