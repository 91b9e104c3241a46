"""Roles of columns: id, label, split, source, target, weight, and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from everynode.errors import DataError, UsageError
from everynode.io.column_names import (
    ALL,
    EDGE_ROLES,
    LAYOUT,
    LAYOUT_MARKS,
    NEO4J_ENDS,
    NODE_ROLES,
    NONE,
    REQUIRED_ROLES,
    STRUCTURE,
    USUAL_NAMES,
    WITHOUT,
)
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.ids import index_in
from everynode.io.tables import Table, is_unnamed
from everynode.io.type_inference import Kind

#: Columns that a model needs again.
NOT_LOST = ("weight", "edge_type")


def expected_names(requested: Mapping[str, str | None], edges: bool) -> set[str]:
    """Return likely column names of the edge or node table, in lower case."""
    roles = EDGE_ROLES if edges else NODE_ROLES
    usual = {name for role in roles for name in USUAL_NAMES[role]}
    return usual | {(requested[role] or "").lower() for role in roles} - {""}


def find_roles(
    requested: Mapping[str, str | None],
    nodes: Table | None,
    edges: Table,
    feature_encoder: FeatureEncoder | None,
) -> dict[str, str]:
    """Find the column of each role.

    A requested name comes first, then the name in the feature encoder, then a usual name. With
    edges alone, the ids are called "id".
    """
    roles: dict[str, str] = {}
    for role, name in requested.items():
        table = edges if role in EDGE_ROLES else nodes
        if table is None:
            if name not in (None, NONE):
                raise UsageError(
                    f"Column {name!r} cannot be the {role}: there is no table of nodes. Give one."
                )
        elif name == NONE:
            if role in REQUIRED_ROLES:
                raise UsageError(f"A graph needs a column for the {role}. Name one.")
        elif name is not None:
            table[name]  # raises if there is no such column
            roles[role] = name
        elif feature_encoder is not None and role not in REQUIRED_ROLES:
            column = feature_encoder.roles.get(role)
            # New nodes need no label, but weights and types must not be lost.
            if column is not None and (role in NOT_LOST or column in table.columns):
                table[column]
                roles[role] = column
        else:
            same_table = EDGE_ROLES if role in EDGE_ROLES else NODE_ROLES
            used = {requested[other] for other in same_table}
            used |= {roles.get(other) for other in same_table}
            column = _usual_column(role, table, used, feature_encoder)
            if column is not None:
                roles[role] = column
    if roles["source"] == roles["target"]:
        raise UsageError(
            f"Source and target are both column {roles['source']!r} of {edges.where}. Name two "
            "columns."
        )
    return {"id": "id", **roles}


def _usual_column(
    role: str, table: Table, used: set[str | None], feature_encoder: FeatureEncoder | None
) -> str | None:
    trained = feature_encoder.roles.get(role) if feature_encoder else None
    if trained in table.columns:
        return trained
    if feature_encoder and role == "id":  # a label, split or feature of the model is not the id
        used = used | {feature_encoder.roles.get(other) for other in ("label", "split")}
        used |= {column.name for column in feature_encoder.columns}
    free = [name for name in table.columns if name not in used]
    by_lower = {name.lower(): name for name in reversed(free)}
    usual = next((by_lower[name] for name in USUAL_NAMES[role] if name in by_lower), None)
    usual = usual or _neo4j_column(role, free)
    if usual is not None or role not in REQUIRED_ROLES:
        return usual
    if feature_encoder and role == "id" and len(by_lower) != 1:
        raise DataError(
            f"{table.where} has no column {trained!r}, and no other column is clearly the id. Name "
            f"it (id='...', or --id). {table.column_list()}"
        )
    if not free:
        raise DataError(f"{table.where} has no column for the {role}. {table.column_list()}")
    named = [name for name in free if not is_unnamed(name)]
    # The row number that pandas writes may be the id, but not an end of an edge.
    return (named or free)[0] if role in EDGE_ROLES else free[0]


def _neo4j_column(role: str, names: Sequence[str]) -> str | None:
    """Return the column that Neo4j's heading marks with a role, such as ":START_ID(Person)"."""
    end = NEO4J_ENDS.get(role)
    plain = {name: name.lower().partition("(")[0] for name in names}
    return next((name for name in names if end and plain[name].endswith(end)), None)


def layout_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of Gephi's layout and colors; none if the table is not Gephi's."""
    if not {name.lower() for name in names} >= LAYOUT_MARKS:
        return []
    return [name for name in names if name.lower() in LAYOUT]


def check_heading(
    edges: Table, roles: dict[str, str], requested: Mapping[str, str | None], ids: pa.ChunkedArray
) -> Table:
    """Detect an edge list without a heading: its column names are two node ids.

    In that case ``roles`` is updated, and the heading becomes the first edge.
    """
    is_usual = all(roles[role].lower() in USUAL_NAMES[role] for role in ("source", "target"))
    is_named = any(requested[role] for role in EDGE_ROLES)
    if edges.unit != "row" or is_usual or is_named:
        return edges
    if (index_in(pa.chunked_array([[roles["source"], roles["target"]]]), ids) < 0).any():
        return edges
    names = list(edges.columns)
    for role in EDGE_ROLES:
        if role in roles:
            roles[role] = f"column {names.index(roles[role]) + 1}"
    return edges.without_heading()


class RequestedFeatures(NamedTuple):
    """The requested sources of the features.

    Attributes
    ----------
    columns : dict of str to str or None
        The columns, each with its declared kind or None.
    matrix : bool
        Whether to use the feature matrix of the file, if it has one.
    structure : bool
        Whether to add structural features.
    """

    columns: dict[str, Kind | None]
    matrix: bool
    structure: bool


def find_features(
    features: str | Sequence[str] | None, nodes: Table, roles: Mapping[str, str]
) -> RequestedFeatures:
    """Interpret the ``features`` argument of :func:`everynode.read`."""
    used = {roles[role]: role for role in NODE_ROLES if role in roles}
    columns: dict[str, Kind | None] = {}
    listed = features.split(",") if isinstance(features, str) else features or (STRUCTURE,)
    words = [word.strip() for word in listed]
    special = {word for word in words if word in (ALL, STRUCTURE) and word not in nodes.columns}
    for word in words:
        if word in special:
            columns |= {name: None for name in nodes.columns if word == ALL and name not in used}
            continue
        name, kind = word, ""
        if word.startswith(WITHOUT) and word not in nodes.columns:
            nodes[word.removeprefix(WITHOUT)]  # raises if there is no such column
            columns.pop(word.removeprefix(WITHOUT), None)
            continue
        if word not in nodes.columns and ":" in word:
            name, _, kind = word.rpartition(":")
        nodes[name]  # raises if there is no such column
        if name in used:
            raise UsageError(f"Column {name!r} is the {used[name]}. It cannot be a feature too.")
        # An unknown kind is refused when the column is fitted.
        columns[name] = kind or None  # type: ignore[assignment]
    return RequestedFeatures(columns, ALL in special, STRUCTURE in special)
