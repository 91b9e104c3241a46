"""How numbers are written for people: always the same digits, a real minus sign, no negative zero."""

from __future__ import annotations

import math
from collections.abc import Iterable

DASH = "–"
#: What the names of the settings that race stand for.
ENTRANTS = {
    "ce": "cross-entropy",
    "enc": "ENC",
    "light-ce": "cross-entropy with light regularisation",
    "light-enc": "ENC with light regularisation",
}


def number(value: float | None, digits: int = 1, *, sign: bool = False) -> str:
    """A number with so many decimals, or a dash; zero, and what rounds to it, has no sign.

    >>> number(-0.04, sign=True), number(19717.0, 0), number(1.25, 2, sign=True), number(float("nan"))
    ('0.0', '19,717', '+1.25', '–')
    """
    if value is None or not math.isfinite(value):
        return DASH
    rounded = round(value, digits) + 0.0  # -0.0 + 0.0 is 0.0
    return f"{rounded:{'+' if sign and rounded else ''},.{digits}f}".replace("-", "−")


def as_printed(value: float, digits: int = 0) -> str:
    """A number of the paper, with all the decimals that it has and at least so many.

    >>> as_printed(85.77, 1), as_printed(79.0, 1), as_printed(1166243.0)
    ('85.77', '79.0', '1,166,243')
    """
    return number(value, max(digits, decimals([value])))


def decimals(values: Iterable[float | None]) -> int:
    """The most decimals that any of some numbers has: where one ends in a zero, which numbers do not keep, the others tell.

    >>> decimals([78.2, 85.77, None]), decimals([2708.0])
    (2, 0)
    """
    return max(
        (len(f"{value:.12g}".partition(".")[2]) for value in values if value is not None), default=0
    )


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, or a dash.

    >>> significant(0.0123456), significant(-3.15130), significant(1500.0)
    ('0.0123', '−3.15', '1500')
    """
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:.{digits}g}"
    return (f"{value:.0f}" if "e+" in text else text).replace("-", "−")


def interval(low: float, high: float, digits: int = 1) -> str:
    """From low to high, or nothing where one run alone cannot tell.

    >>> interval(-0.5, 1.0), interval(float("nan"), 1.0)
    ('−0.5 to 1.0', '')
    """
    return (
        f"{number(low, digits)} to {number(high, digits)}"
        if math.isfinite(low) and math.isfinite(high)
        else ""
    )


def p_value(p: float | None) -> str:
    """A p-value as papers print it.

    >>> p_value(0.00004), p_value(0.0321), p_value(None)
    ('p < 0.001', 'p = 0.032', '–')
    """
    if p is None or math.isnan(p):
        return DASH
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def decided_by(monitor: str) -> str:
    """By what epochs and races are decided on the validation nodes.

    >>> decided_by("macro_f1"), decided_by("loss")
    ('by validation macro_f1, on a tie by the lower validation loss', 'by the lowest validation loss')
    """
    return (
        "by the lowest validation loss"
        if monitor == "loss"
        else f"by validation {monitor}, on a tie by the lower validation loss"
    )


def count(n: int, what: str) -> str:
    """So many of something.

    >>> count(1, "run"), count(4643, "run")
    ('1 run', '4,643 runs')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"
