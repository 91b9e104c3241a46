"""People's tables as columns: delimited text, Parquet, JSON lines, and data frames from Python, each row with its place in the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.data.understood import Notes
from everynode.errors import DataError, closest

#: So many examples are given of anything that is wrong in many rows.
EXAMPLES = 3


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where their rows are in the file they came from."""

    #: The file, or what else to call the table in a sentence.
    where: str
    columns: dict[str, pa.ChunkedArray]
    #: How it was read, in a few words.
    how: str = ""
    #: What a row is called: "row" as a spreadsheet counts (the heading is row 1), "line" of a JSON file, "record" from 1 of anything else.
    unit: str = "record"
    #: The number of each row in the file; a range unless rows were dropped.
    numbers: Sequence[int] | npt.NDArray[np.int64] = field(default_factory=lambda: range(1, 2**62))

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return next((len(column) for column in self.columns.values()), 0)

    def row(self, index: int) -> str:
        """What to call a row in a sentence, as in ``people.csv, row 7``."""
        return f"{self.where}, {self.unit} {self.numbers[int(index)]}"

    def rows(self, indices: npt.NDArray[np.int64]) -> str:
        """The first few of some rows, for a sentence: ``rows 3, 7, 9 of people.csv``."""
        numbers = ", ".join(str(self.numbers[int(index)]) for index in indices[:EXAMPLES])
        more = f" and {len(indices) - EXAMPLES:,} more" if len(indices) > EXAMPLES else ""
        return f"{self.unit}{'s' if len(indices) > 1 else ''} {numbers}{more} of {self.where}"

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """A column; one that is not there is refused, with those that are."""
        if name in self.columns:
            return self.columns[name]
        raise DataError(f"{self.where} has no column {name!r}{closest(name, self.columns)}. {self.column_list()}")

    def column_list(self) -> str:
        """The columns there are, in a sentence, and why there may be only one."""
        names = list(self.columns)
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        if len(names) > 1:
            return f"Its columns: {listed}."
        return f"Its only column: {listed}. If there should be more, separate them by commas, semicolons, tabs or bars."


def named(*sources: Any) -> Iterator[str]:
    """What to call each source in a sentence: its path, or what was given."""
    for source in sources:
        yield str(source) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"


def open_table(source: Any, notes: Notes, *, edges: bool = False) -> Table:
    """A table from a path (the format by its name), or from a pandas, polars or Arrow table, or a dict of columns.

    ``edges``: it may be a bare edge list, without a heading and separated by spaces.
    """
    if not isinstance(source, str | os.PathLike):
        return _from_memory(source, "the edges table" if edges else "the nodes table")
    path = Path(source)
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file.")
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
    try:
        from everynode.data.delimited import read_delimited

        return read_delimited(path, notes, edges=edges, preferred="\t" if kind == ".tsv" else None)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def _from_memory(source: Any, where: str) -> Table:
    try:
        table = pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a pandas column of mixed objects
        table = pa.table({str(name): _mixed(source[name]) for name in source})
    except TypeError as wrong:
        raise DataError(f"A table is a path or a data frame. Got {type(source).__name__} ({wrong}).") from None
    columns: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in columns:
            raise DataError(f"{where} has two columns named {name!r}: rename one of them.")
        if name != "__index_level_0__":
            columns[name] = column
    return Table(where, columns, f"{table.num_rows:,} rows")


def _mixed(values: Any) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None or value != value else str(value) for value in values])


def row_numbers(keep: pa.ChunkedArray, start: int) -> npt.NDArray[np.int64]:
    """The numbers of the rows that stay, the first row being number ``start``."""
    return np.flatnonzero(np.asarray(keep)) + start


def where_true(mask: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The rows in which a condition holds; unknown counts as not."""
    return np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
