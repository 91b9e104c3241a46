"""The SQLite file of a store: create, inspect and open it, and check its rows."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from everynode.errors import DataError
from everynode.storage.json_text import parse_json

#: The application id of a store ("ENC1"), which protects other databases.
APPLICATION_ID = 0x454E4331
#: The version of the tables and of the records.
SCHEMA = 3
#: Bytes of an SQLite header. A shorter file that is not empty is not a database.
HEADER = 100
#: Attempts to inspect a file that other processes change.
ATTEMPTS = 5
#: The first version with STRICT tables.
OLDEST_SQLITE = (3, 37, 0)
#: Seconds to wait for another process that writes.
TIMEOUT = 60.0
#: The entry of a stored cost that holds the digest of the row.
DIGEST = "digest"
#: A stored run: the columns of the table ``runs``.
Row = tuple[str, str, str, str, bytes]

_TABLES = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,
    specification TEXT NOT NULL,  -- canonical JSON; the key is its SHA-256
    record TEXT NOT NULL,         -- the result, equal for equal runs on one kind of machine
    cost TEXT NOT NULL,           -- seconds and memory, and the digest of the row
    curve BLOB NOT NULL           -- terms and metrics of every epoch: JSON, zlib
) STRICT;
CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT;
"""

ALL_ROWS = "SELECT key, specification, record, cost, curve FROM runs"


def store_path(folder: Path) -> Path:
    """Return the store of an output folder."""
    return folder / "runs.db"


class NoStore(DataError):
    """A path has no store yet."""


class StoreFile:
    """The file of a :class:`~everynode.experiments.store.Store`.

    Parameters
    ----------
    path : path
        The file. It is created if needed; any other file is refused and left unchanged.
    must_exist : bool
        Refuse a missing file. The path may then be the folder of ``reproduce`` or ``compare``.

    Attributes
    ----------
    path : Path
        The file itself, if ``path`` is a link or a folder.
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False):
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise DataError(
                f"A store of runs needs SQLite 3.37 or newer. This Python has "
                f"{sqlite3.sqlite_version}. Install a newer Python."
            )
        self.path = store_path(Path(path)) if must_exist and Path(path).is_dir() else Path(path)
        if self.path.is_symlink():  # locks and states belong beside the file itself
            self.path = self.path.resolve()
        if must_exist and not self.path.is_file():
            raise NoStore(
                f"There is no store of runs at {self.path}: "
                "run `everynode reproduce` or `everynode compare` first."
            )
        tables = self._inspect() if self.path.exists() else 0
        if not tables and must_exist:
            raise NoStore(f"{self.path} is empty, not a store of runs: name another file.")
        if not tables:
            self._create()

    def _create(self) -> None:
        with self.connect() as connection:
            _use_log(connection)
            # One transaction, so a killed process leaves an empty database, not half a store.
            connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {SCHEMA};"
                + _TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
                + "COMMIT;"
            )

    def _inspect(self) -> int:
        """Return the number of tables; refuse a file that is not an intact store.

        Nothing is written: an ordinary connection would merge the log of a killed process into
        the file when it closes.
        """
        for attempt in range(ATTEMPTS):
            before = self._stamp()
            try:
                with self.connect(read_only=True) as connection:
                    return self._count_tables(connection)
            except DataError:
                # A changed stamp means that another process was writing.
                if attempt == ATTEMPTS - 1 or self._stamp() == before:
                    raise
        raise AssertionError("unreachable")

    def _count_tables(self, connection: sqlite3.Connection) -> int:
        """Return the number of tables; refuse another kind of file, and damage."""
        tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner, schema = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        owners = (APPLICATION_ID,) if tables else (APPLICATION_ID, 0)
        if 0 < self.path.stat().st_size < HEADER or owner not in owners:
            raise DataError(f"{self.path} is not a store of runs: name another file.")
        if not tables:
            return 0
        if schema != SCHEMA:
            raise DataError(
                f"{self.path} was written by another version of everynode: "
                "move it away, or name another file."
            )
        damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise self._damaged(damage.splitlines()[-1])
        if self._beside("-wal").exists():
            self.check_rows(connection)  # the next reader may merge the log
        return tables

    def _stamp(self) -> tuple[int, ...]:
        """Return size and time of change of the file and its log."""
        stamp = list[int]()
        for path in (self.path, self._beside("-wal")):
            with suppress(FileNotFoundError):  # the last process to close removes the log
                status = path.stat()
                stamp += [status.st_size, status.st_mtime_ns]
        return tuple(stamp)

    def _beside(self, end: str) -> Path:
        return self.path.with_name(f"{self.path.name}{end}")

    @contextmanager
    def connect(self, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction; ``read_only`` changes no file, not even a log."""
        try:
            with ExitStack() as ends:
                path, mode = self.path.absolute(), ""
                if read_only and not self._beside("-wal").exists():
                    mode = "?immutable=1"  # without a log, no file beside is needed or created
                elif read_only and self._beside("-shm").exists():
                    mode = "?mode=ro"
                elif read_only:  # reading merges the log of a killed process: read a copy
                    folder = Path(ends.enter_context(TemporaryDirectory()))
                    for file in (self.path, self._beside("-wal")):
                        shutil.copy(file, folder)
                    path = folder / self.path.name
                else:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = ends.enter_context(
                    closing(sqlite3.connect(f"{path.as_uri()}{mode}", timeout=TIMEOUT, uri=True))
                )
                with connection:
                    yield connection
        except (sqlite3.Error, OSError) as error:
            if str(error).startswith("Could not decode to UTF-8"):  # followed by the whole column
                raise self._damaged(str(error).partition(" with text ")[0]) from error
            raise DataError(
                f"{self.path} cannot serve as a store of runs ({error}): "
                f"{_remedy(error, self.path)}."
            ) from error

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a connection for reading. It also works in a read-only folder."""
        return self.connect(
            read_only=not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        )

    def parse(self, value: str | bytes) -> dict[str, Any]:
        """Parse the JSON of a column, compressed or not."""
        try:
            parsed: dict[str, Any] = parse_json(
                value if isinstance(value, str) else zlib.decompress(value)
            )
        except (ValueError, zlib.error) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(parsed, dict):
            raise self._damaged("a record is not a table")
        return parsed

    def check_rows(self, connection: sqlite3.Connection) -> None:
        """Refuse a store with a damaged row."""
        for row in connection.execute(ALL_ROWS):
            self.check_row(*row)

    def check_row(
        self, key: str, specification: str, record: str, cost: str, curve: bytes
    ) -> dict[str, Any]:
        """Return record and cost of a row after checking its key and digest."""
        result, costs = self.parse(record), self.parse(cost)
        digest = costs.pop(DIGEST, None)
        if hashlib.sha256(specification.encode()).hexdigest() != key:
            raise self._damaged(f"run {key[:12]} does not belong to its specification")
        if digest != _digest(key, record, costs, curve):
            raise self._damaged(f"the record of run {key[:12]} does not match its digest")
        return result | costs

    def _damaged(self, how: str) -> DataError:
        return DataError(
            f"{self.path} is damaged ({how}): "
            "restore it from a copy, or move it away and run again."
        )


def make_row(
    specification: str, record: dict[str, Any], cost: dict[str, Any], curve: dict[str, list[float]]
) -> Row:
    """Return the row of a run."""
    key = hashlib.sha256(specification.encode()).hexdigest()
    text, packed = _json(record), zlib.compress(_json(curve).encode(), 6)
    signed = {**cost, DIGEST: _digest(key, text, cost, packed)}
    return key, specification, text, _json(signed), packed


def _digest(key: str, record: str, cost: dict[str, Any], curve: bytes) -> str:
    """Return the digest of a row. The key already protects the specification."""
    return hashlib.sha256("\n".join((key, record, _json(cost), "")).encode() + curve).hexdigest()


def _remedy(error: sqlite3.Error | OSError, path: Path) -> str:
    """Return the remedy for an error of SQLite or of the system."""
    code = getattr(error, "sqlite_errorname", None) or ""
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or (
        isinstance(error, OSError) and error.errno == errno.ENOSPC
    ):
        return "free some disk space, then repeat the command; stored runs are not lost"
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"another process has been writing for {TIMEOUT:g} seconds; "
            "wait for it or end it, then repeat the command"
        )
    is_denied = isinstance(error, PermissionError) or getattr(error, "errno", 0) == errno.EROFS
    if is_denied or code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return "make the file and its folder writable, or name another file"
    if code == "SQLITE_NOTADB" and path.suffix.lower() in (".csv", ".json"):
        return f"if it is an export, `everynode results merge {path}` adds its runs to a store"
    return "move it away, or name another file"


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; for this, SQLite does not wait for another process."""
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


#: The stored curve of a run without one.
NO_CURVE = zlib.compress(_json({}).encode(), 6)
