"""The store of run records: one SQLite file that several processes may write, in which a run is found by its content hash."""

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

#: Marks a file as ours, so that somebody else's database is never written into ("ENC1"), and how its tables look.
APPLICATION_ID, SCHEMA = 0x454E4331, 2
#: How much of a database is its header: what is shorter, and not empty, is none.
HEADER = 100
#: How often a file is looked at again that changes meanwhile.
TURNS = 5
#: Seconds to wait for another process that is writing.
TIMEOUT = 60.0
#: What a run took; everything else in a record is what it got.
COST = ("seconds", "seconds_per_epoch", "peak_mb", "training_ms", "inference_ms", "others")
#: Where in a run's cost the digest of its row stands.
DIGEST = "digest"
#: A run as it is kept: the columns of the table ``runs``.
Row = tuple[str, str, str, str, bytes]

_TABLES = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,
    specification TEXT NOT NULL,  -- the canonical JSON that the key is the SHA-256 of
    record TEXT NOT NULL,         -- what the run got: the same whenever it is done on such a machine
    cost TEXT NOT NULL,           -- what it took: seconds, memory; and the digest of the row, by which damage is seen
    curve BLOB NOT NULL           -- every epoch's terms and metrics: JSON, zlib
) STRICT;
CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT;
"""

_ROWS = "SELECT key, specification, record, cost, curve FROM runs"


def store_path(folder: Path) -> Path:
    """Where the runs of an output folder are kept."""
    return folder / "runs.db"


def state_path(store: Path, key: str) -> Path:
    """Where the process that has claimed a run keeps the state of its training, from which another goes on if that one dies."""
    return store.with_name(f"{store.name}.{key[:16]}.state")


class NoStore(DataError):
    """There is nothing yet where a store must be."""


class Merged(NamedTuple):
    """What became of the rows of another store: how many were new, and how many were here already."""

    added: int
    known: int
    #: Of those that were here: say something else, and were not taken; gave way to the other; of these, said something else.
    kept: int
    replaced: int
    changed: int


class Store:
    """Records by run key. Opening creates the file (unless ``must_exist``); one that is no store is refused and left untouched. Where
    it must exist, a folder stands for the store that ``reproduce`` and ``compare`` keep in it.

    A process that is about to do a run claims it, so that another process on the same store does not do it too. A claim ends with its
    owner: see :class:`~everynode.storage.owner.Owner`.
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False):
        self.path = store_path(Path(path)) if must_exist and Path(path).is_dir() else Path(path)
        if self.path.is_symlink():  # locks and states lie beside the file itself, so that they are the same by whatever name it goes
            self.path = self.path.resolve()
        self._owner: Owner | None = None
        if must_exist and not self.path.is_file():
            raise NoStore(
                f"There is no store of runs at {self.path}: run `everynode reproduce` or `everynode compare` first."
            )
        tables = self._inspect() if self.path.exists() else 0
        if not tables and must_exist:
            raise NoStore(f"{self.path} is empty, not a store of runs: name another file.")
        if not tables:
            with self._connect() as connection:
                _keep_a_log(connection)
                # One transaction: a process that is killed here leaves an empty database, not half a store.
                connection.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"
                    + _TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
                    + "COMMIT;"
                )

    def _inspect(self) -> int:
        """How many tables there are; what is not a sound store is refused, and nothing is changed in or beside it.

        An ordinary connection would fold the log of a process that was killed into the file when it closes.
        """
        for turn in range(TURNS):
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
                        raise DataError(
                            f"{self.path} is a file of something else: name another file."
                        )
                    if tables and schema != SCHEMA:
                        raise DataError(
                            f"{self.path} was written by another version of everynode: move it away, or name another file."
                        )
                    if (
                        tables
                        and (damage := connection.execute("PRAGMA quick_check(1)").fetchone()[0])
                        != "ok"
                    ):
                        raise self._damaged(damage.splitlines()[-1])
                    if (
                        tables and self._beside("-wal").exists()
                    ):  # which whoever reads next may fold in: so all rows are looked at now
                        self._check(connection)
                break
            except DataError:
                if (
                    turn == TURNS - 1 or self._stamp() == before
                ):  # else somebody was writing just then
                    raise
        return tables

    def _stamp(self) -> tuple[int, ...]:
        """When the file and the log beside it were written to last, and their sizes."""
        found = list[int]()
        for path in (self.path, self._beside("-wal")):
            with suppress(
                FileNotFoundError
            ):  # the log goes when the last who has the store open closes it
                status = path.stat()
                found += [status.st_size, status.st_mtime_ns]
        return tuple(found)

    def _beside(self, end: str) -> Path:
        return self.path.with_name(f"{self.path.name}{end}")

    @contextmanager
    def _connect(self, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with ExitStack() as ends:
                path, how = self.path.absolute(), ""
                if read_only and not self._beside("-wal").exists():
                    how = (
                        "?immutable=1"  # without a log nothing beside the file is needed, nor made
                    )
                elif read_only and self._beside("-shm").exists():
                    how = "?mode=ro"
                elif read_only:  # the log of a process that was killed: to be read it would be folded in, which a copy may be
                    folder = Path(ends.enter_context(TemporaryDirectory()))
                    for file in (self.path, self._beside("-wal")):
                        shutil.copy(file, folder)
                    path = folder / self.path.name
                else:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = ends.enter_context(
                    closing(sqlite3.connect(f"{path.as_uri()}{how}", timeout=TIMEOUT, uri=True))
                )
                with connection:
                    yield connection
        except (sqlite3.Error, OSError) as error:
            if str(error).startswith("Could not decode to UTF-8"):  # followed by the whole column
                raise self._damaged(str(error).partition(" with text ")[0]) from error
            raise DataError(
                f"{self.path} cannot serve as a store of runs ({error}): {_way_out(error, self.path)}."
            ) from error

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection that only reads, which it also can where nothing may be written."""
        return self._connect(
            read_only=not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        )

    def _parse(self, value: str | bytes) -> dict[str, Any]:
        """A column's JSON, packed or not: within a row SQLite's own check sees nothing."""
        try:
            found: dict[str, Any] = json.loads(
                value if isinstance(value, str) else zlib.decompress(value)
            )
        except (ValueError, zlib.error) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(found, dict):
            raise self._damaged("a record is none")
        return found

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a store with a damaged row."""
        for row in connection.execute(_ROWS):
            self._checked(*row)

    def _checked(
        self, key: str, specification: str, record: str, cost: str, curve: bytes
    ) -> dict[str, Any]:
        """Record and cost of a row, which has to be what was kept. (Rows of everynode 0.15 and before have no digest.)"""
        got, took = self._parse(record), self._parse(cost)
        told = took.pop(DIGEST, None)
        if hashlib.sha256(specification.encode()).hexdigest() != key:
            raise self._damaged(f"run {key[:12]} does not belong to its specification")
        sound = (
            took.keys() <= set(COST) if told is None else told == _digest(key, record, took, curve)
        )
        if not sound:
            raise self._damaged(f"the record of run {key[:12]} is not what was kept")
        return got | took

    def _damaged(self, how: str) -> DataError:
        return DataError(
            f"{self.path} is damaged ({how}): restore it from a copy, or move it away and run again."
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
        """Keep what a run got; the first record of a run stays, unless it was done ``again``."""
        row = make_row(specification, record, cost, curve)
        with self._connect() as connection:
            connection.execute(
                f"INSERT OR {'REPLACE' if again else 'IGNORE'} INTO runs VALUES (?, ?, ?, ?, ?)",
                row,
            )
            connection.execute("DELETE FROM claims WHERE key = ?", row[:1])
        state_path(self.path, row[0]).unlink(missing_ok=True)

    def put_all(self, rows: Sequence[Row]) -> Merged:
        """Keep the rows of several runs, all of them or none. Those that are here already stay; but a training without a curve, which came
        from an export, gives way to one that has it.
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
                if (
                    here[1] == NO_CURVE != curve and "error" not in ours
                ):  # what diverged has none either
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
        """The states of trainings that have not ended; those of another version, or of runs that nobody wants any more, never will."""
        return sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}.*.state"))

    def get(self, key: str) -> dict[str, Any] | None:
        """Record and cost of a run, or None."""
        with self._reading() as connection:
            row = connection.execute(f"{_ROWS} WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._checked(*row)

    def records(self) -> dict[str, dict[str, Any]]:
        """Record and cost of every run, by key, in the order of the keys."""
        return {key: record for key, (_, record) in self.runs().items()}

    def runs(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The specification (canonical JSON) of every run, and its record and cost, by key, in the order of the keys."""
        with self._reading() as connection:
            return {
                row[0]: (row[1], self._checked(*row))
                for row in connection.execute(f"{_ROWS} ORDER BY key")
            }

    def keys(self) -> set[str]:
        """The keys of all runs."""
        with self._reading() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM runs")}

    def curve(self, key: str) -> dict[str, list[float]]:
        """Every epoch's terms and metrics of a run; empty if it has none."""
        with self._reading() as connection:
            row = connection.execute("SELECT curve FROM runs WHERE key = ?", (key,)).fetchone()
        return {} if row is None else self._parse(row[0])

    def rows(self) -> list[Row]:
        """All runs as they are kept, for another store's :meth:`put_all`."""
        with self._reading() as connection:
            rows: list[Row] = connection.execute(f"{_ROWS} ORDER BY key").fetchall()
        for row in rows:
            self._checked(*row)
            self._parse(row[-1])
        return rows

    # ------------------------------------------------------------------ claims

    def claim(self, key: str, *, again: bool = False) -> bool:
        """Whether the run is this process's to do: nobody has done it (or it is to be done ``again``), and nobody who still lives is.

        Whatever the dead have claimed is free.
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
        """Give up what this process has claimed and not done."""
        if self._owner is not None:
            try:
                with self._connect() as connection:
                    connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
            finally:
                self._owner.close()
                self._owner = None


def records_at(path: Path) -> dict[str, dict[str, Any]]:
    """The records of a store that may not be there yet: to read of none makes none."""
    try:
        return Store(path, must_exist=True).records()
    except NoStore:
        return {}


def make_row(
    specification: str, record: dict[str, Any], cost: dict[str, Any], curve: dict[str, list[float]]
) -> Row:
    """A run as the store keeps it."""
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
    """A record without what it says is not there: an export as a table does not say it."""
    return (
        {k: _without_none(v) for k, v in value.items() if v is not None}
        if isinstance(value, dict)
        else value
    )


def _digest(key: str, record: str, cost: dict[str, Any], curve: bytes) -> str:
    """By which damage to a row is seen; the specification has the key for it."""
    return hashlib.sha256("\n".join((key, record, _json(cost), "")).encode() + curve).hexdigest()


def _way_out(error: sqlite3.Error | OSError, path: Path) -> str:
    """What to do about a file that SQLite or the system cannot use: a full disk, or somebody who writes, is no fault of the file."""
    code = (
        getattr(error, "sqlite_errorname", None) or ""
    )  # none is of errors that SQLite's module makes itself
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or (
        isinstance(error, OSError) and error.errno == errno.ENOSPC
    ):
        return (
            "see whether the disk is full, then start the same command again; what was kept is kept"
        )
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process has been writing for {TIMEOUT:g} seconds, so wait for it or end it; the same command goes on"
    if code == "SQLITE_NOTADB" and path.suffix.lower() in (".csv", ".json"):
        return f"if it is an export, `everynode results merge {path}` takes its runs into one"
    return "move it away, or name another file"


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging: for this SQLite does not wait for another process that is making the store, but refuses at once."""
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


#: The curve of a run that has none.
NO_CURVE = zlib.compress(_json({}).encode(), 6)
