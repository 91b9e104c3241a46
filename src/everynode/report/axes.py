"""Axes, grids and the frame of SVG plots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everynode.report.html import Child, Html, h
from everynode.report.text import significant

#: The size of a plot in its own units: small, so that its text stays readable on a phone.
WIDTH, HEIGHT = 420, 264
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 30, 42


@dataclass(frozen=True)
class Axis:
    """A map from values to coordinates along one direction of a plot.

    Parameters
    ----------
    low, high : float
        The values at the two ends.
    start, end : float
        The coordinates of the two ends.
    log : bool
        Whether the scale is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * share


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that cover the range from low to high.

    >>> ticks(0.3, 9.2), ticks(78.2, 85.1)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [78.0, 80.0, 82.0, 84.0, 86.0])
    """
    if not high > low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def coordinate(value: float) -> str:
    """Format a coordinate as briefly as possible.

    >>> coordinate(12.0), coordinate(3.14159)
    ('12', '3.1')
    """
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def x_axis(low: float, high: float, *, log: bool = False) -> Axis:
    """Return an axis over the width of a plot."""
    return Axis(low, high, LEFT, WIDTH - RIGHT, log)


def y_axis(values: Iterable[float], about: int = 5) -> tuple[Axis, list[float]]:
    """Return an axis over the height of a plot that covers the values, and its ticks.

    The ends of the axis are ticks. Values that are not finite are ignored.
    """
    finite = [value for value in values if math.isfinite(value)]
    steps = ticks(min(finite, default=0.0), max(finite, default=1.0), about)
    return Axis(steps[0], steps[-1], HEIGHT - BOTTOM, TOP), steps


def grid(y: Axis, label: str, steps: Sequence[float]) -> Html:
    """Draw the horizontal lines at ``steps`` with their numbers, and the name of the y axis."""
    rules = "".join(f"M{LEFT} {coordinate(y(v))}H{WIDTH - RIGHT}" for v in steps)
    numbers = [
        h("text", significant(v, 6), x=LEFT - 7, y=coordinate(y(v) + 4), class_="yt") for v in steps
    ]
    return h("g", h("path", d=rules, class_="grid"), numbers, h("text", label, x=10, y=16))


def x_ticks(marks: Sequence[tuple[float, str]], label: str) -> Html:
    """Draw ticks at some coordinates with their texts, and the name of the x axis.

    A text that would overlap the one before it is left out.
    """
    texts, end = [], -math.inf
    for at, text in marks:
        half = 3.6 * len(text)
        if at - half > end + 5:
            texts.append(h("text", text, x=coordinate(at), y=HEIGHT - BOTTOM + 17, class_="xt"))
            end = at + half
    rule = "".join(f"M{coordinate(at)} {HEIGHT - BOTTOM}v4" for at, _text in marks)
    name = h("text", label, x=(LEFT + WIDTH - RIGHT) // 2, y=HEIGHT - 7, class_="xt")
    return h("g", h("path", d=rule, class_="axis"), texts, name)


def frame(label: str, *children: Child, **data: str) -> Html:
    """Build the ``svg`` element of a plot; ``label`` is its name for screen readers."""
    return h(
        "svg",
        *children,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot",
        role="img",
        aria_label=label,
        tabindex=0,
        **data,
    )
