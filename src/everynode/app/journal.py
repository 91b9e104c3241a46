"""The journal of a project: one line per answer, on the disk before anybody is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from everynode.errors import DataError
from everynode.storage.json_text import parse_json
from everynode.storage.locks import changing
from everynode.storage.plain_values import from_plain

#: What an entry can do.
Action = Literal["label", "skip", "settle", "undo", "class", "name"]


@dataclass(frozen=True)
class Entry:
    """One action of one person.

    Parameters
    ----------
    action : {"label", "skip", "settle", "undo", "class", "name"}
        Label a node, skip it, settle a conflict about it, undo the person's last action, add a
        class, or change the person's name.
    person : str
        The person, as a random text that does not change.
    node : str
        The id of the node; empty if the action is about none.
    label : str
        The class, or the new name of the person.
    time : str
        The time, in UTC.
    """

    action: Action
    person: str
    node: str = ""
    label: str = ""
    time: str = ""


class Journal:
    """An append-only file of entries, one JSON object per line.

    Parameters
    ----------
    path : Path
        The file. It is created with the first entry.

    Attributes
    ----------
    damaged : int
        The number of lines that could not be read. A crash can cut the last line short.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "labels.jsonl")
    ...     entry = journal.append(Entry("label", "ann", "n1", "red"))
    ...     [line.label for line in Journal(journal.path)]
    ['red']
    """

    def __init__(self, path: Path):
        self.path = path
        self.damaged = 0

    def append(self, entry: Entry) -> Entry:
        """Write an entry and wait until the disk has it. A failure leaves the file as it was."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(entry.action, entry.person, entry.node, entry.label, entry.time or now)
        line = json.dumps(asdict(entry), ensure_ascii=False).encode() + b"\n"
        try:
            with changing(self.path):
                self._append(line)
        except OSError as error:
            raise DataError(
                f"Cannot write {self.path}: {error.strerror or error}. The answer was not saved; "
                "free some space and give it again."
            ) from error
        return entry

    def _append(self, line: bytes) -> None:
        """Append a line; start a new one if a crash cut the last one short."""
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o666)
        try:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                if size:
                    os.lseek(descriptor, size - 1, os.SEEK_SET)
                    line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
                while line:
                    line = line[os.write(descriptor, line) :]
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
        if is_new and hasattr(os, "O_DIRECTORY"):  # the name of the file, too
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def __iter__(self) -> Iterator[Entry]:
        """Read all entries, in the order in which they were written."""
        self.damaged = 0
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            if not line.strip():
                continue
            try:
                entry = from_plain(Entry, parse_json(line))
            except ValueError:
                self.damaged += 1
                continue
            yield entry
