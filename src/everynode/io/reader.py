"""Read a graph from user files: a node table and an edge table, or one file with both."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everynode.console import showable
from everynode.errors import UsageError
from everynode.errors import unknown as refuse
from everynode.graph import Graph
from everynode.graph.conversions import refuse_pyg
from everynode.io.column_names import NONE, ORDERS, UNKNOWN, DateOrder, Unknown
from everynode.io.display import has_name, shown_columns
from everynode.io.edge_table import (
    Ends,
    add_nodes,
    find_ends,
    node_ids,
    note_repairs,
    read_edge_table,
)
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.formats import TableFormat, source_file
from everynode.io.graph_files import GraphTables, is_graph, read_graph
from everynode.io.id_column import drop_identical_rows, match_id_column
from everynode.io.ids import check_unique, natural_values, read_ids
from everynode.io.label_file import join_labels, open_label_file
from everynode.io.labels import read_labels, read_split
from everynode.io.read_summary import summarize
from everynode.io.roles import (
    check_heading,
    expected_names,
    find_roles,
)
from everynode.io.summary import Notes
from everynode.io.table_features import fit_encoder, join_features
from everynode.io.table_files import open_table
from everynode.io.tables import Table
from everynode.io.time_split import check_one_split, split_by_time
from everynode.io.unused_weight import unused_weight


class Request(NamedTuple):
    """The choices of a caller of :func:`read`, which describes them.

    Attributes
    ----------
    columns : dict of str to str or None
        The columns of the roles: ``id``, ``label``, ``source``, ``weight`` and so on.
    features, directed, feature_encoder, name, unknown, na, format, display, keep, date_order
        The other arguments of :func:`read`.
    labels, few_labels
        The arguments of the same names.
    """

    columns: dict[str, str | None]
    features: str | Sequence[str] | None
    directed: bool
    feature_encoder: FeatureEncoder | None
    name: str
    unknown: str
    na: tuple[str, ...]
    format: TableFormat | None
    display: str | None
    keep: str | Sequence[str]
    date_order: DateOrder | None
    labels: Any
    few_labels: bool


def read(
    nodes: Any = None, edges: Any = None, *, id: str | None = None, label: str | None = None,
    features: str | Sequence[str] | None = "all", source: str | None = None,
    target: str | None = None, weight: str | None = None, split: str | None = None,
    directed: bool = False, feature_encoder: FeatureEncoder | None = None, name: str | None = None,
    unknown: Unknown | None = None, na: Sequence[str] = (), format: TableFormat | None = None,
    display: str | None = None, keep: str | Sequence[str] = (), date_order: DateOrder | None = None,
    labels: Any = None, few_labels: bool = False, split_by: str | None = None,
    edge_type: str | None = None,
) -> Graph:  # fmt: skip
    """Read a graph from a node table and an edge table, from edges alone, or from a graph file.

    Unnamed columns are found by their usual names. ``"none"`` stands for no such column.

    Parameters
    ----------
    nodes : path, data frame, dict or NetworkX graph, optional
        The node table, or a graph file (GraphML, GEXF, JSON, npz) or NetworkX graph with edges. A
        path may be FILE.xlsx#SHEET, sqlite:FILE?QUERY or duckdb:FILE?QUERY.
    edges : path, data frame or dict, optional
        The edge table or edge list.
    id, label, split, weight, source, target : str, optional
        The columns of node ids, labels, parts (train, val, test), edge weights and ends of edges.
        Default: the usual names, else the first columns, or where the ids match the edges.
    features : str or sequence of str, default "all"
        The feature columns: "all", or names (in a string: separated by commas). "zip:category" is a
        column with its kind, "all,-zip" leaves one out. "structure" adds features computed from
        the edges, which are also the fallback.
    directed : bool, default False
        Whether messages travel from source to target only.
    feature_encoder : FeatureEncoder, optional
        The encoder of another graph (``graph.feature_encoder``), for the same features and classes.
    name : str, optional
        The name of the graph. Default: the file name without ending.
    unknown : {"refuse", "drop", "add"}, optional
        What to do with edges to unknown nodes: refuse or drop them, or add the nodes without
        labels. Default: as in ``feature_encoder``, else "refuse".
    na : sequence of str
        Further words for a missing value.
    format : {"text", "parquet", "jsonl", "excel"}, optional
        The format of the tables. Default: that of the file's ending.
    display, keep : str or sequence of str, optional
        The column with the name of each node, shown beside its id (default: a text column named
        "name" or "title"), and more columns to write beside the predictions.
    date_order : {"dmy", "mdy"}, optional
        Whether the day or the month comes first in dates such as 03/04/2020. Default: inferred.
    labels : path, data frame or dict, optional
        A table with an id column and a label column; they replace those of the node table.
    few_labels : bool, default False
        Accept labels that nothing can learn from: none, or a single class.
    split_by, edge_type : str, optional
        A column of dates or numbers, whose latest fifth of the labels is the test part; and a
        column of the edges with the type of each link, whose weights a classifier learns.

    Returns
    -------
    Graph
        With a ``summary`` of the files, repairs and warnings, and a ``feature_encoder``.

    Examples
    --------
    >>> people = {"id": ["ann", "bob", "eve"], "age": [30, 40, 50], "team": ["red", "blue", None]}
    >>> read(people, {"from": ["ann", "bob"], "to": ["bob", "eve"]}, label="team")
    Graph 'graph': 3 nodes, 2 edges, 1 features (dense), 2 classes, 2 labeled, 0 splits
    """
    columns = {"id": id, "label": label, "split": split, "split_by": split_by}
    columns |= {"source": source, "target": target, "weight": weight, "edge_type": edge_type}
    check_one_split(split, split_by)
    encoder, name = feature_encoder, name or _name(nodes, edges)
    policy = unknown or (encoder.unknown if encoder else "refuse")
    words = (*(encoder.na if encoder else ()), *na)
    return _read(nodes, edges, Request(
        columns, features, directed, encoder, name, policy, words, format, display, keep,
        date_order, labels, few_labels,
    ))  # fmt: skip


def _read(nodes: Any, edges: Any, request: Request) -> Graph:
    """Read the tables, match the edges with the nodes, and encode labels and features."""
    refuse_pyg(nodes, "read takes files, tables and NetworkX graphs")
    encoder, na, notes = request.feature_encoder, request.na, Notes()
    requested: Mapping[str, str | None] = request.columns
    _check_choices(request.unknown, request.date_order)
    tables = _open(nodes, edges, requested, notes, request.format)
    label_file = None
    if request.labels is not None:
        trained = encoder.roles.get("label") if encoder else None
        label_file = open_label_file(request.labels, tables.nodes, requested, trained, notes)
        tables, requested = tables._replace(labels=label_file.table), label_file.requested
    if tables.directed and not request.directed and encoder is None:
        notes.warn(
            f"{tables.edges.where} declares its edges directed, but they are used in both "
            "directions. Keep the direction with directed=True (--directed)."
        )
    roles = find_roles(requested, tables.nodes, tables.edges, encoder)
    if tables.nodes is not None and requested["id"] is None and encoder is None:
        roles = match_id_column(tables.nodes, tables.edges, roles, notes)
    node_table, edge_rows, ids, ends = _match(tables, roles, requested, request.unknown, notes)
    if label_file is not None:
        node_table = join_labels(node_table, ids, label_file, roles, notes, na)
    # For a trained model, a split column found by its name is only a hint.
    lenient = notes if encoder is not None and requested["split"] is None else None
    splits = read_split(node_table, roles.get("split"), na, notes=lenient)
    if not splits:
        roles.pop("split", None)
    edge_table = read_edge_table(edge_rows, roles, ends, ids, request.unknown, notes, encoder)
    if encoder is None and requested["weight"] is None and "weight" not in roles:
        notes.unused_weight = unused_weight(edge_rows, roles.values())
    classes = encoder.classes if encoder else None
    labels = read_labels(
        node_table, roles.get("label"), notes, na, classes=classes, few=request.few_labels
    )
    if encoder is None and "split_by" in roles:
        splits = split_by_time(
            node_table, roles["split_by"], labels.codes, notes, na=na, date_order=request.date_order
        )
    if encoder is None:
        encoder, blocks = fit_encoder(request, tables, node_table, edge_table, roles, labels, notes)
    else:
        blocks = encoder.transform(node_table, notes, na, request.date_order)
    edge_table = edge_table.in_units(encoder.weight_unit)
    graph = Graph.from_arrays(
        join_features(blocks, encoder, tables, node_table, edge_table),
        edge_table.pairs,
        labels.codes,
        classes=labels.classes,
        splits=() if requested["split"] == NONE else splits or tables.splits,
        edge_weight=edge_table.weight,
        edge_type=edge_table.types,
        directed=request.directed,
        name=request.name,
        node_ids=tables.ids if tables.ids and roles["id"] == "id" else natural_values(ids),
    )
    if encoder.edge_types:
        graph = graph.with_edge_type_weights(encoder.edge_types)
    note_repairs(edge_table, graph.repairs, edge_rows, notes)
    shown = shown_columns(node_table, request.display, request.keep, roles)
    summary = dataclasses.replace(
        summarize(graph, encoder, roles, tables._replace(edges=edge_rows), labels, notes),
        shown=shown,
        name_column=has_name(shown, request.display),
        time_split=notes.time_split,
    )
    # An edge table lists each undirected edge once, so one-way edges are not a repair.
    repairs = {key: count for key, count in graph.repairs.items() if key != "one_way_edges"}
    return dataclasses.replace(graph, feature_encoder=encoder, summary=summary, repairs=repairs)


def _check_choices(unknown_policy: str, date_order: str | None) -> None:
    """Refuse unknown values of ``unknown`` and ``date_order``."""
    if unknown_policy not in UNKNOWN:
        refuse("choice for edges to unknown nodes", unknown_policy, UNKNOWN)
    if date_order is not None and date_order not in ORDERS:
        refuse("order of dates", date_order, ORDERS)


def _open(
    nodes: Any,
    edges: Any,
    requested: Mapping[str, str | None],
    notes: Notes,
    format: TableFormat | None,
) -> GraphTables:
    """Open the files: one graph file, or an edge table with or without a node table."""
    single = nodes if edges is None else edges if nodes is None else None
    if single is not None and format is None and is_graph(single):
        return read_graph(single, notes)
    if edges is None:
        raise UsageError(
            "The edges are missing. Give an edge table (edges=..., or --edges), or one file with "
            "nodes and edges (GraphML, GEXF, JSON, npz)."
        )
    for source in (nodes, edges):
        if format is None and isinstance(source, str | os.PathLike) and is_graph(source):
            raise UsageError(
                f"{source} holds a whole graph, nodes and edges. Give it alone, or give a table "
                "(.csv, .parquet, .jsonl)."
            )
    expected = expected_names(requested, edges=True)
    edge_table = open_table(edges, notes, edges=True, format=format, expected=expected)
    if nodes is None:
        return GraphTables(None, edge_table)
    expected = expected_names(requested, edges=False)
    return GraphTables(open_table(nodes, notes, format=format, expected=expected), edge_table)


def _match(
    tables: GraphTables,
    roles: dict[str, str],
    requested: Mapping[str, str | None],
    unknown_policy: str,
    notes: Notes,
) -> tuple[Table, Table, Any, Ends]:
    """Match the ends of the edges with the ids of the nodes.

    Returns the node table (made from the edges if there is none), the edge table without a
    heading, the ids, and the ends of every edge.
    """
    node_table, edge_rows = tables.nodes, tables.edges
    if node_table is None:
        ids, ends = node_ids(edge_rows, roles)
        return Table(edge_rows.where, {roles["id"]: ids}), edge_rows, ids, ends
    if node_table.unit != "node":  # a graph file that repeats a node is damaged
        node_table = drop_identical_rows(node_table, roles["id"], notes)
    ids = read_ids(node_table, roles["id"])
    check_unique(ids, node_table, roles["id"])
    edge_rows = check_heading(edge_rows, roles, requested, ids)
    ends = find_ends(edge_rows, roles, ids, notes)
    notes.unmatched_edges = int((ends.positions < 0).any(0).sum())
    if unknown_policy == "add":
        node_table, ids, ends = add_nodes(node_table, ids, ends, edge_rows, notes)
    return node_table, edge_rows, ids, ends


def _name(nodes: Any, edges: Any) -> str:
    files = [source for source in (nodes, edges) if isinstance(source, str | os.PathLike)]
    name = source_file(files[0]).name if files else ""
    return showable(name).partition(".")[0] or "graph"
