"""Reader of delimited text with any delimiter, encoding, line ending, comments and blank lines.

Every cell stays text: the type of "007" is inferred later, for the whole column. Rows are counted
as a spreadsheet counts them: a record with a quoted newline is one row, and so is a blank line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from everynode.errors import DataError
from everynode.io.delimited_layout import (
    DELIMITERS,
    EXTRA_BLANKS,
    MAX_RECORD,
    Layout,
    infer_layout,
    is_number,
)
from everynode.io.formats import open_binary
from everynode.io.summary import Notes, counted
from everynode.io.tables import EXAMPLES, Table, where_true

#: A cell starts with a stray quote if it has more lines than this and all look like rows.
MAX_ROWS_IN_CELL = 9
#: Encodings in the order of trial. The last one accepts every byte.
ENCODINGS = ("utf-8", "cp1252", "latin-1")


def read_delimited(
    path: Path, notes: Notes, *, edges: bool = False, expected: Collection[str] = ()
) -> Table:
    """Read a table from delimited text, compressed by gzip or not.

    ``edges`` and ``expected`` help to infer the layout:
    see :func:`everynode.io.delimited_layout.infer_layout`.
    """
    layout = infer_layout(path, edges=edges, expected=expected)
    encoding = "utf-16" if layout.is_utf16 else next(e for e in ENCODINGS if _decodes(path, e))
    columns = _read_cells(path, layout, encoding)
    if any(pc.any(pc.match_substring(column, end)).as_py() for column in columns for end in "\n\r"):
        _check_quotes(path, layout, encoding)
    if encoding in ("cp1252", "latin-1"):
        notes.warn(
            f"{path} is not UTF-8 and was read as {encoding}. If accents look wrong, save it as "
            "UTF-8."
        )
    numbers: Any = range(layout.num_comments + 1, layout.num_comments + 1 + len(columns[0]))
    blank = _blank_rows(columns)
    if len(blank):
        keep = np.ones(len(numbers), dtype=bool)
        keep[blank] = False
        columns = [column.filter(pa.array(keep)) for column in columns]
        numbers = np.asarray(numbers)[keep]
        # Blank rows at the end of a file need no note.
        inside = blank[blank < np.flatnonzero(keep).max(initial=-1)]
        if len(inside):
            notes.repair(f"{path}: {counted(len(inside), 'blank row')} skipped.", len(inside))
    names = layout.names
    if names is None and len(numbers):
        names = tuple(column[0].as_py().strip() for column in columns)
        columns, numbers = [column[1:] for column in columns], numbers[1:]
    if not len(numbers) or names is None:
        raise DataError(f"{path} has a heading but no rows.")
    names = _check_names(names, path)
    how = f"{counted(len(names), 'column')}, {DELIMITERS[layout.delimiter]}-separated"
    how += "" if encoding == "utf-8" else f", {encoding}"
    how += ", no heading" if layout.names and not layout.num_comments else ""
    return Table(str(path), dict(zip(names, columns, strict=True)), how, "row", numbers)


def _decodes(path: Path, encoding: str) -> bool:
    """Return whether the whole file is valid in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with open_binary(path) as file:
            while block := file.read(MAX_RECORD):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged or incomplete ({error}).") from error
    return True


def _read_cells(path: Path, layout: Layout, encoding: str) -> list[pa.ChunkedArray]:
    """Return the columns of all cells, as text; refuse rows with another number of cells."""
    ragged: list[Any] = []
    try:
        columns = _parse(path, layout, encoding, ragged)
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot be read as a table ({reason}).") from error
    if ragged:
        first = ragged[0]
        hint = ""
        if "\n" in first.text.strip():
            hint = " A double quote that opens there may never close."
        is_second_row = first.number == layout.num_comments + 2
        if is_second_row and first.actual_columns == first.expected_columns + 1:
            hint = " Or the heading lacks the name of a column."
        raise DataError(
            f"{path}, row {first.number} has {counted(first.actual_columns, 'cell')} where the "
            f"first row has {first.expected_columns} ({counted(len(ragged), 'such row')}). Put "
            f"cells that hold a {DELIMITERS[layout.delimiter]} in double quotes.{hint}"
        )
    return columns


def _parse(path: Path, layout: Layout, encoding: str, ragged: list[Any]) -> list[pa.ChunkedArray]:
    names = [f"f{i}" for i in range(layout.width)]

    def record_ragged(row: Any) -> str:
        if row.text.strip(" \t\r\n"):
            ragged.append(row if len(ragged) < EXAMPLES else None)
        return "skip"

    with open_binary(path) as file:
        source: Any = file
        if layout.delimiter == " " and encoding != "utf-16":
            source = io.BytesIO(re.sub(EXTRA_BLANKS.encode(), rb"\1", file.read()))
        table = pa.csv.read_csv(
            source,
            # Arrow reports the row number of an error only with one thread.
            pa.csv.ReadOptions(
                column_names=names,
                use_threads=False,
                encoding=encoding,
                skip_rows=layout.num_comments,
                block_size=MAX_RECORD,
            ),
            pa.csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=record_ragged,
            ),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    return list(table.columns)


def _blank_rows(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    blank = pc.equal(pc.utf8_trim_whitespace(columns[0]), "")
    for column in columns[1:]:
        if not pc.any(blank).as_py():
            break
        blank = pc.and_(blank, pc.equal(pc.utf8_trim_whitespace(column), ""))
    return where_true(blank)


def _check_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Refuse repeated names and numbers as names; give unnamed columns a name."""
    counting = (list(range(len(names))), list(range(1, len(names) + 1)))
    if len(names) > 1 and all(map(is_number, names)) and [float(n) for n in names] not in counting:
        raise DataError(f"{path}, row 1 holds numbers instead of column names. Add a heading.")
    places: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        name = name or f"column {place}"
        if name in places:
            raise DataError(
                f"{path}, row 1: columns {places[name]} and {place} are both named {name!r}. "
                "Rename one."
            )
        places[name] = place
    return tuple(places)


def _check_quotes(path: Path, layout: Layout, encoding: str) -> None:
    """Refuse a stray double quote, which merges all rows up to the next quote into one cell.

    Two signs reveal it: text after the closing quote, or a cell with many lines that all look like
    rows. A few such lines may be an address.
    """
    limit = csv.field_size_limit(MAX_RECORD)
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        with io.TextIOWrapper(open_binary(path), encoding=codec, newline="") as file:
            for _ in range(layout.num_comments):
                file.readline()
            records = csv.reader(file, delimiter=layout.delimiter, strict=True)
            number = layout.num_comments
            while True:
                number, start, record = number + 1, records.line_num, None
                with contextlib.suppress(csv.Error):
                    record = next(records, [])
                num_lines = records.line_num - start
                if not num_lines:
                    return
                is_long = num_lines > MAX_ROWS_IN_CELL
                if num_lines > 1 and (record is None or (is_long and _like_rows(record, layout))):
                    raise DataError(
                        f"{path}, row {number}: a double quote opens there and never closes, or "
                        "only some rows later. Close it in its cell, or remove it."
                    )
    finally:
        csv.field_size_limit(limit)


def _like_rows(record: Sequence[str], layout: Layout) -> bool:
    """Return whether every line of a record has as many cells as a row."""
    lines = layout.delimiter.join(record).splitlines()
    return layout.width > 1 and all(
        line.count(layout.delimiter) == layout.width - 1 for line in lines
    )
