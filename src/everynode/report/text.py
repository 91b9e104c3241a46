"""Numbers as text for people: fixed digits, a real minus sign, no negative zero."""

from __future__ import annotations

import math
from collections.abc import Iterable

from everynode.evaluation.metrics import LOSSES

DASH = "–"
#: The candidates of successive halving, in words.
CANDIDATES = {
    "ce": "cross-entropy",
    "enc": "ENC",
    "light-ce": "cross-entropy with light regularization",
    "light-enc": "ENC with light regularization",
}


def number(value: float | None, digits: int = 1, *, sign: bool = False) -> str:
    """Format a number with ``digits`` decimals; a dash for None, NaN and infinity.

    A number that rounds to zero has no sign.

    >>> number(-0.04, sign=True), number(19717.0, 0), number(1.25, 2, sign=True)
    ('0.0', '19,717', '+1.25')
    >>> number(float("nan"))
    '–'
    """
    if value is None or not math.isfinite(value):
        return DASH
    rounded = round(value, digits) + 0.0  # -0.0 + 0.0 is 0.0
    return f"{rounded:{'+' if sign and rounded else ''},.{digits}f}".replace("-", "−")


def percent(share: float) -> str:
    """Format a share in percent.

    >>> percent(0.1234)
    '12.3%'
    """
    return f"{number(100 * share)}%"


def as_printed(value: float, digits: int = 0) -> str:
    """Format a number of the paper with all of its decimals, and at least ``digits``.

    >>> as_printed(85.77, 1), as_printed(79.0, 1), as_printed(1166243.0)
    ('85.77', '79.0', '1,166,243')
    """
    return number(value, max(digits, decimals([value])))


def decimals(values: Iterable[float | None]) -> int:
    """Return the largest number of decimals among some numbers.

    A float loses the trailing zero of 78.20; the other numbers of its table reveal it.

    >>> decimals([78.2, 85.77, None]), decimals([2708.0])
    (2, 0)
    """
    return max(
        (len(f"{value:.12g}".partition(".")[2]) for value in values if value is not None), default=0
    )


def significant(value: float | None, digits: int = 3) -> str:
    """Format a number with ``digits`` significant digits; a dash for None, NaN and infinity.

    >>> significant(0.0123456), significant(-3.15130), significant(1500.0)
    ('0.0123', '−3.15', '1500')
    """
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:.{digits}g}"
    return (f"{value:.0f}" if "e+" in text else text).replace("-", "−")


def interval(low: float, high: float, digits: int = 1) -> str:
    """Format an interval; an empty string if an end is not finite.

    >>> interval(-0.5, 1.0), interval(float("nan"), 1.0)
    ('−0.5 to 1.0', '')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{number(low, digits)} to {number(high, digits)}"


def p_value(p: float | None) -> str:
    """Format a p-value as papers do.

    >>> p_value(0.00004), p_value(0.0321), p_value(None)
    ('p < 0.001', 'p = 0.032', '–')
    """
    if p is None or math.isnan(p):
        return DASH
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def decided_by(monitor: str) -> str:
    """Say which validation metric selects epochs and settings.

    >>> decided_by("macro_f1")
    'by validation macro_f1, on a tie by the lower validation loss'
    >>> decided_by("loss")
    'by the lowest validation loss'
    """
    if monitor in LOSSES:
        return f"by the lowest validation {monitor.replace('_', ' ')}"
    return f"by validation {monitor}, on a tie by the lower validation loss"


def count(n: int, noun: str) -> str:
    """Format a count with its noun.

    >>> count(1, "run"), count(4643, "run")
    ('1 run', '4,643 runs')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def setting_lines(settings: Iterable[tuple[str, object]]) -> str:
    """Format settings as one ``name = value`` per line.

    >>> setting_lines([("lr", 0.0300), ("backbone", "gcn")])
    'lr = 0.03\\nbackbone = gcn'
    """
    return "\n".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in settings
    )
