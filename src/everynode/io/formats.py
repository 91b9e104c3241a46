"""File formats: their names, their endings, and access to files that may be compressed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import BinaryIO, Literal, cast

from everynode.errors import DataError

TableFormat = Literal["text", "parquet", "jsonl"]

#: Endings of edge lists, which may lack a heading.
EDGE_LIST_ENDINGS = ("edges", "edgelist", "el")
#: The format of a file that holds one table, by its ending (without .gz).
TABLE_FORMATS: dict[str, TableFormat] = {
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "dat", *EDGE_LIST_ENDINGS), "text"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("jsonl", "ndjson"), "jsonl"),
}
#: The endings of files that hold nodes and edges together. Each is the name of its format.
GRAPH_FORMATS = ("graphml", "gexf", "json", "npz")


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
