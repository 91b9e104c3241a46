"""Files of public graphs: where they are, how they are downloaded, and their digests.

Every byte is checked against a known digest before a parser sees it.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib import resources
from pathlib import Path

from everynode.errors import DataError
from everynode.storage.atomic import write_atomically

#: The environment variable that names a folder of public graphs.
VARIABLE = "EVERYNODE_DATA"
#: Seconds to wait for a server.
TIMEOUT = 30.0


@cache
def digests() -> dict[str, str]:
    """Return the SHA-256 of every public file, by its path below the root."""
    text = resources.files("everynode.datasets").joinpath("digests.txt").read_text(encoding="utf-8")
    return {path: digest for digest, path in (line.split("  ", 1) for line in text.splitlines())}


def verify(content: bytes, relative: str, where: object, advice: str) -> None:
    """Refuse content that differs from the public file. Files without a known digest pass."""
    expected = digests().get(relative)
    actual = hashlib.sha256(content).hexdigest()
    if expected is not None and actual != expected:
        raise DataError(
            f"{where} is not the public file: its SHA-256 starts with {actual[:12]}, expected "
            f"{expected[:12]} ({len(content)} bytes; it was changed or is incomplete). {advice}"
        )


@dataclass(frozen=True)
class Root:
    """A folder of public graphs in PyG's layout.

    Attributes
    ----------
    folder : Path
        The folder.
    downloads : bool
        Whether missing files are downloaded: only into the cache folder of this package, never
        into a folder that the user named.
    """

    folder: Path
    downloads: bool

    @classmethod
    def find(cls, data_dir: str | os.PathLike[str] | None = None) -> Root:
        """Return the given folder, else ``$EVERYNODE_DATA``, else the cache folder.

        The cache folder is ``$XDG_CACHE_HOME/everynode`` or ``~/.cache/everynode``.
        """
        named = data_dir or os.environ.get(VARIABLE)
        if named:
            return cls(Path(named).expanduser(), downloads=False)
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(cache_home) / "everynode", downloads=True)

    def has(self, relative: str) -> bool:
        """Return whether a file exists."""
        return (self.folder / relative).is_file()

    def read(self, relative: str, url: str | None, hint: str = "") -> bytes:
        """Read and verify a file; download it first if it is missing from the cache folder.

        ``hint`` tells the user how to get a file that has no ``url``.
        """
        path = self.folder / relative
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return self._download(relative, url, hint)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
        advice = f"Fetch it again{f' from {url}' if url else ''}."
        if self.downloads and url:
            advice = "Delete it, and it will be downloaded again."
        verify(content, relative, path, advice)
        return content

    def _download(self, relative: str, url: str | None, hint: str) -> bytes:
        path = self.folder / relative
        if url is None:
            raise DataError(f"{path} is missing and cannot be downloaded: {hint}")
        if not self.downloads:
            raise DataError(
                f"{path} is missing: put it there (it is public: {url}), or name no data folder "
                f"(unset {VARIABLE}) to download it."
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
        try:
            write_atomically(path, content)
        except DataError as error:
            raise DataError(f"{error} Or set {VARIABLE} to another folder.") from error
        return content
