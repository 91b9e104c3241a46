"""File formats: their names, their endings, and access to files that may be compressed."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from everynode.errors import DataError, UsageError

TableFormat = Literal["text", "parquet", "jsonl", "excel"]

#: Endings of edge lists, which may lack a heading.
EDGE_LIST_ENDINGS = ("edges", "edgelist", "el")
#: The format of a file that holds one table, by its ending (without .gz).
TABLE_FORMATS: dict[str, TableFormat] = {
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "dat", *EDGE_LIST_ENDINGS), "text"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("jsonl", "ndjson"), "jsonl"),
    **dict.fromkeys(("xlsx", "xlsm"), "excel"),
}
#: The endings of files that hold nodes and edges together. Each is the name of its format.
GRAPH_FORMATS = ("graphml", "gexf", "json", "npz")
#: A compressed file may unpack to this many bytes, or to this many times its size.
UNPACKED_BYTES, UNPACKED_FACTOR = 100 * 10**6, 20
#: The same limit for formats whose arrays need no more memory than their bytes.
ARRAY_BYTES = 10**9
SIZE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_max_size: ContextVar[int | None] = ContextVar("max_size", default=None)


@contextmanager
def size_limit(max_size: str | int | None) -> Iterator[None]:
    """Set the limit of the unpacked size within a block; None keeps the default.

    The default is 100 MB (1 GB for NumPy archives and Parquet) or 20 times the size of the file,
    whichever is larger.

    >>> with size_limit("2G"):
    ...     unpacked_limit(Path("people.csv.gz"))
    2000000000
    """
    token = _max_size.set(parse_size(max_size) if max_size is not None else _max_size.get())
    try:
        yield
    finally:
        _max_size.reset(token)


def parse_size(text: str | int) -> int:
    """Return a size in bytes: a number, or a text such as ``500M`` or ``2GB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", str(text).strip(), re.IGNORECASE)
    if match is None or not float(match[1]):
        raise UsageError(f"The size must be a number such as 500M or 2G. Got {text!r}.")
    return int(float(match[1]) * SIZE_UNITS[match[2].upper()])


def unpacked_limit(path: Path, least: int = UNPACKED_BYTES) -> int:
    """Return the largest number of bytes that a compressed file may unpack to."""
    limit = _max_size.get()
    return limit if limit is not None else max(least, UNPACKED_FACTOR * path.stat().st_size)


def check_unpacked(path: Path, size: int, limit: int) -> None:
    """Refuse a compressed file that unpacks to more than the limit."""
    if size > limit:
        packed, suggested = path.stat().st_size / 1e6, 4 * max(size, limit) / 1e6
        raise DataError(
            f"{path} unpacks to more than {limit / 1e6:,.3g} MB, from {packed:,.3g} MB. If that is "
            f"right, raise the limit (--max-size {max(suggested, 1):.0f}M)."
        )


#: The prefixes of databases, as in sqlite:FILE?QUERY.
DATABASES = ("sqlite", "duckdb")
#: The separator of a workbook and its sheet, as in graph.xlsx#nodes.
SHEET = "#"


def is_database(source: object) -> bool:
    """Return whether a source is a table or a query of a database."""
    return isinstance(source, str) and source.partition(":")[0].lower() in DATABASES


def database_parts(source: str) -> tuple[str, str, str]:
    """Split a source into engine, file and query.

    >>> database_parts("sqlite:shop.db?SELECT * FROM people")
    ('sqlite', 'shop.db', 'SELECT * FROM people')
    """
    engine, _, rest = source.partition(":")
    file, _, query = rest.partition("?")
    return engine.lower(), file.removeprefix("///"), query.strip()


def split_sheet(path: Path) -> tuple[Path, str]:
    """Split FILE.xlsx#SHEET into the file and the sheet, which is empty without one.

    >>> split_sheet(Path("graph.xlsx#nodes"))  # doctest: +ELLIPSIS
    (...Path('graph.xlsx'), 'nodes')
    """
    file, sign, sheet = str(path).rpartition(SHEET)
    is_sheet = bool(sign) and TABLE_FORMATS.get(ending(Path(file))) == "excel"
    return (Path(file), sheet) if is_sheet and not path.exists() else (path, "")


def source_file(source: str | os.PathLike[str]) -> Path:
    """Return the file of a source, which may name a sheet or a query."""
    if is_database(source):
        return Path(database_parts(str(source))[1])
    return split_sheet(Path(source))[0]


def ending(path: Path) -> str:
    """Return the ending of a file name in lower case, without ``.gz``.

    >>> ending(Path("people.CSV.gz")), ending(Path("people"))
    ('csv', '')
    """
    name = path.name.lower().removesuffix(".gz")
    return name.rpartition(".")[2] if "." in name else ""


def check_path(path: Path) -> None:
    """Raise :class:`DataError` for a missing file, a folder, a pipe or a device."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder. Name a file.")
        if not path.exists():
            raise DataError(f"There is no file {path}.")
        if not path.is_file():  # files are read twice, and a pipe without a writer blocks forever
            raise DataError(f"{path} is a pipe or a device. Save its content in a file first.")
    except OSError as error:  # the name is too long, or a folder cannot be entered
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; decompress it if its first bytes are those of gzip."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, _Unpacked(path)) if compressed else path.open("rb")


class _Unpacked(gzip.GzipFile):
    """A gzip file that refuses to unpack to more than the limit."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path, self._limit = path, unpacked_limit(path)
        self._chunk = 1 << 20

    def read(self, size: int | None = -1) -> bytes:
        """Read up to ``size`` bytes, all without it."""
        if size is not None and size >= 0:
            return self._checked(super().read(size))
        blocks = []
        while block := self.read(self._chunk):
            blocks.append(block)
        return b"".join(blocks)

    def read1(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes with one call."""
        return self._checked(super().read1(size))

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes."""
        content = self.read(len(memoryview(buffer).cast("B")))
        memoryview(buffer).cast("B")[: len(content)] = content
        return len(content)

    def _checked(self, content: bytes) -> bytes:
        check_unpacked(self._path, self.tell(), self._limit)
        return content
