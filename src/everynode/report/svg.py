"""Plots as SVG text: lines with intervals, bars, reliability diagrams; and legends.

Everything that a plot shows is in its markup, so it needs no script and prints well. The script of
the page reads the same markup for its hover boxes. Colors are the page's variables ``--c0`` to
``--c7``; every series also has a marker, a dash pattern or a label.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from everynode.report.axes import (
    LEFT,
    RIGHT,
    WIDTH,
    Axis,
    coordinate,
    frame,
    grid,
    ticks,
    x_axis,
    x_ticks,
    y_axis,
)
from everynode.report.html import Html, h
from everynode.report.text import number, significant

#: Number of colors of the page; further series repeat them with other markers.
COLORS = 8
#: Markers around the origin.
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.8l4.6 8h-9.2z",
    "M0-5l5 5l-5 5l-5-5z",
    "M0 4.8l4.6-8h-9.2z",
    "M-4.5-1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",
)


@dataclass(frozen=True)
class Point:
    """One mark of a line or bar plot.

    Parameters
    ----------
    x, y : float
        The values.
    low, high : float
        The ends of the whisker; NaN: no whisker.
    tip : str
        The text of the hover box.
    opens : str, optional
        The id of the panel that a click opens.
    hollow : bool
        Whether the mark is hollow, because runs are missing.
    """

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan
    tip: str = ""
    opens: str | None = None
    hollow: bool = False

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the whisker are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def lines(
    series: Mapping[str, Sequence[Point]],
    *,
    label: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    xs: Sequence[float] = (),
    ys: Sequence[float] = (),
    beside: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Html:
    """Draw one line with whiskers per series.

    Parameters
    ----------
    series : mapping of str to sequence of Point
        The points of each line, by name.
    label, x_label, y_label : str
        The name of the plot for screen readers, and of its axes.
    log_x : bool
        Whether the x axis is logarithmic.
    xs : sequence of float
        Further ticks of the x axis. A line is broken at a tick without a point.
    ys : sequence of float
        Further values that the y axis covers, so that several plots share one axis.
    beside : mapping of str to sequence of (x, y)
        A dotted line in the color of a series, for numbers from elsewhere.
    """
    beside = beside or {}
    points = [point for own in series.values() for point in own]
    xs = sorted({point.x for point in points} | set(xs))
    pad = 0.0 if log_x else 0.03 * (xs[-1] - xs[0])
    factor = (xs[-1] / xs[0]) ** 0.03 if log_x else 1.0
    x = x_axis((xs[0] - pad) / factor, (xs[-1] + pad) * factor, log=log_x)
    others = [value for own in beside.values() for _x, value in own]
    y, steps = y_axis([*_values(points), *others, *ys])
    drawn = []
    for i, (name, own) in enumerate(series.items()):
        if beside.get(name):
            path = _path([(x(at), y(value)) for at, value in beside[name]])
            dotted = h("path", d=path, class_="beside")
            drawn.append(h("g", dotted, class_=f"s{i % COLORS}", data_series=i))
        hover = [_hover(x(p.x), p, f"{x_label} {significant(p.x)}", name) for p in own]
        ranks = [xs.index(point.x) for point in own]
        gaps = [k for k, (one, other) in enumerate(pairwise(ranks), start=1) if other > one + 1]
        shift = (i - (len(series) - 1) / 2) * 3  # so that whiskers do not overlap
        drawn.append(_series(i, [(x(p.x) + shift, p) for p in own], y, hover, gaps))
    marks = [(x(v), significant(v)) for v in xs]
    return frame(label, grid(y, y_label, steps), x_ticks(marks, x_label), drawn)


def bars(
    series: Mapping[str, Sequence[Point]],
    names: Sequence[str],
    *,
    label: str,
    x_label: str,
    y_label: str,
) -> Html:
    """Draw groups of bars with whiskers and numbers: one group per name, one bar per series.

    The x of a point is the index of its name. The axis starts at 0, because a bar is read by its
    length. The numbers stand at the foot, away from whiskers and title.
    """
    y, steps = y_axis([0.0, *_values([point for own in series.values() for point in own])])
    group = (WIDTH - LEFT - RIGHT) / len(names)
    width = min(46.0, 0.7 * group / len(series))
    drawn = []
    for i, (name, own) in enumerate(series.items()):
        boxes: list[Html | None] = []
        for point in own:
            middle = LEFT + group * (point.x + 0.5)
            at = middle + (i - (len(series) - 1) / 2) * (width + 4)
            box = {
                "x": coordinate(at - width / 2),
                "y": coordinate(y(point.y)),
                "width": coordinate(width),
                "height": coordinate(y.start - y(point.y)),
            }
            hover = _hover(middle, point, names[int(point.x)], name)
            place = {"x": coordinate(at), "y": coordinate(y.start - 8)}
            boxes += [
                h("rect", **box, class_="bar", **hover),
                _whiskers([(at, point)], y),
                h("text", significant(point.y), **place, class_="xt in"),
            ]
        drawn.append(h("g", boxes, class_=f"s{i % COLORS}", data_series=i))
    marks = [(LEFT + group * (k + 0.5), name) for k, name in enumerate(names)]
    floor = h("path", d=f"M{LEFT} {coordinate(y.start)}H{WIDTH - RIGHT}", class_="axis")
    return frame(label, grid(y, y_label, steps), x_ticks(marks, x_label), drawn, floor)


def reliability(
    series: Mapping[str, Sequence[Point]], *, label: str, x_label: str, y_label: str
) -> Html:
    """Draw accuracy against confidence, both in percent; they are equal on the dashed line."""
    x, steps = x_axis(0, 100), ticks(0, 100)
    y, _ = y_axis((0, 100))
    drawn: list[Html] = [h("path", d=_path([(x(0), y(0)), (x(100), y(100))]), class_="best")]
    for i, (name, own) in enumerate(series.items()):
        hover = [_hover(x(point.x), point, f"{number(point.x)}% sure", name) for point in own]
        drawn.append(_series(i, [(x(point.x), point) for point in own], y, hover))
    marks = [(x(v), significant(v)) for v in steps]
    return frame(label, grid(y, y_label, steps), x_ticks(marks, x_label), drawn)


def swatch(index: int, kind: str = "line") -> Html:
    """Draw the sign of a series for a legend; ``kind``: line, curve, dot or bar."""
    color = f"s{index % COLORS}"
    if kind == "curve":
        inside = h("path", d="M0 6h26", class_=f"curve {color} dash{index}")
    elif kind == "dot":
        inside = h("path", d="M13 6h0", class_=f"cloud {color}")
    elif kind == "bar":
        inside = h("g", h("rect", x=4, y=0, width=18, height=12, class_="bar"), class_=color)
    else:
        mark = h("path", d=MARKERS[index % len(MARKERS)], transform="translate(13 6)", class_="pt")
        inside = h("g", h("path", d="M0 6h26", class_="line"), mark, class_=color)
    return h("svg", inside, viewBox="0 0 26 12", class_="swatch", aria_hidden="true")


def legend(names: Iterable[str], kind: str, *, selectable: bool = True) -> Html:
    """Draw a legend; the script of the page turns selectable entries into buttons."""
    entries = [
        h("li", swatch(i, kind), name, data_series=i if selectable else None)
        for i, name in enumerate(names)
    ]
    return h("ul", entries, class_="legend")


def _values(points: Sequence[Point]) -> list[float]:
    """Return everything that the y axis has to cover."""
    return [value for point in points for value in (point.y, point.low, point.high)]


def _series(
    i: int,
    points: Sequence[tuple[float, Point]],
    y: Axis,
    hover: Sequence[dict[str, str | None]],
    gaps: Collection[int] = (),
) -> Html:
    """Draw a line, its whiskers and its marks.

    Each point comes with its x coordinate and the attributes for its hover box. The line is
    broken before the points that ``gaps`` numbers.
    """
    places = [(x, y(point.y)) for x, point in points]
    marks = [
        h(
            "path",
            d=MARKERS[i % len(MARKERS)],
            transform=f"translate({coordinate(px)} {coordinate(py)})",
            class_="pt hollow" if point.hollow else "pt",
            **attributes,
        )
        for (px, py), (_x, point), attributes in zip(places, points, hover, strict=True)
    ]
    line = h("path", d=_path(places, gaps), class_="line")
    return h("g", _whiskers(points, y), line, marks, class_=f"s{i % COLORS}", data_series=i)


def _whiskers(points: Sequence[tuple[float, Point]], y: Axis) -> Html | None:
    path = "".join(
        f"M{coordinate(x)} {coordinate(y(point.low))}V{coordinate(y(point.high))}"
        for x, point in points
        if point.has_interval
    )
    return h("path", d=path, class_="whisker") if path else None


def _hover(column: float, point: Point, head: str, name: str) -> dict[str, str | None]:
    """Return the attributes for the hover box; marks with the same ``data-x`` share one."""
    return {
        "data_x": coordinate(column),
        "data_head": head,
        "data_name": name,
        "data_tip": point.tip,
        "data_opens": point.opens,
    }


def _path(places: Sequence[tuple[float, float]], gaps: Collection[int] = ()) -> str:
    """Return a line through some places, broken before the places in ``gaps``."""
    return "".join(
        f"{'L' if k and k not in gaps else 'M'}{coordinate(x)} {coordinate(y)}"
        for k, (x, y) in enumerate(places)
    )
