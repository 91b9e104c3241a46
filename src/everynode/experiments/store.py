"""The store of run records: one SQLite file for several processes, with runs by content hash."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from everynode.errors import DataError
from everynode.storage.owner import Owner, lives

#: Marks the file as a store ("ENC1"), so that no other database is overwritten.
APPLICATION_ID = 0x454E4331
#: The version of the tables and of the records.
SCHEMA = 3
#: Bytes of an SQLite header; a shorter file that is not empty is no database.
HEADER = 100
#: Attempts to inspect a file that changes meanwhile.
ATTEMPTS = 5
#: Seconds to wait for another process that writes.
TIMEOUT = 60.0
#: The cost of a run. Every other entry of a record is its result.
COST = ("seconds", "seconds_per_epoch", "peak_mb", "training_ms", "inference_ms", "others")
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

_ROWS = "SELECT key, specification, record, cost, curve FROM runs"


def store_path(folder: Path) -> Path:
    """Return the store of an output folder."""
    return folder / "runs.db"


def state_path(store: Path, key: str) -> Path:
    """Return the file with the training state of a claimed run.

    If the owner of the claim dies, another process continues from it.
    """
    return store.with_name(f"{store.name}.{key[:16]}.state")


class NoStore(DataError):
    """There is no store at a path yet."""


class Merged(NamedTuple):
    """What happened to the rows of another store.

    Attributes
    ----------
    added, known : int
        Rows that were new, and rows that the store had already.
    kept : int
        Known rows with a different result, which were not taken.
    replaced, changed : int
        Known rows that the other store replaced, and those among them with a different result.
    """

    added: int
    known: int
    kept: int
    replaced: int
    changed: int


class Store:
    """Records by run key.

    A process claims a run before it starts, so that no other process on the same store repeats
    it. A claim ends with its owner, see :class:`~everynode.storage.owner.Owner`.

    Parameters
    ----------
    path : path
        The file. Opening creates it; a file that is no store is refused and left unchanged.
    must_exist : bool
        Refuse a missing file. The path may then be the folder of ``reproduce`` or ``compare``.

    Attributes
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False):
        self.path = store_path(Path(path)) if must_exist and Path(path).is_dir() else Path(path)
        if self.path.is_symlink():  # locks and states belong beside the file itself
            self.path = self.path.resolve()
        self._owner: Owner | None = None
        if must_exist and not self.path.is_file():
            raise NoStore(
                f"There is no store of runs at {self.path}: "
                "run `everynode reproduce` or `everynode compare` first."
            )
        tables = self._inspect() if self.path.exists() else 0
        if not tables and must_exist:
            raise NoStore(f"{self.path} is empty, not a store of runs: name another file.")
        if not tables:
            with self._connect() as connection:
                _use_log(connection)
                # One transaction, so a killed process leaves an empty database, not half a store.
                connection.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; "
                    f"PRAGMA user_version = {SCHEMA};"
                    + _TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
                    + "COMMIT;"
                )

    def _inspect(self) -> int:
        """Return the number of tables; refuse a file that is no sound store.

        Nothing is written: an ordinary connection would merge the log of a killed process into
        the file when it closes.
        """
        for attempt in range(ATTEMPTS):
            before = self._stamp()
            try:
                with self._connect(read_only=True) as connection:
                    tables: int = connection.execute(
                        "SELECT count(*) FROM sqlite_master"
                    ).fetchone()[0]
                    owner, schema = (
                        connection.execute(f"PRAGMA {name}").fetchone()[0]
                        for name in ("application_id", "user_version")
                    )
                    if 0 < self.path.stat().st_size < HEADER or owner not in (
                        (APPLICATION_ID,) if tables else (APPLICATION_ID, 0)
                    ):
                        raise DataError(f"{self.path} is not a store of runs: name another file.")
                    if tables and schema != SCHEMA:
                        raise DataError(
                            f"{self.path} was written by another version of everynode: "
                            "move it away, or name another file."
                        )
                    if (
                        tables
                        and (damage := connection.execute("PRAGMA quick_check(1)").fetchone()[0])
                        != "ok"
                    ):
                        raise self._damaged(damage.splitlines()[-1])
                    if tables and self._beside("-wal").exists():
                        self._check(connection)  # the next reader may merge the log
                break
            except DataError:
                # A changed stamp means that another process was writing.
                if attempt == ATTEMPTS - 1 or self._stamp() == before:
                    raise
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
    def _connect(self, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
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

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a connection for reading, which also works in a read-only folder."""
        return self._connect(
            read_only=not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        )

    def _parse(self, value: str | bytes) -> dict[str, Any]:
        """Parse the JSON of a column, compressed or not."""
        try:
            parsed: dict[str, Any] = json.loads(
                value if isinstance(value, str) else zlib.decompress(value)
            )
        except (ValueError, zlib.error) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(parsed, dict):
            raise self._damaged("a record is not a table")
        return parsed

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a store with a damaged row."""
        for row in connection.execute(_ROWS):
            self._checked(*row)

    def _checked(
        self, key: str, specification: str, record: str, cost: str, curve: bytes
    ) -> dict[str, Any]:
        """Return record and cost of a row after checking its key and digest."""
        result, costs = self._parse(record), self._parse(cost)
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

    # ------------------------------------------------------------------ records

    def put(
        self,
        specification: str,
        record: dict[str, Any],
        cost: dict[str, Any],
        curve: dict[str, list[float]],
        *,
        again: bool = False,
    ) -> None:
        """Store the result of a run; the first one stays unless the run was repeated ``again``."""
        row = make_row(specification, record, cost, curve)
        with self._connect() as connection:
            connection.execute(
                f"INSERT OR {'REPLACE' if again else 'IGNORE'} INTO runs VALUES (?, ?, ?, ?, ?)",
                row,
            )
            connection.execute("DELETE FROM claims WHERE key = ?", row[:1])
        state_path(self.path, row[0]).unlink(missing_ok=True)

    def put_all(self, rows: Sequence[Row]) -> Merged:
        """Store the rows of several runs, all or none.

        Known rows stay, except that a training without a curve, which came from an export, is
        replaced by one with a curve.
        """
        known = kept = replaced = changed = 0
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._check(connection)
            for key, specification, record, cost, curve in rows:
                here = connection.execute(
                    "SELECT record, curve FROM runs WHERE key = ?", (key,)
                ).fetchone()
                if here is None:
                    connection.execute(
                        "INSERT INTO runs VALUES (?, ?, ?, ?, ?)",
                        (key, specification, record, cost, curve),
                    )
                    continue
                known += 1
                ours = self._parse(here[0])
                differs = _without_none(ours) != _without_none(self._parse(record))
                # A diverged training has no curve either.
                if here[1] == NO_CURVE != curve and "error" not in ours:
                    connection.execute(
                        "UPDATE runs SET record = ?, cost = ?, curve = ? WHERE key = ?",
                        (record, cost, curve, key),
                    )
                    replaced += 1
                    changed += differs
                else:
                    kept += differs
        return Merged(len(rows) - known, known, kept, replaced, changed)

    def states(self) -> list[Path]:
        """Return the states of unfinished trainings, among them abandoned ones."""
        return sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}.*.state"))

    def get(self, key: str) -> dict[str, Any] | None:
        """Return record and cost of a run, or None."""
        with self._reading() as connection:
            row = connection.execute(f"{_ROWS} WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._checked(*row)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return record and cost of every run by key, sorted."""
        return {key: record for key, (_, record) in self.runs().items()}

    def runs(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the specification of every run, and its record and cost, by key, sorted."""
        with self._reading() as connection:
            return {
                row[0]: (row[1], self._checked(*row))
                for row in connection.execute(f"{_ROWS} ORDER BY key")
            }

    def keys(self) -> set[str]:
        """Return the keys of all runs."""
        with self._reading() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM runs")}

    def curve(self, key: str) -> dict[str, list[float]]:
        """Return the terms and metrics of a run by epoch; empty if there are none."""
        with self._reading() as connection:
            row = connection.execute("SELECT curve FROM runs WHERE key = ?", (key,)).fetchone()
        return {} if row is None else self._parse(row[0])

    def rows(self) -> list[Row]:
        """Return all rows, for :meth:`put_all` of another store."""
        with self._reading() as connection:
            rows: list[Row] = connection.execute(f"{_ROWS} ORDER BY key").fetchall()
        for row in rows:
            self._checked(*row)
            self._parse(row[-1])
        return rows

    # ------------------------------------------------------------------ claims

    def claim(self, key: str, *, again: bool = False) -> bool:
        """Claim a run for this process; False if it is done, or claimed by a live process.

        With ``again`` a run that is done can be claimed too.
        """
        self._owner = self._owner or Owner(self.path)
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for (name,) in connection.execute(
                "SELECT DISTINCT owner FROM claims WHERE owner != ?", (self._owner.name,)
            ).fetchall():
                if not lives(self.path, name):
                    connection.execute("DELETE FROM claims WHERE owner = ?", (name,))
            if (
                not again
                and connection.execute("SELECT 1 FROM runs WHERE key = ?", (key,)).fetchone()
            ):
                return False
            connection.execute(
                "INSERT OR IGNORE INTO claims VALUES (?, ?)", (key, self._owner.name)
            )
            (owner,) = connection.execute(
                "SELECT owner FROM claims WHERE key = ?", (key,)
            ).fetchone()
        return bool(owner == self._owner.name)

    def close(self) -> None:
        """Give up the claims of this process."""
        if self._owner is not None:
            try:
                with self._connect() as connection:
                    connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
            finally:
                self._owner.close()
                self._owner = None


def records_at(path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a store; none if it does not exist. Nothing is created."""
    try:
        return Store(path, must_exist=True).records()
    except NoStore:
        return {}


def make_row(
    specification: str, record: dict[str, Any], cost: dict[str, Any], curve: dict[str, list[float]]
) -> Row:
    """Return the row of a run."""
    key, text, packed = (
        hashlib.sha256(specification.encode()).hexdigest(),
        _json(record),
        zlib.compress(_json(curve).encode(), 6),
    )
    return (
        key,
        specification,
        text,
        _json({**cost, DIGEST: _digest(key, text, cost, packed)}),
        packed,
    )


def _without_none(value: Any) -> Any:
    """Drop the entries that are None, since a table leaves them out."""
    return (
        {k: _without_none(v) for k, v in value.items() if v is not None}
        if isinstance(value, dict)
        else value
    )


def _digest(key: str, record: str, cost: dict[str, Any], curve: bytes) -> str:
    """Return the digest of a row. The key already protects the specification."""
    return hashlib.sha256("\n".join((key, record, _json(cost), "")).encode() + curve).hexdigest()


def _remedy(error: sqlite3.Error | OSError, path: Path) -> str:
    """Return what to do about an error of SQLite or of the system."""
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
