"""Locks between processes, released by the system when their process ends.

On Unix and Windows the operating system holds the lock, so a killed process never blocks others.
Where the system has no such lock, filelock uses a marker file and recognizes a dead owner by its
process id.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

#: Seconds between two attempts to take a lock.
POLL = 0.01


def file_lock(path: Path) -> BaseFileLock:
    """Return a lock on a file beside the data: ``with file_lock(path): ...``.

    All threads of a process share the lock object. A forked process must make its own.
    """
    return FileLock(path, thread_local=False, poll_interval=POLL)


def try_lock(path: Path) -> BaseFileLock | None:
    """Return the lock of a file, or None if another process holds it."""
    lock = file_lock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    return lock


@contextlib.contextmanager
def temporary_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file that exists only while a process holds it or waits for it.

    A waiting process notices that the file was removed, and locks a new one.
    """
    lock = file_lock(path)
    with lock:
        try:
            yield
        finally:
            remove_lock_file(path)


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Change a file alone, from reading it to writing it.

    The lock lies beside the file itself, so that all links to the file share it.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_lock(path.with_name(f".{path.name}.change.lock")):
        yield


def remove_lock_file(path: Path) -> None:
    """Remove a lock file while its lock is held; Windows removes it on release."""
    with contextlib.suppress(OSError):
        path.unlink()
