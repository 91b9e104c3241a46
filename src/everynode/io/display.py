"""Columns to show beside the ids: the name of each node, and columns that the user keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.column_names import NODE_ROLES, NONE
from everynode.io.tables import Table

#: Usual names of the column with the name of a node, in lower case.
#: Gephi calls the name "Label"; a column of classes is not shown as a name.
NAME_COLUMNS = ("name", "title", "full_name", "fullname", "display_name", "bezeichnung", "label")


def shown_columns(
    table: Table, display: str | None, keep: str | Sequence[str], roles: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the cells of the columns to show beside the ids, the name column first.

    Parameters
    ----------
    table : Table
        The node table.
    display : str or None
        The name column; None: a text column with a usual name. ``"none"``: no name column.
    keep : str or sequence of str
        More columns; in a string, separated by commas.
    roles : mapping of str to str
        The roles of the columns. The id column is not a name column.
    """
    wanted = [] if display in (None, NONE) else [str(display)]
    if display is None:
        used = {roles[role] for role in NODE_ROLES if role in roles}
        wanted = [
            name
            for name, cells in table.columns.items()
            if name.lower() in NAME_COLUMNS and name not in used and _is_text(cells)
        ][:1]
    listed = keep.split(",") if isinstance(keep, str) else keep
    wanted += [name.strip() for name in listed if name.strip()]
    return {name: _texts(table[name]) for name in dict.fromkeys(wanted)}


def has_name(columns: Mapping[str, Sequence[str]], display: str | None) -> str:
    """Return the name column among the shown columns; an empty string without one."""
    first = next(iter(columns), "")
    return first if display == first or first.lower() in NAME_COLUMNS else ""


def _is_text(cells: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _texts(cells: pa.ChunkedArray) -> tuple[str, ...]:
    if pa.types.is_nested(cells.type):
        return tuple("" if value is None else str(value) for value in cells.to_pylist())
    return tuple(pc.fill_null(cells.cast(pa.string()), "").to_pylist())
