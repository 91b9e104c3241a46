"""The store of run records: one SQLite file for several processes, with runs by content hash."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from everynode.experiments.store_file import (
    ALL_ROWS,
    NO_CURVE,
    NoStore,
    Row,
    StoreFile,
    make_row,
    store_path,
)
from everynode.storage.owner import Owner, lives

__all__ = [
    "COST",
    "Merged",
    "NoStore",
    "Row",
    "Store",
    "make_row",
    "records_at",
    "state_path",
    "store_path",
]

#: The cost of a run. Every other entry of a record is its result.
COST = ("seconds", "seconds_per_epoch", "peak_mb", "training_ms", "inference_ms", "others")


def state_path(store: Path, key: str) -> Path:
    """Return the file with the training state of a claimed run.

    If the owner of the claim dies, another process continues from it.
    """
    return store.with_name(f"{store.name}.{key[:16]}.state")


class Merged(NamedTuple):
    """Counts of what happened to the rows of another store in a merge.

    Attributes
    ----------
    added, known : int
        New rows, and rows that the store had already.
    kept : int
        Known rows whose result differs in the other store; the store keeps its own.
    replaced, changed : int
        Known rows that were replaced, and those among them with a different result.
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
        The file. Opening creates it; any other file is refused and left unchanged.
    must_exist : bool
        Refuse a missing file. The path may then be the folder of ``reproduce`` or ``compare``.

    Attributes
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False):
        self._file = StoreFile(path, must_exist=must_exist)
        self.path = self._file.path
        self._owner: Owner | None = None

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
        """Store the result of a run; an earlier result stays unless ``again`` is set."""
        row = make_row(specification, record, cost, curve)
        with self._file.connect() as connection:
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
        with self._file.connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._file.check_rows(connection)
            for key, specification, record, cost, curve in rows:
                stored = connection.execute(
                    "SELECT record, curve FROM runs WHERE key = ?", (key,)
                ).fetchone()
                if stored is None:
                    connection.execute(
                        "INSERT INTO runs VALUES (?, ?, ?, ?, ?)",
                        (key, specification, record, cost, curve),
                    )
                    continue
                known += 1
                old = self._file.parse(stored[0])
                differs = _without_none(old) != _without_none(self._file.parse(record))
                # A diverged training has no curve either.
                if stored[1] == NO_CURVE != curve and "error" not in old:
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
        with self._file.reading() as connection:
            row = connection.execute(f"{ALL_ROWS} WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._file.check_row(*row)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return record and cost of every run by key, sorted."""
        return {key: record for key, (_, record) in self.runs().items()}

    def runs(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the specification of every run, and its record and cost, by key, sorted."""
        with self._file.reading() as connection:
            return {
                row[0]: (row[1], self._file.check_row(*row))
                for row in connection.execute(f"{ALL_ROWS} ORDER BY key")
            }

    def keys(self) -> set[str]:
        """Return the keys of all runs."""
        with self._file.reading() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM runs")}

    def curve(self, key: str) -> dict[str, list[float]]:
        """Return the terms and metrics of a run by epoch; empty if there are none."""
        with self._file.reading() as connection:
            row = connection.execute("SELECT curve FROM runs WHERE key = ?", (key,)).fetchone()
        return {} if row is None else self._file.parse(row[0])

    def rows(self) -> list[Row]:
        """Return all rows, for :meth:`put_all` of another store."""
        with self._file.reading() as connection:
            rows: list[Row] = connection.execute(f"{ALL_ROWS} ORDER BY key").fetchall()
        for row in rows:
            self._file.check_row(*row)
            self._file.parse(row[-1])
        return rows

    # ------------------------------------------------------------------ claims

    def claim(self, key: str, *, again: bool = False) -> bool:
        """Claim a run for this process; False if it is finished, or claimed by a live process.

        With ``again``, finished runs can be claimed too.
        """
        self._owner = self._owner or Owner(self.path)
        with self._file.connect() as connection:
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
        """Release the claims of this process."""
        if self._owner is not None:
            try:
                with self._file.connect() as connection:
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


def _without_none(value: Any) -> Any:
    """Drop the entries that are None, since a table leaves them out."""
    return (
        {k: _without_none(v) for k, v in value.items() if v is not None}
        if isinstance(value, dict)
        else value
    )
