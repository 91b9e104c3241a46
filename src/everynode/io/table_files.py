"""Readers of one table: delimited text, Parquet, JSON lines, and data frames."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from everynode.errors import DataError, unknown
from everynode.io.delimited import read_delimited
from everynode.io.delimited_layout import binary_format
from everynode.io.excel_files import read_excel
from everynode.io.formats import (
    ARRAY_BYTES,
    TABLE_FORMATS,
    check_path,
    check_unpacked,
    ending,
    is_database,
    open_binary,
    split_sheet,
    unpacked_limit,
)
from everynode.io.records import Records
from everynode.io.sql_files import read_database
from everynode.io.summary import Notes, counted
from everynode.io.tables import COUNTED, Table, decode, make_table
from everynode.storage.json_text import parse_json


def open_table(
    source: Any,
    notes: Notes,
    *,
    edges: bool = False,
    format: str | None = None,
    expected: Collection[str] = (),
) -> Table:
    """Read a table from a file or from memory.

    Parameters
    ----------
    source : path, data frame or dict
        A file, FILE.xlsx#SHEET, sqlite:FILE?QUERY, a pandas, polars or Arrow table, or a dict of
        columns.
    notes : Notes
        Collects repairs and warnings.
    edges : bool
        Whether this is the edge table, which may be a bare list without a heading.
    format : {"text", "parquet", "jsonl", "excel"}, optional
        The format of the file. Default: the format of its ending.
    expected : collection of str
        Likely column names in lower case, which help to find the heading.
    """
    if not isinstance(source, str | os.PathLike):
        return _from_memory(source, "the table of edges" if edges else "the table of nodes")
    if is_database(source):
        return read_database(str(source))
    path, sheet = split_sheet(Path(source))
    check_path(path)
    format = format or TABLE_FORMATS.get(ending(path))
    try:
        if format is None:
            _refuse_ending(path)
        if format == "parquet":
            return _read_parquet(path)
        if format == "jsonl":
            return _read_json_lines(path)
        if format == "excel":
            return read_excel(path, sheet, notes, edges=edges)
        if format == "text":
            return read_delimited(path, notes, edges=edges, expected=expected)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"Cannot read {path}: {reason}.") from error
    unknown("format", format, dict.fromkeys(TABLE_FORMATS.values()))


def _refuse_ending(path: Path) -> NoReturn:
    if found_format := binary_format(path):
        raise DataError(f"{path} is not text but {found_format}.")
    raise DataError(
        f"{path}: the ending does not name a table format. Rename the file to one of "
        f".{', .'.join(TABLE_FORMATS)}, each optionally followed by .gz."
    )


def _from_memory(source: Any, where: str) -> Table:
    names = list(getattr(source, "columns", source if isinstance(source, Mapping) else ()))
    try:
        table = pa.table(source)
        columns = list(zip(table.column_names, table.columns, strict=True))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        if not names or not hasattr(source, "__getitem__"):
            raise DataError(
                f"{where} must be a path or a data frame. Got {type(source).__name__} ({error})."
            ) from None
        repeated = [name for place, name in enumerate(names) if name in names[:place]]
        if repeated:
            raise DataError(
                f"{where} has two columns named {repeated[0]!r}: rename one of them."
            ) from None
        # A column holds values of several types.
        columns = [(str(name), list(source[name])) for name in names]
        if len({len(values) for _, values in columns}) > 1:
            raise DataError(f"{where} has columns of different lengths.") from None
    # The index of pandas: text may be the ids; numbers are left over from another table.
    columns = [
        ("index" if name == "__index_level_0__" else name, values)
        for name, values in columns
        if name != "__index_level_0__" or pa.types.is_string(decode(values).type)
    ]
    return make_table(where, columns, "", "record", COUNTED)


def _read_parquet(path: Path) -> Table:
    import pyarrow.parquet as pq

    try:
        described = pq.ParquetFile(path).metadata
        # Repeated values take no room in the file, but eight bytes each in memory.
        size = 8 * described.num_rows * described.num_columns
        check_unpacked(path, size, unpacked_limit(path, ARRAY_BYTES))
        table = pq.read_table(path)
        table.validate(full=True)  # damaged text would fail later, without the name of the file
    except DataError:
        raise
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} is not a Parquet file: {reason}.") from error
    columns = zip(table.column_names, table.columns, strict=True)
    how = f"{counted(table.num_columns, 'column')}, Parquet"
    return make_table(str(path), columns, how, "record", range(1, table.num_rows + 1))


def _read_json_lines(path: Path) -> Table:
    """Read one JSON object per line, skipping blank lines."""
    records, numbers = Records(), []
    try:
        with io.TextIOWrapper(open_binary(path), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    records.add(_json_object(line, f"{path}, line {number}"))
                    numbers.append(number)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error.reason}). Save it as UTF-8.") from None
    columns = records.columns(str(path))
    how = f"{counted(len(columns), 'column')}, JSON"
    return make_table(str(path), columns, how, "line", numbers)


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise DataError(f"{where} is not JSON ({error}). Each line must be one object.") from None
    if not isinstance(row, dict):
        raise DataError(
            f'{where} is not a JSON object. Each line must be an object such as {{"id": 1}}.'
        )
    return row
