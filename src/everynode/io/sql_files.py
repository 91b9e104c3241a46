"""Tables and queries of databases: sqlite:FILE?QUERY and duckdb:FILE?QUERY."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from everynode.errors import DataError, UsageError
from everynode.extras import install_command
from everynode.io.formats import check_path, database_parts
from everynode.io.summary import counted
from everynode.io.tables import COUNTED, Table, make_table

#: A message shows at most this many characters of a query.
SHOWN = 40
#: The tables and views of a database, in both dialects.
TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY table_name",
}


def read_database(source: str) -> Table:
    """Read the rows of a table or a query. The database is opened for reading only.

    A SELECT or the name of a table follows the question mark. DuckDB needs no file for queries on
    other files: ``duckdb:?SELECT * FROM 'people.csv'``.
    """
    engine, file, query = database_parts(source)
    if engine == "sqlite" or file:
        check_path(Path(file))
    run = _run_sqlite if engine == "sqlite" else _run_duckdb
    if not query:
        tables = ", ".join(run(file, TABLES[engine])[0][1]) or "none"
        raise UsageError(
            f"Name a table or a query of {file}, as in {engine}:{file}?TABLE or "
            f"'{engine}:{file}?SELECT ... FROM ...'. Its tables: {tables}."
        )
    is_table = not any(character.isspace() for character in query)
    statement = f"SELECT * FROM {_quoted(query)}" if is_table else query
    short = query if len(query) <= SHOWN else f"{query[:SHOWN]}..."
    columns = run(file, statement)
    how = f"{counted(len(columns), 'column')}, {'SQLite' if engine == 'sqlite' else 'DuckDB'}"
    return make_table(f"{engine}:{file}?{short}", columns, how, "record", COUNTED)


def _run_sqlite(file: str, statement: str) -> list[tuple[str, Any]]:
    address = f"file:{quote(str(Path(file).resolve()))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            cursor = database.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise DataError(f"{file} refuses {statement!r}: {error}.") from error
    return [(name, [row[place] for row in rows]) for place, name in enumerate(names)]


def _run_duckdb(file: str, statement: str) -> list[tuple[str, Any]]:
    try:
        import duckdb
    except ImportError:
        raise DataError(
            f"Reading from DuckDB needs its package: {install_command('duckdb')}, or export the "
            "table as Parquet."
        ) from None
    try:
        with duckdb.connect(file or ":memory:", read_only=bool(file)) as database:
            result = database.execute(statement)
            names = [column[0] for column in result.description or ()]
            rows = result.fetchall()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{file or 'DuckDB'} refuses {statement!r}: {reason}.") from error
    return [(name, [row[place] for row in rows]) for place, name in enumerate(names)]


def _quoted(table: str) -> str:
    """Quote the name of a table, which may have a schema."""
    return ".".join('"' + part.strip('"').replace('"', '""') + '"' for part in table.split("."))
