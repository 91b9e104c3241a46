"""People's tables as columns: delimited text, Parquet, JSON lines, and data frames from Python, each row with its place in the file."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError, closest, unknown
from everynode.io.summary import Notes, counted

#: Added to the name of an attribute that is called like a column that there is anyway.
CLASH = " (attribute)"
#: So many examples are given of anything that is wrong in many rows.
EXAMPLES = 3
#: The format of a file, by its ending without .gz.
FORMATS = {
    "csv": "text", "tsv": "text", "tab": "text", "txt": "text", "dat": "text", "edges": "text", "edgelist": "text", "el": "text",
    "parquet": "parquet", "pq": "parquet", "jsonl": "jsonl", "ndjson": "jsonl",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where their rows are in the file they came from."""

    #: The file, or what else to call the table in a sentence.
    where: str
    columns: Mapping[str, pa.ChunkedArray]
    #: How it was read, in a few words; empty for a table that is in no file of its own.
    how: str = ""
    #: What a row is called: "row" as a spreadsheet counts them (the heading is row 1), "line", "node", "edge", or "record".
    unit: str = "record"
    #: The number or name of each row in the file; records count from 1.
    numbers: Sequence[Any] | npt.NDArray[np.int64] = range(1, 2**62)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return next((len(column) for column in self.columns.values()), 0)

    def row(self, index: int) -> str:
        """What to call a row in a sentence: ``people.csv, row 7``."""
        return f"{self.where}, {self.unit} {self.numbers[int(index)]}"

    def rows(self, indices: npt.NDArray[np.int64]) -> str:
        """What to call some rows in a sentence: ``rows 3, 7, 9 and 12 more``."""
        numbers = ", ".join(str(self.numbers[int(index)]) for index in indices[:EXAMPLES])
        more = f" and {len(indices) - EXAMPLES:,} more" if len(indices) > EXAMPLES else ""
        return f"{self.unit}{'s' if len(indices) > 1 else ''} {numbers}{more}"

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """A column; one that is not there is refused, with those that are."""
        if name in self.columns:
            return self.columns[name]
        raise DataError(
            f"{self.where} has no column {name!r}{closest(name, self.columns)}. {self.column_list()}"
        )

    def column_list(self) -> str:
        """The columns there are, in a sentence, and why there may be only one."""
        names = list(self.columns)
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        if len(names) > 1:
            return f"Its columns: {listed}."
        return f"Its only column: {listed}. If it should have more, separate them by commas, semicolons, tabs or bars."

    def without_heading(self) -> Table:
        """The same table where what was taken for the heading is the first row."""
        columns = {
            f"column {i + 1}": pa.chunked_array([pa.array([name], pa.string()), *column.chunks])
            for i, (name, column) in enumerate(self.columns.items())
        }
        numbers = np.concatenate([[self.numbers[0] - 1], self.numbers])
        return dataclasses.replace(
            self, columns=columns, numbers=numbers, how=f"{self.how}, no heading"
        )


def open_table(
    source: Any,
    notes: Notes,
    *,
    edges: bool = False,
    format: str | None = None,
    expected: Collection[str] = (),
) -> Table:
    """A table from a path (its format by its ending, unless given), or from a pandas, polars or Arrow table, or a dict of columns.

    ``edges``: it may be a bare edge list, without a heading and separated by spaces. ``expected``: names that columns are likely to have.
    """
    if not isinstance(source, str | os.PathLike):
        return _from_memory(source, "the table of edges" if edges else "the table of nodes")
    path = Path(source)
    check_path(path)
    from everynode.io.delimited import other_kind, read_delimited  # which need what is here

    format = format or FORMATS.get(ending(path))
    try:
        if format is None:
            endings = f"the ending of a table's name must be one of .{', .'.join(FORMATS)} (or one of these and .gz). Rename it"
            kind = other_kind(path)
            raise DataError(f"{path} is no text but {kind}." if kind else f"{path}: {endings}.")
        if format == "parquet":
            return _read_parquet(path)
        if format == "jsonl":
            return _read_json_lines(path)
        if format == "text":
            return read_delimited(path, notes, edges=edges, expected=expected)
        unknown("format", format, dict.fromkeys(FORMATS.values()))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"Cannot read {path}: {getattr(error, 'strerror', None) or str(error).splitlines()[0]}."
        ) from error


def ending(path: Path) -> str:
    """The ending that tells a file's format, in lower case and without .gz."""
    name = path.name.lower().removesuffix(".gz")
    return name.rpartition(".")[2] if "." in name else ""


def check_path(path: Path) -> None:
    """Refuse what is not there, or is a folder."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder: name a file.")
        if not path.exists():
            raise DataError(f"There is no file {path}.")
    except OSError as error:  # a name that is too long, a folder that is closed to us
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def unpacked(path: Path) -> BinaryIO:
    """A file to read from, unpacked if gzip packed it, whatever it is called."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")


def is_unnamed(column: str) -> bool:
    """Whether a column has no name of its own, but what pandas, pyarrow or this module calls one that has none.

    >>> [is_unnamed(name) for name in ("column 1", "Unnamed: 0", "__index_level_0__", "index")]
    [True, True, True, False]
    """
    return re.fullmatch(r"|column \d+|Unnamed: [\d.]+|__index_level_\d+__", column) is not None


def where_true(mask: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The rows in which a condition holds; unknown counts as not."""
    return np.flatnonzero(np.asarray(pc.fill_null(mask, False)))


def make_table(
    where: str, columns: Iterable[tuple[str, Any]], how: str, unit: str, numbers: Any
) -> Table:
    """A table from columns in any of Arrow's types or as Python values: text as one type of text, what was coded decoded."""
    plain: dict[str, pa.ChunkedArray] = {}
    for name, values in columns:
        if name in plain:
            raise DataError(f"{where} has two columns named {name!r}: rename one of them.")
        plain[name] = _plain(
            values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([_array(values)])
        )
    if not plain or not len(next(iter(plain.values()))):
        raise DataError(f"{where} is empty: a table needs rows and columns.")
    return Table(where, plain, how, unit, numbers)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if any(
        same(kind)
        for same in (
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    ):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:  # bytes that are no text
            return column
    return column


def _array(values: Sequence[Any]) -> pa.Array:
    """Python values as an Arrow array; where they are of several kinds, all as text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        text = [None if value is None or value != value else str(value) for value in values]
        return pa.array(
            [
                None if value is None else value.encode("utf-8", "replace").decode()
                for value in text
            ],
            pa.string(),
        )


def _from_memory(source: Any, where: str) -> Table:
    names = list(getattr(source, "columns", source if isinstance(source, Mapping) else ()))
    try:
        table = pa.table(source)
        columns = list(zip(table.column_names, table.columns, strict=True))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as wrong:
        if not names or not hasattr(source, "__getitem__"):
            raise DataError(
                f"{where} must be a path or a data frame. Got {type(source).__name__} ({wrong})."
            ) from None
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise DataError(
                f"{where} has two columns named {twice[0]!r}: rename one of them."
            ) from None
        columns = [
            (str(name), list(source[name])) for name in names
        ]  # a column holds values of several kinds
        if len({len(values) for _, values in columns}) > 1:
            raise DataError(f"{where} has columns of different lengths.") from None
    # pandas' index: text may be the ids; numbers are what is left of some other table
    columns = [("index" if name == "__index_level_0__" else name, values) for name, values in columns
               if name != "__index_level_0__" or pa.types.is_string(_plain(values).type)]  # fmt: skip
    return make_table(where, columns, "", "record", range(1, 2**62))


def _read_parquet(path: Path) -> Table:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            f"{path} is not a Parquet file: {str(error).splitlines()[0].rstrip('.')}."
        ) from error
    columns = zip(table.column_names, table.columns, strict=True)
    return make_table(
        str(path),
        columns,
        f"{counted(table.num_columns, 'column')}, Parquet",
        "record",
        range(1, table.num_rows + 1),
    )


def _read_json_lines(path: Path) -> Table:
    """One JSON object a line; blank lines are passed over."""
    rows, numbers = [], []
    try:
        with io.TextIOWrapper(unpacked(path), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_json_object(line, f"{path}, line {number}"))
                    numbers.append(number)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error.reason}): save it as UTF-8.") from None
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [(name, [row.get(name) for row in rows]) for name in names]
    return make_table(str(path), columns, f"{counted(len(names), 'column')}, JSON", "line", numbers)


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}): each line must be one object.") from None
    if not isinstance(row, dict):
        raise DataError(f'{where} is not a JSON object: each line must be one, as in {{"id": 1}}.')
    return row
