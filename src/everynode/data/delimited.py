"""Delimited text as people have it: any delimiter, encoding and line ending, a byte order mark, quoted newlines, blank lines, comments.

Every cell stays text here: what "007" means is decided later, column by column.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from everynode.data.tables import EXAMPLES, Table, row_numbers, where_true
from everynode.data.understood import Notes
from everynode.errors import DataError

#: How much of a file is looked at to find out how it is written.
HEAD = 1 << 16
#: The longest record, in bytes, is somewhat shorter than this.
BLOCK = 1 << 24
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
#: What files that are no text begin with.
MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x93NUMPY": "a NumPy array: save a graph as .npz",
    b"\x89HDF": "an HDF5 file: save the table as CSV or Parquet",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
    b"%PDF": "a PDF: save the table as CSV",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it, or use gzip",
    b"BZh": "compressed by bzip2: unpack it, or use gzip",
    b"\xfd7zXZ": "compressed by xz: unpack it, or use gzip",
}


class _Layout(NamedTuple):
    """How a file is written."""

    delimiter: str
    encoding: str
    #: Lines before the heading or the first record: comments.
    skipped: int
    width: int
    #: The column names, if a comment gave them or there are none in the file.
    names: tuple[str, ...] | None


def read_delimited(path: Path, notes: Notes, *, edges: bool = False, preferred: str | None = None) -> Table:
    """A table from delimited text, packed by gzip or not."""
    head = _head(path)
    layout = _layout(head, path, edges, preferred)
    columns, encoding = _cells(path, layout, _encodings(head))
    if encoding not in ("utf-8", "utf-16"):
        notes.warn(f"{path} is not UTF-8: it was read as {encoding}. Look whether its accents are right.")
    first = 1 + layout.skipped
    names = layout.names
    if names is None:
        names = tuple((column[0].as_py() or "").strip().strip("\ufeff") for column in columns)
        columns, first = [column[1:] for column in columns], first + 1
    names = _check_names(names, path)
    blank = _blank_rows(columns)
    numbers: Any = range(first, first + len(columns[0]))
    if len(blank):
        keep = np.ones(len(columns[0]), dtype=bool)
        keep[blank] = False
        columns, numbers = [column.filter(pa.array(keep)) for column in columns], row_numbers(pa.array(keep), first)
        trailing = blank[-1] == len(keep) - 1 and len(blank) == 1
        if not trailing:
            notes.repair(f"{len(blank):,} blank row{'s' if len(blank) > 1 else ''} of {path} passed over.", len(blank))
    if not len(columns[0]):
        raise DataError(f"{path} has a heading but no rows: is it the right file?")
    table = Table(str(path), dict(zip(names, columns, strict=True)), "", "row", numbers)
    _check_quotes(table, path)
    how = f"{table.num_rows:,} rows, {len(names)} columns, {DELIMITERS[layout.delimiter]}-separated" + (
        "" if encoding == "utf-8" else f", {encoding}"
    )
    return Table(table.where, table.columns, how, "row", numbers)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as file:
                head = file.read(HEAD)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged or cut short ({error}).") from error
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"{path} is no text but {what}.")
    if not head.strip():
        raise DataError(f"{path} is empty.")
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is no text (it has zero bytes): save the table as CSV or Parquet.")
    return head


def _encodings(head: bytes) -> tuple[str, ...]:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    return ("utf-8", "cp1252", "latin-1")  # in latin-1 every byte is a letter


def _layout(head: bytes, path: Path, edges: bool, preferred: str | None) -> _Layout:
    text = head.decode("utf-16" if _encodings(head) == ("utf-16",) else "utf-8", errors="replace").lstrip("\ufeff")
    if len(head) == HEAD:  # the last line may be cut
        text = text.rpartition("\n")[0] or text
    lines = text.splitlines()
    skipped = next((number for number, line in enumerate(lines) if not line.startswith(("#", "%"))), len(lines))
    if skipped == len(lines):
        raise DataError(f"{path} has only comments.")
    text = "\n".join(lines[skipped:])
    choices = {d: records for d in DELIMITERS if (d != " " or edges) and len(records := _records(text, d))}
    scores = {}
    for delimiter, records in choices.items():
        width = len(records[0])
        if width > 1:
            same = sum(len(record) == width for record in records) / len(records)
            scores[delimiter] = (same, delimiter == preferred, delimiter != " ", width)
    if not scores:
        records = choices.get(",") or [[""]]
        return _Layout(",", "utf-8", skipped, len(records[0]), None)
    delimiter = max(scores, key=lambda d: scores[d])
    records = choices[delimiter]
    width = len(records[0])
    comment = next(csv.reader([lines[skipped - 1].lstrip("#% ")], delimiter=delimiter)) if skipped else []
    if len(comment) == width:
        return _Layout(delimiter, "utf-8", skipped, width, tuple(comment))
    if edges and all(_is_number(cell) for cell in records[0]):
        return _Layout(delimiter, "utf-8", skipped, width, tuple(f"column {i + 1}" for i in range(width)))
    return _Layout(delimiter, "utf-8", skipped, width, None)


def _records(text: str, delimiter: str, most: int = 100) -> list[list[str]]:
    found: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in record):
                found.append(record)
            if len(found) == most:
                break
    except csv.Error:
        pass
    return found


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cells(path: Path, layout: _Layout, encodings: Sequence[str]) -> tuple[list[pa.ChunkedArray], str]:
    """All cells as text, the heading being the first row, and the encoding that fitted."""
    for encoding in encodings:
        ragged: list[Any] = []
        try:
            table = _parse(path, layout, encoding, ragged)
        except (UnicodeDecodeError, pa.ArrowInvalid) as error:
            if encoding != encodings[-1] and (isinstance(error, UnicodeDecodeError) or "UTF8" in str(error)):
                continue
            raise DataError(f"{path} cannot be read as a table: {str(error).splitlines()[0].rstrip('.')}.") from error
        except (EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged or cut short ({error}).") from error
        if ragged:
            _refuse_ragged(ragged, layout, path)
        return table.columns, encoding
    raise AssertionError("the last encoding reads everything or raises")


def _parse(path: Path, layout: _Layout, encoding: str, ragged: list[Any]) -> pa.Table:
    names = [f"f{i}" for i in range(layout.width)]

    def skip(row: Any) -> str:
        if row.text.strip(" \t\r\n" + layout.delimiter):
            ragged.append(row if len(ragged) < EXAMPLES else row.number)
        return "skip"

    with pa.input_stream(str(path), compression="gzip" if _packed(path) else None) as stream:
        return pa.csv.read_csv(
            stream,
            # one thread: only then are the rows of the errors known
            pa.csv.ReadOptions(column_names=names, use_threads=False, encoding=encoding, skip_rows=layout.skipped, block_size=BLOCK),
            pa.csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=skip),
            pa.csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=False),
        )


def _packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _refuse_ragged(ragged: list[Any], layout: _Layout, path: Path) -> None:
    first = ragged[0]
    many = f" ({len(ragged):,} such rows)" if len(ragged) > 1 else ""
    quote = " A quote that opens there may never close." if "\n" in first.text.strip() else ""
    raise DataError(
        f"{path}, row {first.number} has {first.actual_columns} cells where the first row has {first.expected_columns}{many}: "
        f"put cells that hold a {DELIMITERS[layout.delimiter]} in double quotes.{quote}"
    )


def _check_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    if len(names) > 2 and all(_is_number(name) for name in names) and [float(n) for n in names] != list(range(len(names))):
        raise DataError(f"{path}, row 1 holds numbers where column names are expected: add a heading.")
    named = tuple(name or f"column {i + 1}" for i, name in enumerate(names))
    for i, name in enumerate(named):
        if name in named[:i]:
            raise DataError(f"{path}, row 1: the columns {named.index(name) + 1} and {i + 1} are both named {name!r}. Rename one.")
    return named


def _blank_rows(columns: Sequence[pa.ChunkedArray]) -> Any:
    blank = pc.equal(pc.utf8_trim_whitespace(columns[0]), "")
    for column in columns[1:]:
        if not pc.any(blank).as_py():
            break
        blank = pc.and_(blank, pc.equal(pc.utf8_trim_whitespace(column), ""))
    return where_true(blank)


def _check_quotes(table: Table, path: Path) -> None:
    """A quote that never closes makes the rest of the file one cell."""
    last = list(table.columns.values())[-1][-1].as_py() or ""
    if last.endswith(("\n", "\r")) and len(last.splitlines()) > 1:
        raise DataError(f"{table.row(table.num_rows - 1)}: a double quote opens and never closes. Close it, or write it twice.")
