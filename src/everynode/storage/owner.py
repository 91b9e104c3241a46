"""Who is doing a piece of work, and whether they still live: the lock of a file, which the system lets go of however a process ends."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from everynode.storage.locks import lock_file


class Owner:
    """A process (and those that it forks) as the owner of work that ``path``, a file which others write too, says is being done."""

    def __init__(self, path: Path):
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._path = _beside(path, self.name)
        self._file = self._path.open("w")
        lock_file(self._file)

    def close(self) -> None:
        """Own nothing any more."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def lives(path: Path, name: str) -> bool:
    """Whether the owner of this name still lives; what a dead one left behind is removed."""
    lock = _beside(path, name)
    try:
        with lock.open("r+") as file:
            lock_file(file, wait=False)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    lock.unlink(missing_ok=True)
    return False


def _beside(path: Path, name: str) -> Path:
    return path.with_name(f"{path.name}.{name}.lock")
