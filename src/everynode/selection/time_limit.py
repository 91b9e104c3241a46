"""Time limits: their spelling, and a deadline that jobs can check."""

from __future__ import annotations

import re
import time

from everynode.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
#: The share of the limit that is left for the ensemble and the predictions.
RESERVE = 0.05


def parse_time(limit: float | str | None) -> float | None:
    """Return a time limit in seconds.

    >>> parse_time("10m"), parse_time(90), parse_time("1.5h"), parse_time(None)
    (600.0, 90.0, 5400.0, None)
    """
    if limit is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", str(limit))
    seconds = float(match[1]) * _UNITS[match[2] or ""] if match else 0.0
    if seconds <= 0:
        raise UsageError(
            f"The time limit must be a number of seconds, or a text such as 90s, 10m or 1.5h. "
            f"Got {limit!r}."
        )
    return seconds


class Deadline:
    """The moment at which every job must have ended.

    Parameters
    ----------
    limit : float, optional
        The time limit in seconds from now; None: no limit.

    Attributes
    ----------
    end : float or None
        The moment, on the monotonic clock; None: no limit.

    Examples
    --------
    >>> Deadline(None).left() is None, Deadline(100.0).left() <= 95
    (True, True)
    """

    def __init__(self, limit: float | None):
        self.end = None if limit is None else time.monotonic() + (1 - RESERVE) * limit

    def left(self) -> float | None:
        """Return the seconds left, at least 0; None without a limit."""
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    def allows(self, seconds: float) -> bool:
        """Whether a job of this many seconds ends in time."""
        left = self.left()
        return left is None or seconds < left
