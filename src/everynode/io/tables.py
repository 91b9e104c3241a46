"""Tables in memory: columns of equal length that know their rows in the file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError, closest

#: The maximum number of rows that a message names.
EXAMPLES = 3
#: The maximum number of columns that a message lists.
LISTED_COLUMNS = 20
#: Row numbers of a table without a file.
COUNTED = range(1, 2**62)


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with the place of each row in the file.

    Attributes
    ----------
    where : str
        The file, or another name for the table in messages.
    columns : mapping of str to pyarrow.ChunkedArray
        The columns by name.
    how : str
        How the file was read, in a few words; empty for a table without a file.
    unit : str
        The word for a row in messages: "row" (as in a spreadsheet, where the heading is row 1),
        "line", "node", "edge" or "record".
    numbers : sequence
        The number or name of each row in the file. Records count from 1.
    """

    where: str
    columns: Mapping[str, pa.ChunkedArray]
    how: str = ""
    unit: str = "record"
    numbers: Sequence[Any] | npt.NDArray[np.int64] = COUNTED

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return next((len(column) for column in self.columns.values()), 0)

    @cached_property
    def has_names(self) -> bool:
        """Whether any column has a name that no program generated."""
        return not all(map(is_unnamed, self.columns))

    def column(self, name: str) -> str:
        """Name a column, as the subject of a message: ``Column 'age' of people.csv``."""
        return f"Column {name!r} of {self.where}"

    def row(self, index: int) -> str:
        """Name a row for a message: ``people.csv, row 7``."""
        return f"{self.where}, {self.unit} {self.numbers[int(index)]}"

    def rows(self, indices: npt.NDArray[np.int64]) -> str:
        """Name some rows for a message: ``rows 3, 7, 9 and 12 more``."""
        numbers = ", ".join(str(self.numbers[int(index)]) for index in indices[:EXAMPLES])
        more = f" and {len(indices) - EXAMPLES:,} more" if len(indices) > EXAMPLES else ""
        return f"{self.unit}{'s' if len(indices) > 1 else ''} {numbers}{more}"

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """Return a column. The error for an unknown name lists the columns."""
        if name in self.columns:
            return self.columns[name]
        raise DataError(
            f"{self.where} has no column {name!r}{closest(name, self.columns)}. "
            f"{self.column_list()}"
        )

    def column_list(self) -> str:
        """List the columns in a sentence; for a single column, suggest another delimiter."""
        names = list(self.columns)
        more = len(names) - LISTED_COLUMNS
        listed = ", ".join(names[:LISTED_COLUMNS]) + (f" and {more} more" if more > 0 else "")
        if len(names) > 1:
            return f"Its columns: {listed}."
        return (
            f"Its only column: {listed}. If it should have more, separate them by commas, "
            "semicolons, tabs or bars."
        )

    def without_heading(self) -> Table:
        """Return the table with its heading as the first row."""
        columns = {
            f"column {i + 1}": pa.chunked_array(
                [pa.array([name], pa.string()), *column.cast(pa.string()).chunks]
            )
            for i, (name, column) in enumerate(self.columns.items())
        }
        numbers = np.concatenate([[self.numbers[0] - 1], self.numbers])
        return dataclasses.replace(
            self, columns=columns, numbers=numbers, how=f"{self.how}, no heading"
        )


def make_table(
    where: str, columns: Iterable[tuple[str, Any]], how: str, unit: str, numbers: Any
) -> Table:
    """Build a table from Arrow columns or Python values.

    All Arrow text types become one, and dictionary-encoded columns are decoded.
    """
    decoded: dict[str, pa.ChunkedArray] = {}
    for name, values in columns:
        if name in decoded:
            raise DataError(f"{where} has two columns named {name!r}: rename one of them.")
        decoded[name] = decode(
            values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([_array(values)])
        )
    if not decoded or not len(next(iter(decoded.values()))):
        raise DataError(f"{where} is empty: a table needs rows and columns.")
    return Table(where, decoded, how, unit, numbers)


def decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode a dictionary-encoded column, and cast any type of text to ``string``."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text_types = (
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    if any(is_type(column.type) for is_type in text_types):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:  # bytes that are not UTF-8
            return column
    return column


def _array(values: Sequence[Any]) -> pa.Array:
    """Convert Python values to an Arrow array; values of mixed types become text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        text = [None if value is None or value != value else _text(value) for value in values]
        valid = [
            None if word is None else word.encode("utf-8", "replace").decode() for word in text
        ]
        return pa.array(valid, pa.string())


def _text(value: Any) -> str:
    """Return a cell of a column of mixed types as text; 7 and 7.0 are one number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value)


def is_unnamed(column: str) -> bool:
    """Return whether pandas, pyarrow or this package generated the name of a column.

    >>> [is_unnamed(name) for name in ("column 1", "Unnamed: 0", "__index_level_0__", "index")]
    [True, True, True, False]
    """
    return re.fullmatch(r"|column \d+|Unnamed: [\d.]+|__index_level_\d+__", column) is not None


def where_true(mask: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the rows where a condition holds. Null counts as false."""
    return np.flatnonzero(np.asarray(pc.fill_null(mask, False)))


def writable_array(values: pa.ChunkedArray, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Copy a column to a NumPy array; NumPy's view of Arrow's memory is read-only."""
    return np.asarray(values).astype(dtype, copy=True)
