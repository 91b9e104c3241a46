"""Locks of files, which the system lets go of however a process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO


def lock_file(file: IO[Any], *, wait: bool = True) -> None:
    """Take the lock of an open file; without ``wait`` one that is taken is a BlockingIOError. It ends with the file, or the process."""
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def alone(path: Path) -> BinaryIO:
    """A file to write to, once nobody else is writing to it: who was has given it another name by then, or removed it."""
    while True:
        file = path.open("ab")
        with contextlib.suppress(OSError):  # not every network disk has locks
            lock_file(file)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Wait until nobody else is changing a file, from reading it to writing it: the lock lies beside it, by whatever name it goes."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    with alone(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
