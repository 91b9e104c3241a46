"""Messages to the user, on stderr: stdout is for programs."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def say(text: str, quiet: bool = False) -> None:
    """Print a message to stderr, unless ``quiet``.

    If stderr is gone (a closed pipe, a full disk), the message is lost and the program continues.
    """
    if quiet:
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - open for the life of the process
        os.dup2(nowhere.fileno(), sys.stderr.fileno())


def showable(text: str) -> str:
    """Replace the undecodable bytes of a file name by a mark, to make it printable.

    >>> showable(b"caf\\xe9.csv".decode(errors="surrogateescape"))
    'caf\N{REPLACEMENT CHARACTER}.csv'
    """
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)
