"""Locks of files, which the system lets go of however a process ends."""

from __future__ import annotations

import fcntl
from typing import IO, Any


def lock_file(file: IO[Any], *, wait: bool = True) -> None:
    """Take the lock of an open file; without ``wait`` one that is taken is a BlockingIOError. It ends with the file, or the process."""
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
