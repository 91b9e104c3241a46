"""The id column: its values are the ends of the edges, with one row per node."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.column_names import NODE_ROLES
from everynode.io.ids import index_in, read_ids
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table

#: An id column matches if it has at least this share of the distinct ends of the edges.
MATCH = 0.5
#: At least this share of the rows of an id column differ.
DISTINCT = 0.5


def match_id_column(
    nodes: Table, edges: Table, roles: Mapping[str, str], notes: Notes
) -> dict[str, str]:
    """Return the roles with the id column that matches the ends of the edges.

    The column with a usual name is kept if it contains half of the ends. Otherwise the column with
    the most ends replaces it, if it contains half of them.
    """
    try:
        ends = [read_ids(edges, roles[role]) for role in ("source", "target")]
    except DataError:
        return dict(roles)  # it is reported later, with its row
    distinct = pc.unique(pa.chunked_array([chunk for end in ends for chunk in end.chunks]))
    own = _share(nodes, roles["id"], distinct)
    if not len(distinct) or own is None or own >= MATCH:
        return dict(roles)
    used = {roles[role] for role in NODE_ROLES if role in roles}
    shares = {
        name: _share(nodes, name, distinct) or 0.0 for name in nodes.columns if name not in used
    }
    best = max(shares, key=lambda name: shares[name], default=None)
    if best is None or shares[best] < MATCH:
        return dict(roles)
    notes.repair(
        f"The ids of {nodes.where} are in column {best!r}, which has the ends of the edges, and "
        f"not in column {roles['id']!r}. Name another column with id='...' (--id)."
    )
    return {**roles, "id": best}


def _share(nodes: Table, name: str, ends: pa.Array) -> float | None:
    """Return the share of the ends that are values of a column; None if a cell is not an id."""
    try:
        values = pc.unique(read_ids(nodes, name))
    except DataError:
        return None
    if len(values) < DISTINCT * nodes.num_rows:
        return 0.0
    return float((index_in(ends, values) >= 0).mean())


def drop_identical_rows(table: Table, name: str, notes: Notes) -> Table:
    """Drop the rows that repeat another row in every column; rows that differ stay."""
    codes = np.asarray(read_ids(table, name).combine_chunks().dictionary_encode().indices)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse] != np.arange(len(codes)))
    if not len(repeated):
        return table
    originals = pa.array(first[inverse[repeated]])
    rows, others = (
        list(
            zip(
                *(column.take(places).to_pylist() for column in table.columns.values()), strict=True
            )
        )
        for places in (pa.array(repeated), originals)
    )
    same = [repr(row) == repr(other) for row, other in zip(rows, others, strict=True)]
    identical = repeated[np.array(same)]
    if not len(identical):
        return table
    notes.repair(
        f"{counted(len(identical), 'row')} of {table.where} identical to another, dropped "
        f"({table.rows(identical)}).",
        len(identical),
    )
    keep = np.setdiff1d(np.arange(table.num_rows), identical)
    columns = {key: column.take(pa.array(keep)) for key, column in table.columns.items()}
    numbers = [table.numbers[int(i)] for i in keep]
    return dataclasses.replace(table, columns=columns, numbers=numbers)
