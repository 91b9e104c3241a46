"""Summary of a graph that was read: files, roles, types of columns, and counts."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from everynode.console import showable
from everynode.graph import Graph
from everynode.graph.validation import Split
from everynode.io.column_names import EDGE_ROLES, NODE_ROLES
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.graph_files import GraphTables
from everynode.io.labels import Labels
from everynode.io.summary import ColumnSummary, GraphSummary, Notes, counted
from everynode.io.tables import Table


def summarize(
    graph: Graph,
    encoder: FeatureEncoder,
    roles: Mapping[str, str],
    tables: GraphTables,
    labels: Labels,
    notes: Notes,
) -> GraphSummary:
    """Summarize how the files were understood."""
    return GraphSummary(
        files={
            showable(table.where): f"{counted(table.num_rows, table.unit)}, {table.how}"
            for table in (tables.nodes, tables.edges, tables.labels)
            if table and table.how
        },
        columns=_summarize_columns(encoder, roles, tables, notes.unused_weight),
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        directed=graph.directed,
        weighted=graph.weights is not None,
        features=graph.num_features,
        structural=encoder.structural,
        classes=labels.counts(),
        split={part: len(graph.nodes(part)) for part in Split._fields} if graph.splits else {},
        notes=tuple(notes.notes),
        leaks=tuple(notes.leaks),
        edge_rows=tables.edges.num_rows,
        unmatched_edges=notes.unmatched_edges,
        unused_weight=notes.unused_weight,
    )


def _summarize_columns(
    encoder: FeatureEncoder, roles: Mapping[str, str], tables: GraphTables, weight: str
) -> tuple[ColumnSummary, ...]:
    """Summarize the columns of the node table, if there is one, and of the edge table."""
    used, nodes, edges = [], tables.nodes, tables.edges
    if nodes is not None:
        used = [ColumnSummary(roles[role], role) for role in NODE_ROLES if role in roles]
        used += [column.summary for column in encoder.columns]
        used += _unused(nodes, {column.name for column in used})
    ends = [ColumnSummary(roles[role], role) for role in EDGE_ROLES if role in roles]
    return (*used, *ends, *_unused(edges, {column.name for column in ends}, weight))


def _unused(table: Table, used: Collection[str], weight: str = "") -> list[ColumnSummary]:
    detail = f"--weight {shlex.quote(weight)} uses it"
    return [
        ColumnSummary(name, "not used", detail if name == weight else "")
        for name in table.columns
        if name not in used
    ]
