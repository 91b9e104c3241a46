"""Errors that users can do something about: one sentence each, with the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class EverynodeError(Exception):
    """Something outside the program is wrong; the message says what, and the remedy."""

    exit_code = 1


class UsageError(EverynodeError, ValueError):
    """A name, a flag or a parameter is wrong (exit code 2)."""

    exit_code = 2


class DataError(EverynodeError, ValueError):
    """A file or a graph is wrong (exit code 3)."""

    exit_code = 3


class Diverged(EverynodeError):
    """The loss is not finite any more: the settings are wrong, not the files (exit code 1)."""


def unknown(what: str, name: object, choices: Iterable[str]) -> NoReturn:
    """Refuse a name that is not among the choices; the message lists them.

    >>> unknown("backbone", "gnc", ["gcn"])
    Traceback (most recent call last):
    everynode.errors.UsageError: Unknown backbone 'gnc' (did you mean 'gcn'?). Choose from: gcn.
    """
    choices = list(choices)
    raise UsageError(
        f"Unknown {what} {name!r}{closest(name, choices)}. Choose from: {', '.join(choices)}."
    )


def closest(name: object, choices: Iterable[str]) -> str:
    """Return a hint at the choice with the most similar spelling, or an empty string.

    >>> closest("taem", ["team", "age"])
    " (did you mean 'team'?)"
    """
    close = difflib.get_close_matches(str(name), list(choices), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def require(condition: bool, parameter: str, owner: str, expected: str, value: object) -> None:
    """Refuse a bad parameter.

    >>> require(False, "sigma", "TotalVariation", "> 0", -1)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'sigma' of TotalVariation must be > 0. Got -1.
    """
    if not condition:
        raise UsageError(f"The {parameter!r} of {owner} must be {expected}. Got {value!r}.")
