"""People's own graphs: tables of nodes and edges (or one file with both) in, a checked graph out, with what was understood of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from everynode.console import showable
from everynode.errors import DataError, UsageError
from everynode.errors import unknown as refuse
from everynode.graph import Graph
from everynode.graph.validation import Split
from everynode.io.columns import fit_column
from everynode.io.edge_table import EdgeTable, add_nodes, nodes_of, note_repairs, read_edge_table
from everynode.io.feature_encoder import FeatureEncoder, join
from everynode.io.graph_files import Whole, is_whole, read_whole
from everynode.io.ids import check_unique, natural, texts
from everynode.io.labels import PARTS, read_labels, read_split, warn_of_label_leakage
from everynode.io.roles import (
    NONE,
    OF_EDGES,
    check_heading,
    expected_names,
    find_features,
    find_roles,
)
from everynode.io.structural_features import structural_features
from everynode.io.summary import Notes, ColumnSummary, GraphSummary, counted
from everynode.io.tables import Table, open_table, where_true
from everynode.io.type_inference import clean, is_text

#: What may become of edges to nodes that the table of nodes does not have.
Unknown = Literal["refuse", "drop", "add"]


def read(
    nodes: Any = None,
    edges: Any = None,
    *,
    id: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = "all",
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    directed: bool = False,
    feature_encoder: FeatureEncoder | None = None,
    name: str | None = None,
    unknown: Unknown | None = None,
    na: Sequence[str] = (),
    format: Literal["text", "parquet", "jsonl"] | None = None,
) -> Graph:
    """A graph from a table of nodes and a table of edges, from edges alone, or from one file that holds both.

    ``nodes``, ``edges``: paths, or pandas, polars or Arrow tables (``nodes`` alone also a NetworkX graph). A path's ending tells its
    format, unless ``format`` does.
    ``id``, ``label``, ``split``, ``source``, ``target``, ``weight``: the columns; by default those with the usual names, else (id,
    source, target) the first ones. ``"none"``: there is no such column.
    ``features``: ``"all"`` other columns, or the names of some, as a list or with commas between; ``"zip:category"`` also says what
    a column is, ``"structure"`` stands for features that are computed from the edges. Where no column can be used, these are taken.
    ``feature_encoder``: that of another graph (``graph.feature_encoder``), to get the same features and classes from these files.
    ``unknown``: refuse edges to nodes that the table of nodes does not have, drop them, or add these nodes, unlabelled and with their
    other columns missing; by default as in the feature_encoder, else refuse. ``na``: more ways to write a missing value, beside those of the feature_encoder.

    >>> people = {"id": ["ann", "bob", "eve"], "age": [30, 40, 50], "team": ["red", "blue", None]}
    >>> graph = read(people, {"from": ["ann", "bob"], "to": ["bob", "eve"]}, label="team")
    >>> graph
    Graph 'graph': 3 nodes, 2 edges, 1 features (dense), 2 classes, 2 labelled, 0 splits
    >>> graph.summary.unlabelled
    1
    """
    way = unknown or (feature_encoder.unknown if feature_encoder else "refuse")
    if way not in get_args(Unknown):
        refuse("way with edges to unknown nodes", way, get_args(Unknown))
    notes = Notes()
    na = (*(feature_encoder.na if feature_encoder else ()), *na)
    asked = {
        "id": id,
        "label": label,
        "split": split,
        "source": source,
        "target": target,
        "weight": weight,
    }
    whole = _open(nodes, edges, asked, notes, format)
    people, ties = whole.nodes, whole.edges
    if whole.directed and not directed and feature_encoder is None:
        notes.warn(
            f"{ties.where} says that its edges lead one way: they are taken both ways, unless you say directed=True (--directed)."
        )
    roles = find_roles(asked, people, ties, feature_encoder)
    if people is None:
        ids = nodes_of(ties, roles)
        people = Table(ties.where, {roles["id"]: ids})
    else:
        ids = texts(people, roles["id"])
        check_unique(ids, people, roles["id"])
        ties = check_heading(ties, roles, asked, ids)
        if way == "add":
            people, ids = add_nodes(people, ids, ties, roles, notes)
    if feature_encoder is not None and split is None and "split" in roles:
        people = _known_parts(people, roles, notes, na)
    links = read_edge_table(ties, roles, ids, way, notes, feature_encoder)
    labels = read_labels(
        people,
        roles.get("label"),
        notes,
        na,
        classes=feature_encoder.classes if feature_encoder else None,
    )
    if feature_encoder is None:
        wanted = find_features(features, people, roles)
        columns = tuple(
            fit_column(column, kind, people, na) for column, kind in wanted.columns.items()
        )
        matrix = int(whole.features.shape[1]) if wanted.matrix and whole.features is not None else 0
        structural = wanted.structure or not (
            matrix or any(column.feature_names for column in columns)
        )
        unit = 1.0 if links.weight is None or not len(links.weight) else float(links.weight.mean())
        feature_encoder = FeatureEncoder(
            columns, roles, labels.classes, structural, matrix, unit, links.comma, na, way
        )
        warn_of_label_leakage(people, columns, labels, notes, na)
    if links.weight is not None:
        scaled = links.weight / feature_encoder.weight_unit
        links = links._replace(weight=None if (scaled == 1).all() else scaled)
    graph = Graph.from_arrays(
        _features(feature_encoder, whole, people, links, notes, na),
        links.pairs,
        labels.codes,
        classes=labels.classes,
        splits=() if split == NONE else read_split(people, roles.get("split"), na) or whole.splits,
        edge_weight=links.weight,
        directed=directed,
        name=name or _name(nodes, edges),
        node_ids=natural(ids),
    )
    note_repairs(links, graph.repairs, ties, notes)
    summary = GraphSummary(
        files={
            showable(table.where): f"{counted(table.num_rows, table.unit)}, {table.how}"
            for table in (whole.nodes, ties)
            if table and table.how
        },  # as they were, without nodes that were added
        columns=_taken(feature_encoder, roles, whole.nodes, ties),
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        directed=directed,
        weighted=links.weight is not None,
        features=graph.num_features,
        structural=feature_encoder.structural,
        classes=labels.counts(),
        split={part: len(graph.nodes(part)) for part in Split._fields} if graph.splits else {},
        notes=tuple(notes.notes),
    )
    # A table of undirected edges has each once: that is no repair.
    repairs = {what: count for what, count in graph.repairs.items() if what != "one_way_edges"}
    return dataclasses.replace(
        graph, feature_encoder=feature_encoder, summary=summary, repairs=repairs
    )


def _open(
    nodes: Any, edges: Any, asked: Mapping[str, str | None], notes: Notes, format: str | None
) -> Whole:
    only = nodes if edges is None else edges if nodes is None else None
    if only is not None and format is None and is_whole(only):
        return read_whole(only, notes)
    if edges is None:
        raise UsageError(
            "The edges are missing: give a table of them, or one file that holds nodes and edges (GraphML, GEXF, JSON, npz)."
        )
    for source in (nodes, edges):
        if format is None and isinstance(source, str | os.PathLike) and is_whole(source):
            raise UsageError(
                f"{source} is taken for a whole graph, nodes and edges: give it alone, or a table (.csv, .parquet, .jsonl)."
            )
    ties = open_table(
        edges, notes, edges=True, format=format, expected=expected_names(asked, edges=True)
    )
    return Whole(
        None
        if nodes is None
        else open_table(nodes, notes, format=format, expected=expected_names(asked, edges=False)),
        ties,
    )


def _known_parts(people: Table, roles: dict[str, str], notes: Notes, na: Sequence[str]) -> Table:
    """The table without words in its split column that are no part: where a feature_encoder is followed, the parts are a remark and no more."""
    name = roles["split"]
    cells = clean(people[name], na)
    known = (
        pc.is_in(pc.utf8_lower(cells), value_set=pa.array(PARTS))
        if is_text(cells)
        else pa.chunked_array([[False] * len(cells)])
    )
    strange = where_true(pc.and_(pc.invert(known), cells.is_valid()))
    if len(strange):
        given = cells[int(strange[0])].as_py()
        notes.warn(
            f"Column {name!r} of {people.where} holds {given!r} ({people.rows(strange)}), which is not train, val or test: in no part.",
            len(strange),
        )
    if not pc.any(known).as_py():
        del roles["split"]
        return people
    return dataclasses.replace(
        people,
        columns={**people.columns, name: pc.if_else(known, cells, pa.scalar(None, pa.string()))},
    )


def _name(nodes: Any, edges: Any) -> str:
    names = [
        Path(source).name for source in (nodes, edges) if isinstance(source, str | os.PathLike)
    ]
    return showable(names[0]).split(".")[0] if names else "graph"


def _features(
    feature_encoder: FeatureEncoder,
    whole: Whole,
    nodes: Table,
    links: EdgeTable,
    notes: Notes,
    na: Sequence[str],
) -> Any:
    """All features side by side: those that are given as a matrix, those from columns, those from the structure."""
    n = nodes.num_rows
    blocks = feature_encoder.apply(nodes, notes, na)
    if feature_encoder.matrix:
        if whole.features is None or whole.features.shape[1] != feature_encoder.matrix:
            found = "none" if whole.features is None else whole.features.shape[1]
            raise DataError(
                f"{nodes.where} must give {feature_encoder.matrix:,} features as a matrix; it gives {found}."
            )
        blocks.insert(0, whole.features)
    if feature_encoder.structural:
        blocks.append(structural_features(links.pairs, n))
    return join(blocks, n)


def _taken(
    feature_encoder: FeatureEncoder, roles: Mapping[str, str], nodes: Table | None, edges: Table
) -> tuple[ColumnSummary, ...]:
    """What each column was taken for; without a table of nodes only the edges have some."""
    used = []
    if nodes is not None:
        used = [
            ColumnSummary(roles[role], role) for role in ("id", "label", "split") if role in roles
        ]
        used += [column.taken for column in feature_encoder.columns]
        used += _rest(nodes, {taken.name for taken in used})
    ends = [ColumnSummary(roles[role], role) for role in OF_EDGES if role in roles]
    return (*used, *ends, *_rest(edges, {end.name for end in ends}))


def _rest(table: Table, used: Collection[str]) -> list[ColumnSummary]:
    return [ColumnSummary(name, "not used") for name in table.columns if name not in used]
