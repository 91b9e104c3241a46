"""A file of labels beside the node table: answers that a person filled in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everynode.errors import DataError
from everynode.io.cells import Cells
from everynode.io.column_names import NONE, USUAL_NAMES
from everynode.io.ids import check_unique, find_positions, read_ids
from everynode.io.labels import label_text
from everynode.io.summary import Notes, counted
from everynode.io.table_files import open_table
from everynode.io.tables import Table


class LabelFile(NamedTuple):
    """A table of ids and labels.

    Attributes
    ----------
    table : Table
        The table.
    column : str
        Its label column, and the label column of the nodes.
    requested : mapping of str to str or None
        The requested columns of the node table and the edge table.
    """

    table: Table
    column: str
    requested: Mapping[str, str | None]


def open_label_file(
    source: Any,
    nodes: Table | None,
    requested: Mapping[str, str | None],
    trained: str | None,
    notes: Notes,
) -> LabelFile:
    """Read a table of labels, and find its label column.

    It has the requested name, else that of a ``trained`` model, else a usual one.
    """
    wanted, columns = requested["label"] or trained, nodes.columns if nodes else ()
    expected = {*USUAL_NAMES["id"], *USUAL_NAMES["label"], (wanted or "").lower()} - {""}
    table = open_table(source, notes, expected=expected)
    if wanted in (None, NONE):
        usual = [*USUAL_NAMES["label"]]
        by_lower = {name.lower(): name for name in (*table.columns, *columns)}
        column = next((by_lower[name] for name in usual if name in by_lower), None)
        if column is None:
            raise DataError(
                f"{table.where}: no column is called label or class. Name it (label='...', or "
                f"--label). {table.column_list()}"
            )
    else:
        column = str(wanted)
    table[column]  # raises if there is no such column
    role = NONE if wanted == NONE or column not in columns else column
    return LabelFile(table, column, {**requested, "label": role})


def join_labels(
    nodes: Table,
    ids: pa.ChunkedArray,
    labels: LabelFile,
    roles: dict[str, str],
    notes: Notes,
    na: Sequence[str],
) -> Table:
    """Return the node table with the labels of a file, which replace its own.

    Empty cells of the file change nothing. ``roles`` gets the label column.
    """
    file, column = labels.table, labels.column
    answers = label_text(Cells(file, column, na))
    filled = np.flatnonzero(np.asarray(answers.is_valid()))
    if not len(filled):
        raise DataError(f"{file.where}, column {column!r} has no label: fill in at least one.")
    places = _places(_rows(file, filled, _id_column(file, roles["id"], column)), ids, notes)
    values = _own_labels(nodes, ids, labels.requested["label"], na)
    changed = 0
    for place, answer in zip(places.tolist(), answers.drop_null().to_pylist(), strict=True):
        changed += values[place] not in (None, answer)
        values[place] = answer
    if changed:
        notes.repair(f"{counted(changed, 'label')} replaced by those of {file.where}.", changed)
    roles["label"] = column
    joined = pa.chunked_array([pa.array(values, pa.string())])
    return dataclasses.replace(nodes, columns={**nodes.columns, column: joined})


def _id_column(file: Table, of_nodes: str, label: str) -> str:
    """Return the id column: the name in the node table, else a usual name, else the first."""
    by_lower = {name.lower(): name for name in reversed([*file.columns]) if name != label}
    if not by_lower:
        raise DataError(f"{file.where} has no column of ids. {file.column_list()}")
    usual = (of_nodes.lower(), *USUAL_NAMES["id"])
    return next((by_lower[name] for name in usual if name in by_lower), [*by_lower.values()][-1])


def _rows(file: Table, rows: npt.NDArray[np.int64], column: str) -> Table:
    """Return one column of some rows, which keep their numbers in the file."""
    numbers = [file.numbers[int(row)] for row in rows]
    columns = {column: file[column].take(pa.array(rows))}
    return dataclasses.replace(file, columns=columns, numbers=numbers)


def _places(rows: Table, ids: pa.ChunkedArray, notes: Notes) -> npt.NDArray[np.int64]:
    """Return the node of each row; refuse unknown nodes and repeated ones."""
    (column,) = rows.columns
    answered = read_ids(rows, column)
    check_unique(answered, rows, column)
    places = find_positions(answered, ids, rows, column, notes)
    strangers = np.flatnonzero(places < 0)
    if len(strangers):
        first = int(strangers[0])
        raise DataError(
            f"{rows.row(first)}, column {column!r}: {answered[first].as_py()!r} is not a node "
            f"({counted(len(strangers), 'such row')}). Correct the id, or remove the row."
        )
    return places


def _own_labels(
    nodes: Table, ids: pa.ChunkedArray, column: str | None, na: Sequence[str]
) -> list[str | None]:
    """Return the labels of the node table as text; None for an unlabeled node."""
    if column in (None, NONE):
        return [None] * len(ids)
    text: list[str | None] = label_text(Cells(nodes, str(column), na)).to_pylist()
    return text
