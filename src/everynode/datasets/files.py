"""Where the public files lie, and reading them: every byte is checked against a known digest before anything parses it."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib import resources
from pathlib import Path

from everynode.errors import DataError

#: The environment variable that names a folder of public graphs.
VARIABLE = "EVERYNODE_DATA"
#: Seconds to wait for a server that does not answer.
TIMEOUT = 30.0


@cache
def digests() -> dict[str, str]:
    """The SHA-256 of every public file that is read, by its path below the root."""
    text = resources.files("everynode.datasets").joinpath("digests.txt").read_text(encoding="utf-8")
    return {path: digest for digest, path in (line.split("  ", 1) for line in text.splitlines())}


def verify(content: bytes, relative: str, where: object, way_out: str) -> None:
    """Refuse content that is not the public file's, byte for byte. Files without a known digest pass."""
    expected = digests().get(relative)
    found = hashlib.sha256(content).hexdigest()
    if expected is not None and found != expected:
        raise DataError(
            f"{where} is not the public file: its SHA-256 starts with {found[:12]}, expected {expected[:12]} "
            f"({len(content)} bytes; it was changed or cut short). {way_out}"
        )


@dataclass(frozen=True)
class Root:
    """A folder of public graphs in PyG's layout. Nothing is ever written below a folder that somebody named."""

    folder: Path
    #: Whether missing files are fetched: only into our own cache folder.
    downloads: bool

    @classmethod
    def find(cls, data_dir: str | os.PathLike[str] | None = None) -> Root:
        """The given folder, else ``$EVERYNODE_DATA``, else the cache folder (``$XDG_CACHE_HOME/everynode``, ``~/.cache/everynode``)."""
        named = data_dir or os.environ.get(VARIABLE)
        if named:
            return cls(Path(named).expanduser(), downloads=False)
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(cache_home) / "everynode", downloads=True)

    def has(self, relative: str) -> bool:
        """Whether a file is there."""
        return (self.folder / relative).is_file()

    def read(self, relative: str, url: str | None, hint: str = "") -> bytes:
        """A file's bytes, checked; fetched from ``url`` first if it is missing from our own cache. ``hint``: how to get it otherwise."""
        path = self.folder / relative
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return self._fetch(relative, url, hint)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
        if self.downloads and url:
            way_out = "Delete it, and it will be downloaded again."
        else:
            way_out = f"Fetch it again{f' from {url}' if url else ''}."
        verify(content, relative, path, way_out)
        return content

    def _fetch(self, relative: str, url: str | None, hint: str) -> bytes:
        path = self.folder / relative
        if url is None:
            raise DataError(f"{path} is missing and cannot be downloaded: {hint}")
        if not self.downloads:
            raise DataError(
                f"{path} is missing: put it there (it is public: {url}), or name no data folder (unset {VARIABLE}) to download."
            )
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
                content: bytes = response.read()
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"Cannot download {url} ({reason}): go online, or put that file at {path}."
            ) from error
        verify(content, relative, url, f"Try again later, or put the right file at {path}.")
        self._write(path, content)
        return content

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """All or nothing: a killed download leaves no half file that a later run would trip over."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise DataError(
                f"Cannot write {path} ({error.strerror or error}): free the disk, or set {VARIABLE} to another folder."
            ) from error
