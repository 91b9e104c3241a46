"""Roles: which column is the id, the label, the split, the source, the target, the weight; and which ones are features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError, UsageError
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.tables import Table, is_unnamed
from everynode.io.type_inference import Kind

#: The names by which a column is found if none is given, in lower case.
USUAL = {
    "id": ("id", "node", "node_id", "nodeid", "name", "index"),
    "label": ("label", "class"),
    "split": ("split",),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight",),
}
OF_EDGES = ("source", "target", "weight")
#: Where no column has the usual name, the first one is taken.
NEEDED = ("id", "source", "target")
#: In place of a column's name: there is none, whatever the columns are called.
NONE = "none"
#: Among the features: all columns that are nothing else, and features that are computed from the structure of the graph.
ALL, STRUCTURE = "all", "structure"


def expected_names(asked: Mapping[str, str | None], edges: bool) -> set[str]:
    """The names that columns of the table of edges, or of nodes, are likely to have, in lower case: the usual ones and those asked for."""
    roles = [role for role in asked if (role in OF_EDGES) == edges]
    return {name for role in roles for name in (*USUAL[role], (asked[role] or "").lower())} - {""}


def find_roles(
    asked: Mapping[str, str | None],
    nodes: Table | None,
    edges: Table,
    feature_encoder: FeatureEncoder | None,
) -> dict[str, str]:
    """The column of each role, as asked for, else as in the feature_encoder, else by its usual name; the ids of edges alone are called id."""
    roles: dict[str, str] = {}
    for role, given in asked.items():
        table = edges if role in OF_EDGES else nodes
        if table is None:
            if given not in (None, NONE):
                raise UsageError(
                    f"Column {given!r} cannot be the {role}: there is no table of nodes. Give one."
                )
        elif given == NONE:
            if role in NEEDED:
                raise UsageError(f"There must be a column for the {role}: name one.")
        elif given is not None:
            table[given]  # refused here if it is not there
            roles[role] = given
        elif feature_encoder is not None and role not in NEEDED:
            column = feature_encoder.roles.get(role)
            if column is not None and (
                role == "weight" or column in table.columns
            ):  # new nodes need no label
                table[column]
                roles[role] = column
        else:
            others = [other for other in asked if (other in OF_EDGES) == (role in OF_EDGES)]
            column = _usual(
                role,
                table,
                {taken for other in others for taken in (asked[other], roles.get(other))},
                feature_encoder,
            )
            if column is not None:
                roles[role] = column
    if roles["source"] == roles["target"]:
        raise UsageError(
            f"Source and target are both the column {roles['source']!r} of {edges.where}: name two."
        )
    return {"id": "id", **roles}


def _usual(
    role: str, table: Table, taken: set[str | None], feature_encoder: FeatureEncoder | None
) -> str | None:
    known = feature_encoder.roles.get(role) if feature_encoder else None
    if known in table.columns:
        return known
    if (
        feature_encoder and role == "id"
    ):  # what the model knows as something else is no id, wherever it stands
        taken = (
            taken
            | {feature_encoder.roles.get(other) for other in ("label", "split")}
            | {column.name for column in feature_encoder.columns}
        )
    lower = {name.lower(): name for name in reversed(list(table.columns)) if name not in taken}
    found = next((lower[name] for name in USUAL[role] if name in lower), None)
    if found is not None or role not in NEEDED:
        return found
    if feature_encoder and role == "id" and len(lower) != 1:
        raise DataError(
            f"{table.where} has no column {known!r}, and which other holds the ids is not clear: say it (id='...', or --id). "
            f"{table.column_list()}"
        )
    if not lower:
        raise DataError(f"{table.where} has no column for the {role}. {table.column_list()}")
    left = [name for name in table.columns if name not in taken]
    named = [name for name in left if not is_unnamed(name)]
    return (
        (named or left)[0] if role in OF_EDGES else left[0]
    )  # the row number that pandas writes is no end of an edge


def check_heading(
    edges: Table, roles: dict[str, str], asked: Mapping[str, str | None], ids: pa.ChunkedArray
) -> Table:
    """A bare edge list has no heading: if two nodes are where column names were expected, and no usual ones, they are its first edge."""
    columns = [roles["source"], roles["target"]]
    usual = all(roles[role].lower() in USUAL[role] for role in ("source", "target"))
    bare = edges.unit == "row" and not usual and not any(asked[role] for role in OF_EDGES)
    if (
        not bare
        or not np.asarray(pc.is_in(pa.array(columns), value_set=ids.combine_chunks())).all()
    ):
        return edges
    names = list(edges.columns)
    for role in OF_EDGES:
        if role in roles:
            roles[role] = f"column {names.index(roles[role]) + 1}"
    return edges.without_heading()


class Wanted(NamedTuple):
    """Where the features shall come from."""

    #: The columns, each with its kind if that was said.
    columns: dict[str, Kind | None]
    #: Whether a matrix that the file gives is wanted.
    matrix: bool
    #: Whether the structure shall give some too.
    structure: bool


def find_features(
    features: str | Sequence[str] | None, nodes: Table, roles: Mapping[str, str]
) -> Wanted:
    """What the words for the features stand for."""
    used = {roles[role]: role for role in ("id", "label", "split") if role in roles}
    wanted: dict[str, Kind | None] = {}
    words = [
        word.strip()
        for word in (features.split(",") if isinstance(features, str) else features or (STRUCTURE,))
    ]
    special = {word for word in words if word in (ALL, STRUCTURE) and word not in nodes.columns}
    for word in words:
        if word in special:
            wanted |= {name: None for name in nodes.columns if word == ALL and name not in used}
        else:
            column, _, kind = (
                word.rpartition(":")
                if word not in nodes.columns and ":" in word
                else (word, "", "")
            )
            nodes[column]
            if column in used:
                raise UsageError(
                    f"Column {column!r} is the {used[column]}: it cannot be a feature too."
                )
            wanted[column] = kind or None  # type: ignore[assignment]  # what is no kind is refused when the column is fitted
    return Wanted(wanted, ALL in special, STRUCTURE in special)
