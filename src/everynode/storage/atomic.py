"""Atomic writes: a file appears complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from everynode.errors import DataError, UsageError
from everynode.storage.locks import temporary_lock

#: The first bytes of every SQLite file.
SQLITE_HEADER = b"SQLite format 3\0"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see either the old content or all of the new.

    Folders are created. A full disk raises :class:`~everynode.errors.DataError` and leaves the old
    file untouched. A database is never replaced. A device or a pipe is written to directly.
    """
    try:
        if not path.name or path.is_dir():
            raise UsageError(f"{path} is a folder: name a file.")
        path = path.resolve() if path.is_symlink() else path
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        _refuse_database(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _only_writer(path):
            _replace(path, content)
    # Python before 3.13 raises RuntimeError for symbolic links in a circle.
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"Cannot write {path}: {reason}. "
            "The old content is untouched; free some space or write elsewhere."
        ) from error


def _replace(path: Path, content: bytes) -> None:
    """Write a new file beside the old one and rename it.

    The name is random and the file must not exist yet: a link that somebody planted is never
    followed. The new file has the permissions of the old one.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if path.exists():
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _clear_remains(path: Path) -> None:
    """Remove what killed writers of the same file left behind. The caller holds the lock."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9a-f]{{16}}\.)?part")
    with contextlib.suppress(OSError):
        for remains in path.parent.iterdir():
            if pattern.fullmatch(remains.name):
                remains.unlink()


def _refuse_database(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(SQLITE_HEADER)) == SQLITE_HEADER:
                raise UsageError(
                    f"{path} is a database, perhaps a store of runs, and is not replaced: "
                    "name another file."
                )


@contextlib.contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """Keep other writers of the same file out, where the file system has locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(temporary_lock(path.with_name(f".{path.name}.lock")))
            _clear_remains(path)
        yield
