"""The store of run records: one SQLite file that several processes may write, in which a run is found by its content hash."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from everynode.errors import DataError

#: Marks a file as ours, so that somebody else's database is never written into ("ENC1").
APPLICATION_ID = 0x454E4331


class Store:
    """Records by run key. Opening creates the file; a file that is not a store is refused and left untouched."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with self._connect() as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            owner = connection.execute("PRAGMA application_id").fetchone()[0]
            if owner != APPLICATION_ID and tables:
                raise DataError(f"{self.path} is a database of something else: give another --out.")
            if owner != APPLICATION_ID:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT")

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60.0)) as connection, connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"{self.path} cannot serve as a store of runs ({error}): move it away, or give another --out.") from error

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record; the first one of a run stays."""
        with self._connect() as connection:
            connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (key, json.dumps(record)))

    def forget(self, key: str) -> None:
        """Drop a record, so that its run is done again."""
        with self._connect() as connection:
            connection.execute("DELETE FROM runs WHERE key = ?", (key,))

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a run, or None."""
        with self._connect() as connection:
            row = connection.execute("SELECT record FROM runs WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])
