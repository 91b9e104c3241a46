"""File formats: their names, their endings, and access to files that may be compressed."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import BinaryIO, Literal, cast

from everynode.errors import DataError

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


#: The prefixes of databases, as in sqlite:FILE?QUERY.
DATABASES = ("sqlite", "duckdb")
#: Between a workbook and its sheet, as in graph.xlsx#nodes.
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
    """Raise :class:`DataError` for a missing file or a folder."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder. Name a file.")
        if not path.exists():
            raise DataError(f"There is no file {path}.")
    except OSError as error:  # the name is too long, or a folder cannot be entered
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; decompress it if its first bytes are those of gzip."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if compressed else path.open("rb")
