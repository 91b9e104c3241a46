"""What can go wrong that people can do something about, and the sentence they are told."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class EverynodeError(Exception):
    """Something outside the program is wrong; its text is one sentence with the way out."""

    exit_code = 1


class UsageError(EverynodeError, ValueError):
    """A name, a flag or a parameter is wrong (exit code 2)."""

    exit_code = 2


class DataError(EverynodeError, ValueError):
    """A file or a graph is wrong (exit code 3)."""

    exit_code = 3


class Diverged(EverynodeError):
    """A training whose loss is no number any more: what went wrong is the settings, not the files (exit code 1)."""


def unknown(what: str, given: object, choices: Iterable[str]) -> NoReturn:
    """Refuse a name that is not among the choices, and say which ones there are.

    >>> unknown("backbone", "gnc", ["gcn", "gat"])
    Traceback (most recent call last):
    everynode.errors.UsageError: Unknown backbone 'gnc' (did you mean 'gcn'?). Choose from: gcn, gat.
    """
    choices = list(choices)
    raise UsageError(
        f"Unknown {what} {given!r}{closest(given, choices)}. Choose from: {', '.join(choices)}."
    )


def closest(given: object, choices: Iterable[str]) -> str:
    """A question after the choice that is spelled most like what was given, if one is.

    >>> closest("taem", ["team", "age"])
    " (did you mean 'team'?)"
    """
    close = difflib.get_close_matches(str(given), list(choices), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def require(condition: bool, parameter: str, owner: str, expected: str, given: object) -> None:
    """Refuse a bad parameter in one sentence.

    >>> require(False, "sigma", "TotalVariation", "> 0", -1)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'sigma' of TotalVariation must be > 0. Got -1.
    """
    if not condition:
        raise UsageError(f"The {parameter!r} of {owner} must be {expected}. Got {given!r}.")
