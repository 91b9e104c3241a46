"""Errors that users can fix: one sentence each, with the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class EverynodeError(Exception):
    """Base class of all errors that users can fix; the message names the problem and the remedy.

    Attributes
    ----------
    exit_code : int
        Exit code of a command that ends with this error.

    Examples
    --------
    >>> try:
    ...     raise DataError("nodes.csv is empty. Name another file.")
    ... except EverynodeError as error:
    ...     print(error, error.exit_code)
    nodes.csv is empty. Name another file. 3
    """

    exit_code = 1


class UsageError(EverynodeError, ValueError):
    """Invalid name, flag or parameter. It is also a ``ValueError``.

    Attributes
    ----------
    exit_code : int
        2.

    Examples
    --------
    >>> import everynode as en
    >>> en.Settings(dropout=2.0)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'dropout' of Settings must be in [0, 1). Got 2.0.
    """

    exit_code = 2


class DataError(EverynodeError, ValueError):
    """Invalid file or graph. It is also a ``ValueError``.

    Attributes
    ----------
    exit_code : int
        3.

    Examples
    --------
    >>> import everynode as en
    >>> en.Graph.from_arrays([[1.0], [2.0]], [[0], [2]], [0, 1])
    Traceback (most recent call last):
    everynode.errors.DataError: Edge 0 joins nodes 0 and 2, but nodes are 0 to 1 ...
    """

    exit_code = 3


class Diverged(EverynodeError):
    """The loss became infinite or NaN: change the settings, not the files (exit code 1)."""


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
