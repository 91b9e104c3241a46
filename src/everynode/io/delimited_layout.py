"""The layout of a delimited text file, inferred from its beginning."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from everynode.errors import DataError
from everynode.io.column_names import USUAL_NAMES
from everynode.io.formats import EDGE_LIST_ENDINGS, ending, open_binary

#: The layout is inferred from this many bytes, or from more if they hold fewer lines than this.
HEAD_BYTES, HEAD_LINES = 1 << 16, 10
#: The layout is inferred from at most this many records.
HEAD_RECORDS = 100
#: The maximum length of a record in bytes.
MAX_RECORD = 1 << 24
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
#: Lines before a table: comments, and Excel's line that names the delimiter.
COMMENT = r"[#%]|\"?sep=.\"?\s*$"
#: Blanks to remove from a space-separated list. The first group is kept.
EXTRA_BLANKS = r"(?m)^[ \t]+|[ \t]+(?=\r?$)|( )[ \t]+"
#: The byte order marks of UTF-16.
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: The first bytes of binary formats, and what to do about each.
MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: name a workbook .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x93NUMPY": "a NumPy array: save the table as CSV",
    b"\x89HDF": "an HDF5 file: save the table as CSV or Parquet",
    b"SQLite format 3": "an SQLite database: name a table, as in sqlite:FILE?TABLE",
    b"%PDF": "a PDF: save the table as CSV",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: decompress it, or use gzip",
    b"BZh": "compressed by bzip2: decompress it, or use gzip",
    b"\xfd7zXZ": "compressed by xz: decompress it, or use gzip",
}


class Layout(NamedTuple):
    """The layout of a delimited text file.

    Attributes
    ----------
    delimiter : str
        The sign between two cells.
    width : int
        The number of cells per row.
    num_comments : int
        The number of comment lines before the table.
    names : tuple of str or None
        The column names if they are not in the first row: the last comment, or made-up names.
    is_utf16 : bool
        Whether the file starts with a byte order mark of UTF-16.
    """

    delimiter: str
    width: int
    num_comments: int
    names: tuple[str, ...] | None
    is_utf16: bool


def infer_layout(path: Path, *, edges: bool, expected: Collection[str]) -> Layout:
    """Infer the layout of a file from its first lines.

    ``edges`` allows a bare edge list, without a heading or separated by spaces. ``expected`` holds
    likely column names in lower case. A comment is not the heading if it has fewer of them than the
    first row.
    """
    head, is_complete = _read_head(path)
    is_utf16 = head.startswith(UTF16_MARKS)
    text = head.decode("utf-16" if is_utf16 else "utf-8", errors="replace").removeprefix("\ufeff")
    if not is_complete:  # the last line may be cut
        text = text.rpartition("\n")[0] or text
    lines = re.split(r"\r\n|\r|\n", text)
    is_content = [bool(line.strip()) and not re.match(COMMENT, line) for line in lines]
    num_comments = is_content.index(True) if any(is_content) else 0
    delimiter, records = _infer_delimiter("\n".join(lines[num_comments:]), edges)
    first = records[0] if records else [""]
    last_comment = lines[num_comments - 1] if num_comments else ""
    comment = last_comment.lstrip("#% ") if last_comment[:1] in ("#", "%") else ""
    names = next(csv.reader([comment], delimiter=delimiter), [])
    if 1 < len(names) == len(first) and _matches(names, expected) >= _matches(first, expected):
        heading = tuple(name.strip() for name in names)
        return Layout(delimiter, len(first), num_comments, heading, is_utf16)
    may_be_bare = ending(path) in EDGE_LIST_ENDINGS or delimiter == " " or len(records) == 1
    is_bare = all(map(is_number, first)) or (may_be_bare and not _names_two_ends(first))
    if edges and len(first) > 1 and is_bare:
        heading = tuple(f"column {i + 1}" for i in range(len(first)))
        return Layout(delimiter, len(first), num_comments, heading, is_utf16)
    return Layout(delimiter, len(first), num_comments, None, is_utf16)


def binary_format(path: Path) -> str:
    """Name the binary format of a file with advice, by its first bytes; empty if unknown."""
    with path.open("rb") as file:
        return _binary_format(file.read(HEAD_BYTES))


def is_number(cell: str) -> bool:
    """Return whether a cell of the first row is a number."""
    return re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", cell) is not None


def _binary_format(head: bytes) -> str:
    return next((advice for magic, advice in MAGIC.items() if head.startswith(magic)), "")


def _read_head(path: Path) -> tuple[bytes, bool]:
    """Return the beginning of a file, and whether it is the whole file."""
    with open_binary(path) as file:
        try:
            head = block = file.read(HEAD_BYTES)
            # A wide heading alone may fill the first block.
            while block and len(head) < MAX_RECORD and _count_lines(head) < HEAD_LINES:
                block = file.read(HEAD_BYTES)
                head += block
            is_complete = not file.read(1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged or incomplete ({error}).") from error
    if found_format := _binary_format(head):
        raise DataError(f"{path} is not text but {found_format}.")
    if not head.strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"):
        raise DataError(f"{path} is empty.")
    if b"\0" in head and not head.startswith(UTF16_MARKS):
        raise DataError(
            f"{path} is not text: it holds zero bytes. Save the table as CSV or Parquet."
        )
    return head, is_complete


def _count_lines(head: bytes) -> int:
    return head.count(b"\n") + head.count(b"\r")


def _infer_delimiter(body: str, edges: bool) -> tuple[str, list[list[str]]]:
    """Return the delimiter that fits best, and the first records that it yields.

    It must occur in the first row. The best delimiter gives the most rows the same number of cells;
    in a tie, the larger number of cells wins, and a space is the last choice.
    """
    records = {
        delimiter: _first_records(
            re.sub(EXTRA_BLANKS, r"\1", body) if delimiter == " " else body, delimiter
        )
        for delimiter in DELIMITERS
        if delimiter != " " or edges
    }
    scores = {
        delimiter: (np.mean([len(r) == len(rows[0]) for r in rows]), delimiter != " ", len(rows[0]))
        for delimiter, rows in records.items()
        if rows and len(rows[0]) > 1
    }
    best = max(scores, key=lambda delimiter: scores[delimiter], default=",")
    return best, records[best]


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in record):
                records.append(record)
            if len(records) == HEAD_RECORDS:
                break
    except csv.Error:  # a cell of over 128 kB: use the records before it
        pass
    return records


def _matches(cells: Sequence[str], expected: Collection[str]) -> int:
    return sum(cell.strip().lower() in expected for cell in cells)


def _names_two_ends(cells: Sequence[str]) -> bool:
    """Return whether the first two cells are usual names for the ends of an edge."""
    names = {*USUAL_NAMES["source"], *USUAL_NAMES["target"]}
    return {cell.strip().lower() for cell in cells[:2]} <= names
