"""Plots as SVG text: lines with intervals, training curves, bars, reliability, maps of points. They know nothing of experiments.

Everything that a plot shows is in its markup, so it is there without a script and on paper; the script of the page reads the same markup
for its hover boxes. Colours are the page's variables ``--c0`` to ``--c7``; every series also has a marker, a dash pattern or a label.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from everynode.report.html import Html, h
from everynode.report.text import number, significant

#: How many colours the page has; series beyond take them again, with other markers.
COLOURS = 8
#: The size of a plot in its own units. It is small, so that its text stays readable on a telephone.
WIDTH, HEIGHT = 420, 264
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 30, 42
#: Curves have whole coordinates, so many to a unit: short text, and finer than a screen.
FINE = 8
#: Markers around the origin.
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.5-3.5h7v7h-7z", "M0-4.8l4.6 8h-9.2z", "M0-5l5 5l-5 5l-5-5z",
    "M0 4.8l4.6-8h-9.2z", "M-4.5-1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One mark of a line or bar plot."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan
    #: What the hover box says.
    tip: str = ""
    #: The id of what a click opens.
    opens: str | None = None
    #: Whether runs are missing: it is drawn hollow.
    hollow: bool = False


@dataclass(frozen=True)
class Axis:
    """From values to places along one direction of a plot."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value is."""
        low, high, at = (
            (math.log(v) for v in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (
            (at - low) / (high - low) if high > low else 0.5
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover low to high.

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
    """A line for every name, with whiskers from low to high, over a common x that has a tick at every point and at all of ``xs``.

    The y axis covers ``ys`` too, since plots that are read beside each other have to have one. Where a name has no point at a tick, its
    line is broken: nothing is known there. ``beside``: by name, what somebody else found, which is dotted in the same colour.
    """
    beside = beside or {}
    points = [point for made in series.values() for point in made]
    xs = sorted({point.x for point in points} | set(xs))
    pad = 0.0 if log_x else 0.03 * (xs[-1] - xs[0])
    factor = (xs[-1] / xs[0]) ** 0.03 if log_x else 1.0
    x = Axis((xs[0] - pad) / factor, (xs[-1] + pad) * factor, LEFT, WIDTH - RIGHT, log_x)
    y, steps = _y_axis(
        [*points, *(Point(*place) for made in beside.values() for place in made)], ys
    )
    # Series stand a little beside each other, so that their whiskers can be told apart.
    shift = {name: (i - (len(series) - 1) / 2) * 3 for i, name in enumerate(series)}
    drawn = []
    for i, (name, made) in enumerate(series.items()):
        said = [
            _said(x(point.x), point, f"{x_label} {significant(point.x)}", name) for point in made
        ]
        ranks = [xs.index(point.x) for point in made]
        gaps = [k for k, (one, other) in enumerate(pairwise(ranks), start=1) if other > one + 1]
        if dotted := "".join(
            f"{'L' if k else 'M'}{_c(x(at))} {_c(y(value))}"
            for k, (at, value) in enumerate(beside.get(name, ()))
        ):
            drawn.append(
                h(
                    "g",
                    h("path", d=dotted, class_="beside"),
                    class_=f"s{i % COLOURS}",
                    data_series=i,
                )
            )
        drawn.append(
            _series(i, [(x(point.x) + shift[name], point) for point in made], y, said, gaps)
        )
    return _plot(
        label,
        _grid(y, y_label, steps),
        _x_ticks([(x(v), significant(v)) for v in xs], x_label),
        drawn,
    )


def bars(
    series: Mapping[str, Sequence[Point]],
    names: Sequence[str],
    *,
    label: str,
    x_label: str,
    y_label: str,
) -> Html:
    """Groups of bars with whiskers and their numbers: a bar of each series at every name (a point's x is the name's index).

    Bars are read by their length, so the axis starts at 0. The numbers stand at their feet, away from whiskers, grid and title.
    """
    y, steps = _y_axis([Point(0, 0), *(point for made in series.values() for point in made)])
    group = (WIDTH - LEFT - RIGHT) / len(names)
    width = min(46.0, 0.7 * group / len(series))
    drawn = []
    for i, (name, made) in enumerate(series.items()):
        boxes = []
        for point in made:
            middle = LEFT + group * (point.x + 0.5)
            at = middle + (i - (len(series) - 1) / 2) * (width + 4)
            whisker = (
                f"M{_c(at)} {_c(y(point.low))}V{_c(y(point.high))}" if _has_interval(point) else ""
            )
            place = {"x": _c(at - width / 2), "y": _c(y(point.y))}
            said = _said(middle, point, names[int(point.x)], name)
            boxes += [
                h(
                    "rect",
                    **place,
                    width=_c(width),
                    height=_c(y.start - y(point.y)),
                    class_="bar",
                    **said,
                ),
                h("path", d=whisker, class_="whisker") if whisker else None,
                h("text", significant(point.y), x=_c(at), y=_c(y.start - 8), class_="xt in"),
            ]
        drawn.append(h("g", boxes, class_=f"s{i % COLOURS}", data_series=i))
    marks = [(LEFT + group * (k + 0.5), name) for k, name in enumerate(names)]
    floor = h("path", d=f"M{LEFT} {_c(y.start)}H{WIDTH - RIGHT}", class_="axis")
    return _plot(label, _grid(y, y_label, steps), _x_ticks(marks, x_label), drawn, floor)


def curves(
    xs: Sequence[int],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    x_label: str,
    y_label: str,
    mark: int | None = None,
) -> Html:
    """Many values over whole numbers, such as every epoch's; ``mark`` is a place on the x axis to point at."""
    finite = [value for values in series.values() for value in values if math.isfinite(value)]
    steps = ticks(min(finite, default=0.0), max(finite, default=1.0), 4)
    x, y = (
        Axis(xs[0], max(xs[-1], xs[0] + 1), LEFT, WIDTH - RIGHT),
        Axis(steps[0], steps[-1], HEIGHT - BOTTOM, TOP),
    )
    # Along x the path counts in epochs, and is stretched: one digit a step instead of two.
    width = (x.end - x.start) / (x.high - x.low)
    stretch = f"matrix({width:.6g} 0 0 {1 / FINE:g} {x.start - width * x.low:.6g} 0)"
    drawn: list[Html | None] = []
    if mark is not None:
        at = _c(x(mark))
        drawn.append(h("path", d=f"M{at} {TOP}V{HEIGHT - BOTTOM}", class_="best"))
        side = "end" if x(mark) > WIDTH / 2 else "start"
        drawn.append(
            h(
                "text",
                f"best {mark}",
                x=_c(x(mark) + (-4 if side == "end" else 4)),
                y=TOP + 8,
                text_anchor=side,
            )
        )
    for i, (name, values) in enumerate(series.items()):
        path = _fine_path(
            [(a, FINE * y(b)) for a, b in zip(xs, values, strict=True) if math.isfinite(b)]
        )
        look = f"curve s{i % COLOURS} dash{i}"
        drawn.append(
            h("path", d=path, class_=look, data_series=i, data_name=name, transform=stretch)
        )
    marks = [(x(v), significant(v, 4)) for v in ticks(xs[0], xs[-1], 4) if xs[0] <= v <= xs[-1]]
    scale = " ".join(
        f"{v:g}" for v in (x.low, x.high, x.start, x.end, y.low, y.high, y.start, y.end, FINE)
    )
    return _plot(
        label,
        _grid(y, y_label, steps),
        _x_ticks(marks, x_label),
        drawn,
        data_scale=scale,
        data_x=x_label,
    )


def _series(
    i: int,
    made: Sequence[tuple[float, Point]],
    y: Axis,
    said: Sequence[dict[str, str | None]],
    gaps: Collection[int] = (),
) -> Html:
    """Points, each with where it stands from left to right, with their whiskers and with what is said of each.

    A line joins each with the one before it, but for those that ``gaps`` numbers.
    """
    places = [(px, y(point.y), point) for px, point in made]
    path = "".join(
        f"{'L' if k and k not in gaps else 'M'}{_c(px)} {_c(py)}"
        for k, (px, py, _point) in enumerate(places)
    )
    whiskers = "".join(
        f"M{_c(px)} {_c(y(p.low))}V{_c(y(p.high))}" for px, _py, p in places if _has_interval(p)
    )
    marks = [
        h(
            "path",
            d=MARKERS[i % len(MARKERS)],
            transform=f"translate({_c(px)} {_c(py)})",
            class_="pt hollow" if point.hollow else "pt",
            **words,
        )
        for (px, py, point), words in zip(places, said, strict=True)
    ]
    return h("g", h("path", d=whiskers, class_="whisker") if whiskers else None, h("path", d=path, class_="line"), marks,
             class_=f"s{i % COLOURS}", data_series=i)  # fmt: skip


def reliability(
    series: Mapping[str, Sequence[Point]], *, label: str, x_label: str, y_label: str
) -> Html:
    """Shares in percent against shares in percent: on the dashed line the two are equal. Whiskers from low to high."""
    x, y = Axis(0, 100, LEFT, WIDTH - RIGHT), Axis(0, 100, HEIGHT - BOTTOM, TOP)
    drawn: list[Html] = [
        h("path", d=f"M{_c(x(0))} {_c(y(0))}L{_c(x(100))} {_c(y(100))}", class_="best")
    ]
    for i, (name, made) in enumerate(series.items()):
        said = [_said(x(point.x), point, f"{number(point.x)}% sure", name) for point in made]
        drawn.append(_series(i, [(x(point.x), point) for point in made], y, said))
    steps = ticks(0, 100)
    return _plot(
        label,
        _grid(y, y_label, steps),
        _x_ticks([(x(v), significant(v)) for v in steps], x_label),
        drawn,
    )


def scatter(
    positions: Sequence[Sequence[float]],
    classes: Sequence[int],
    names: Sequence[str],
    *,
    label: str,
) -> Html:
    """Points in the plane coloured by class; each class's number stands at its middle, so that colour is not all that tells them apart.

    Points of no class (a negative number) are drawn faintly, behind the others.
    """
    size, edge = 400, 8
    spans = [(min(p[k] for p in positions), max(p[k] for p in positions)) for k in (0, 1)]
    largest = max(high - low for low, high in spans) or 1.0
    factor = (size - 2 * edge) / largest
    middle = [(low + high) / 2 for low, high in spans]
    placed = [
        (size / 2 + (p[0] - middle[0]) * factor, size / 2 - (p[1] - middle[1]) * factor)
        for p in positions
    ]
    clouds, signs = [], []

    def dots(own: Sequence[tuple[float, float]]) -> str:
        return "".join(f"M{2 * px:.0f} {2 * py:.0f}h0" for px, py in own)

    if none := [place for place, found in zip(placed, classes, strict=True) if found < 0]:
        clouds.append(h("path", d=dots(none), class_="cloud none", transform="scale(.5)"))
    for i, name in enumerate(names):
        own = [place for place, found in zip(placed, classes, strict=True) if found == i]
        if own:
            clouds.append(
                h(
                    "path",
                    d=dots(own),
                    class_=f"cloud s{i % COLOURS}",
                    data_series=i,
                    data_name=name,
                    transform="scale(.5)",
                )
            )
            mid_x, mid_y = (sorted(place[k] for place in own)[len(own) // 2] for k in (0, 1))
            # On the point that is nearest to the middle: a curved cloud has its middle outside.
            px, py = min(own, key=lambda place: (place[0] - mid_x) ** 2 + (place[1] - mid_y) ** 2)
            signs.append(h("text", str(i), x=_c(px), y=_c(py + 4), class_="sign", data_series=i))
    return h(
        "svg",
        clouds,
        signs,
        viewBox=f"0 0 {size} {size}",
        class_="plot map",
        role="img",
        aria_label=label,
        tabindex=0,
    )


def swatch(index: int, kind: str = "line") -> Html:
    """The sign of a series in a legend: as it is drawn in the plot."""
    if kind == "curve":
        inside = h("path", d="M0 6h26", class_=f"curve s{index % COLOURS} dash{index}")
    elif kind == "dot":
        inside = h("path", d="M13 6h0", class_=f"cloud s{index % COLOURS}")
    elif kind == "bar":
        inside = h(
            "g",
            h("rect", x=4, y=0, width=18, height=12, class_="bar"),
            class_=f"s{index % COLOURS}",
        )
    else:
        mark = h("path", d=MARKERS[index % len(MARKERS)], transform="translate(13 6)", class_="pt")
        inside = h("g", h("path", d="M0 6h26", class_="line"), mark, class_=f"s{index % COLOURS}")
    return h("svg", inside, viewBox="0 0 26 12", class_="swatch", aria_hidden="true")


def thin(length: int, at_most: int, keep: Sequence[int] = ()) -> list[int]:
    """Evenly spread indices below ``length``, at most so many, with the first, the last and those to ``keep``.

    >>> thin(10, 4, keep=[5]), thin(3, 10)
    ([0, 4, 5, 9], [0, 1, 2])
    """
    if length <= at_most:
        return list(range(length))
    places = at_most - len(keep)
    spread = {round(i * (length - 1) / (places - 1)) for i in range(places)}
    return sorted(spread | {k for k in keep if 0 <= k < length})


# ------------------------------------------------------------------ pieces


def _c(value: float) -> str:
    """A coordinate, as short as it can be.

    >>> _c(12.0), _c(3.14159)
    ('12', '3.1')
    """
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _has_interval(point: Point) -> bool:
    return math.isfinite(point.low) and math.isfinite(point.high)


def _y_axis(points: Sequence[Point], more: Sequence[float] = ()) -> tuple[Axis, list[float]]:
    """An axis from round number to round number over points and ``more``, and those that are to stand beside it, its ends among them."""
    values = [
        v for v in (*(v for p in points for v in (p.y, p.low, p.high)), *more) if math.isfinite(v)
    ]
    steps = ticks(min(values), max(values))
    return Axis(steps[0], steps[-1], HEIGHT - BOTTOM, TOP), steps


def _grid(y: Axis, label: str, steps: Sequence[float]) -> Html:
    rules = "".join(f"M{LEFT} {_c(y(v))}H{WIDTH - RIGHT}" for v in steps)
    numbers = [h("text", significant(v, 6), x=LEFT - 7, y=_c(y(v) + 4), class_="yt") for v in steps]
    return h("g", h("path", d=rules, class_="grid"), numbers, h("text", label, x=10, y=16))


def _x_ticks(marks: Sequence[tuple[float, str]], label: str) -> Html:
    texts, end = [], -math.inf
    for at, text in marks:  # on a crowded axis some ticks stay without a number
        half = 3.6 * len(text)
        if at - half > end + 5:
            texts.append(h("text", text, x=_c(at), y=HEIGHT - BOTTOM + 17, class_="xt"))
            end = at + half
    rule = "".join(f"M{_c(at)} {HEIGHT - BOTTOM}v4" for at, _text in marks)
    name = h("text", label, x=(LEFT + WIDTH - RIGHT) // 2, y=HEIGHT - 7, class_="xt")
    return h("g", h("path", d=rule, class_="axis"), texts, name)


def _said(column: float, point: Point, head: str, name: str) -> dict[str, str | None]:
    """What the script tells of a mark; ``data-x`` says with which others it shares a hover box."""
    return {
        "data_x": _c(column),
        "data_head": head,
        "data_name": name,
        "data_tip": point.tip,
        "data_opens": point.opens,
    }


def _fine_path(places: Sequence[tuple[int, float]]) -> str:
    """A path with whole, relative coordinates: a third of the text that absolute ones take."""
    whole = [(px, round(py)) for px, py in places]
    if not whole:
        return ""
    whole = whole if len(whole) > 1 else whole * 2  # a point alone is drawn as a dot
    steps = (f"{b[0] - a[0]}{'' if b[1] < a[1] else ' '}{b[1] - a[1]}" for a, b in pairwise(whole))
    return f"M{whole[0][0]} {whole[0][1]}l{' '.join(steps)}"


def _plot(label: str, *children: Html | Sequence[Html | None], **data: str) -> Html:
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
