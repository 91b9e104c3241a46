"""Owners of unfinished work: a process that holds the lock of a file until it ends."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from everynode.storage.locks import file_lock, remove_lock_file, try_lock


class Owner:
    """This process as the owner of claims in a file that several processes share.

    The claims name the owner. Others ask :func:`lives` whether they still hold.

    Parameters
    ----------
    path
        The shared file, for example a store of runs. The lock file lies beside it.

    Attributes
    ----------
    name : str
        Unique name of this owner.
    """

    def __init__(self, path: Path):
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._path = _lock_path(path, self.name)
        self._pid = os.getpid()
        self._lock = file_lock(self._path)
        self._lock.acquire()

    def close(self) -> None:
        """Give up everything this process owns. A forked copy leaves its parent's lock alone."""
        if os.getpid() == self._pid:
            remove_lock_file(self._path)
            self._lock.release()


def lives(path: Path, name: str) -> bool:
    """Return whether the owner of this name still lives; remove the lock file of a dead one."""
    lock_path = _lock_path(path, name)
    if not lock_path.exists():
        return False
    lock = try_lock(lock_path)
    if lock is None:
        return True
    remove_lock_file(lock_path)
    lock.release()
    return False


def _lock_path(path: Path, name: str) -> Path:
    return path.with_name(f"{path.name}.{name}.lock")
