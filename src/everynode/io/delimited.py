"""Delimited text as people have it: any delimiter, encoding and line ending, a byte order mark, quoted newlines, blank lines, comments.

Every cell stays text here: what "007" means is decided later, for a whole column. Rows are counted as a spreadsheet counts them, so a
record with a quoted newline is one row, and a blank line is one.
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
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from everynode.errors import DataError
from everynode.io.summary import Notes, counted
from everynode.io.tables import EXAMPLES, Table, ending, unpacked, where_true

#: How much of a file is looked at to find out how it is written: so many bytes, or more if these are fewer lines than that.
HEAD, LINES = 1 << 16, 10
#: More lines than this in a cell that all look like rows are rows, which a stray quote swallowed.
SWALLOWED = 9
#: A record must be shorter than this, in bytes.
BLOCK = 1 << 24
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
#: What the lines before a table may be: comments, and Excel's line for the delimiter.
COMMENT = r"[#%]|\"?sep=.\"?\s*$"
#: Blanks around and between the cells of a space-separated list; the first group is what stays of them.
RUN = r"(?m)^[ \t]+|[ \t]+(?=\r?$)|( )[ \t]+"
#: Tried in this order; in the last one every byte is a letter.
ENCODINGS = ("utf-8", "cp1252", "latin-1")
#: The byte order marks of UTF-16.
UTF16 = (b"\xff\xfe", b"\xfe\xff")
#: What files that are no text begin with, and the way out.
MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x93NUMPY": "a NumPy array: save the table as CSV",
    b"\x89HDF": "an HDF5 file: save the table as CSV or Parquet",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
    b"%PDF": "a PDF: save the table as CSV",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it, or use gzip",
    b"BZh": "packed by bzip2: unpack it, or use gzip",
    b"\xfd7zXZ": "packed by xz: unpack it, or use gzip",
}


class _Layout(NamedTuple):
    """How a file is written."""

    delimiter: str
    #: How many cells a row has.
    width: int
    #: How many lines of comments come first.
    comments: int
    #: The column names if they are not in the first row: from the last comment, or made up for a bare edge list.
    names: tuple[str, ...] | None


def read_delimited(
    path: Path, notes: Notes, *, edges: bool = False, expected: Collection[str] = ()
) -> Table:
    """A table from delimited text, packed by gzip or not. ``edges``: it may be a bare edge list, without a heading and with spaces.

    ``expected``: names that columns are likely to have, in lower case; a comment with fewer of them than the first row is not its heading.
    """
    head, whole = _head(path)
    layout = _layout(_text(head, whole), path, edges, expected)
    encoding = "utf-16" if head.startswith(UTF16) else next(e for e in ENCODINGS if _fits(path, e))
    columns = _cells(path, layout, encoding)
    if any(pc.any(pc.match_substring(column, end)).as_py() for column in columns for end in "\n\r"):
        _check_quotes(path, layout, encoding)
    if encoding in ("cp1252", "latin-1"):
        notes.warn(
            f"{path} is not UTF-8 and was read as {encoding}: if accents look wrong, save it as UTF-8."
        )
    numbers: Any = range(layout.comments + 1, layout.comments + 1 + len(columns[0]))
    blank = _blank_rows(columns)
    if len(blank):
        keep = np.ones(len(numbers), dtype=bool)
        keep[blank] = False
        columns, numbers = (
            [column.filter(pa.array(keep)) for column in columns],
            np.asarray(numbers)[keep],
        )
        inside = blank[
            blank < np.flatnonzero(keep).max(initial=-1)
        ]  # at the end of a file they are no news
        if len(inside):
            notes.repair(f"{counted(len(inside), 'blank row')} of {path} passed over.", len(inside))
    names = layout.names
    if names is None and len(numbers):
        names = tuple(column[0].as_py().strip() for column in columns)
        columns, numbers = [column[1:] for column in columns], numbers[1:]
    if not len(numbers) or names is None:
        raise DataError(f"{path} has a heading but no rows.")
    names = _check_names(names, path)
    how = f"{counted(len(names), 'column')}, {DELIMITERS[layout.delimiter]}-separated"
    how += ("" if encoding == "utf-8" else f", {encoding}") + (
        ", no heading" if layout.names and not layout.comments else ""
    )
    return Table(str(path), dict(zip(names, columns, strict=True)), how, "row", numbers)


def other_kind(path: Path) -> str:
    """What a file is that is no text, with the way out, as far as its first bytes tell; else nothing."""
    with path.open("rb") as file:
        return _kind(file.read(HEAD))


# ---------------------------------------------------------------------- looking at the beginning


def _kind(head: bytes) -> str:
    return next((what for magic, what in MAGIC.items() if head.startswith(magic)), "")


def _head(path: Path) -> tuple[bytes, bool]:
    """The beginning of a file, and whether that is all of it."""
    with unpacked(path) as file:
        try:
            head = more = file.read(HEAD)
            while (
                more and len(head) < BLOCK and head.count(b"\n") + head.count(b"\r") < LINES
            ):  # a heading may be wide
                more = file.read(HEAD)
                head += more
            whole = not file.read(1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged or cut short ({error}).") from error
    kind = _kind(head)
    if kind:
        raise DataError(f"{path} is no text but {kind}.")
    if not head.strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"):
        raise DataError(f"{path} is empty.")
    if b"\0" in head and not head.startswith(UTF16):
        raise DataError(f"{path} is no text (it has zero bytes): save the table as CSV or Parquet.")
    return head, whole


def _text(head: bytes, whole: bool) -> str:
    """The head as text, its last line, which may be cut, left out."""
    text = head.decode(
        "utf-16" if head.startswith(UTF16) else "utf-8", errors="replace"
    ).removeprefix("\ufeff")
    return text if whole else text.rpartition("\n")[0] or text


def _layout(text: str, path: Path, edges: bool, expected: Collection[str]) -> _Layout:
    lines = re.split(r"\r\n|\r|\n", text)
    comments = next(
        (
            number
            for number, line in enumerate(lines)
            if line.strip() and not re.match(COMMENT, line)
        ),
        0,
    )
    body = "\n".join(lines[comments:])
    records = {
        d: _records(re.sub(RUN, r"\1", body) if d == " " else body, d)
        for d in DELIMITERS
        if d != " " or edges
    }
    # the delimiter that cuts the first row, and then the most rows into as many cells; of several, the one that cuts the most
    scores = {
        d: (np.mean([len(r) == len(rows[0]) for r in rows]), d != " ", len(rows[0]))
        for d, rows in records.items()
        if rows
    }
    delimiter = max((d for d in scores if scores[d][2] > 1), key=lambda d: scores[d], default=",")
    first = records[delimiter][0] if records[delimiter] else [""]
    heading = lines[comments - 1] if comments and lines[comments - 1][:1] in ("#", "%") else ""
    named = next(csv.reader([heading.lstrip("#% ")], delimiter=delimiter), [])
    if 1 < len(named) == len(first) and _known(named, expected) >= _known(first, expected):
        return _Layout(delimiter, len(first), comments, tuple(name.strip() for name in named))
    bare = (
        ending(path) in ("edges", "edgelist", "el")
        or delimiter == " "
        or len(records[delimiter]) == 1
    )
    if (
        edges
        and len(first) > 1
        and (all(map(_is_number, first)) or (bare and not _is_heading(first)))
    ):
        return _Layout(
            delimiter, len(first), comments, tuple(f"column {i + 1}" for i in range(len(first)))
        )
    return _Layout(delimiter, len(first), comments, None)


def _records(text: str, delimiter: str) -> list[list[str]]:
    """The first hundred records that are not blank."""
    found: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in record):
                found.append(record)
            if len(found) == 100:
                break
    except csv.Error:  # a cell of over 128 kB: what was found so far must do
        pass
    return found


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", cell) is not None


def _known(cells: Sequence[str], expected: Collection[str]) -> int:
    return sum(cell.strip().lower() in expected for cell in cells)


def _is_heading(cells: Sequence[str]) -> bool:
    return {cell.strip().lower() for cell in cells[:2]} <= {
        "source",
        "target",
        "src",
        "dst",
        "from",
        "to",
    }


def _check_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    if len(names) > 1 and all(map(_is_number, names)) and [float(n) for n in names] not in (
        list(range(len(names))), list(range(1, len(names) + 1))
    ):  # fmt: skip
        raise DataError(
            f"{path}, row 1 holds numbers where column names are expected: add a heading."
        )
    places: dict[str, int] = {}
    for place, name in enumerate((name or f"column {i}" for i, name in enumerate(names, 1)), 1):
        if name in places:
            raise DataError(
                f"{path}, row 1: the columns {places[name]} and {place} are both named {name!r}. Rename one."
            )
        places[name] = place
    return tuple(places)


# ---------------------------------------------------------------------- reading all of it


def _fits(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with unpacked(path) as file:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short ({error}).") from error
    return True


def _cells(path: Path, layout: _Layout, encoding: str) -> list[pa.ChunkedArray]:
    """All cells as text."""
    ragged: list[Any] = []
    try:
        columns = _parse(path, layout, encoding, ragged)
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        raise DataError(
            f"{path} cannot be read as a table ({str(error).splitlines()[0].rstrip('.')})."
        ) from error
    if ragged:
        first = ragged[0]
        hint = (
            " A double quote that opens there may never close."
            if "\n" in first.text.strip()
            else ""
        )
        if (
            first.number == layout.comments + 2
            and first.actual_columns == first.expected_columns + 1
        ):
            hint = " Or the heading lacks the name of a column."
        raise DataError(
            f"{path}, row {first.number} has {counted(first.actual_columns, 'cell')} where the first row has {first.expected_columns} "
            f"({counted(len(ragged), 'such row')}): put cells that hold a {DELIMITERS[layout.delimiter]} in double quotes.{hint}"
        )
    return columns


def _parse(path: Path, layout: _Layout, encoding: str, ragged: list[Any]) -> list[pa.ChunkedArray]:
    names = [f"f{i}" for i in range(layout.width)]

    def note(row: Any) -> str:
        if row.text.strip(" \t\r\n"):
            ragged.append(row if len(ragged) < EXAMPLES else None)
        return "skip"

    with unpacked(path) as file:
        table = pa.csv.read_csv(
            io.BytesIO(re.sub(RUN.encode(), rb"\1", file.read()))
            if layout.delimiter == " " and encoding != "utf-16"
            else file,
            # one thread: only then are the rows of the errors known
            pa.csv.ReadOptions(
                column_names=names,
                use_threads=False,
                encoding=encoding,
                skip_rows=layout.comments,
                block_size=BLOCK,
            ),
            pa.csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=note,
            ),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    return list(table.columns)


def _blank_rows(columns: Sequence[pa.ChunkedArray]) -> Any:
    blank = pc.equal(pc.utf8_trim_whitespace(columns[0]), "")
    for column in columns[1:]:
        if not pc.any(blank).as_py():
            break
        blank = pc.and_(blank, pc.equal(pc.utf8_trim_whitespace(column), ""))
    return where_true(blank)


def _like_rows(record: Sequence[str], layout: _Layout) -> bool:
    """Whether every line of a record has as many cells as a row."""
    lines = layout.delimiter.join(record).splitlines()
    return layout.width > 1 and all(
        line.count(layout.delimiter) == layout.width - 1 for line in lines
    )


def _check_quotes(path: Path, layout: _Layout, encoding: str) -> None:
    """Refuse a quote that belongs to no pair: up to the next one, or to the end of the file, it makes one cell of all rows.

    It is seen by what follows the quote that closes the cell; or, where a cell is nothing but a quote, by many lines that would all be
    rows: of two or three lines with commas a text may consist, too.
    """
    limit = csv.field_size_limit(BLOCK)
    try:
        with io.TextIOWrapper(
            unpacked(path), encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline=""
        ) as file:
            for _ in range(layout.comments):
                file.readline()
            records = csv.reader(file, delimiter=layout.delimiter, strict=True)
            number, before = layout.comments, 0
            while True:
                number, before, record = number + 1, records.line_num, None
                with contextlib.suppress(csv.Error):
                    record = next(records, [])
                lines = records.line_num - before
                if not lines:
                    return
                if lines > 1 and (
                    record is None or (lines > SWALLOWED and _like_rows(record, layout))
                ):
                    raise DataError(
                        f"{path}, row {number}: a double quote opens there and never closes, or only some rows later: close it in its "
                        "cell, or leave it out."
                    )
    finally:
        csv.field_size_limit(limit)
