"""What is said to the person, on stderr: stdout is for the program that reads it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def say(text: str, quiet: bool = False) -> None:
    """Say it, unless ``quiet``. Where it cannot be heard (a pipe that nobody reads any more, a log on a full disk) what is said is lost,
    and what is being done goes on.
    """
    if quiet:
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        nobody = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process lives
        os.dup2(nobody.fileno(), sys.stderr.fileno())


def showable(text: str) -> str:
    """The same text, with a mark for what is none in the name of a file: it could be neither printed nor written.

    >>> showable(b"caf\\xe9.csv".decode(errors="surrogateescape"))
    'caf\N{REPLACEMENT CHARACTER}.csv'
    """
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)
