"""Training curves: terms and validation metrics over the epochs of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from everynode.objective_names import NOT_OF_THE_PAPER
from everynode.report.axes import (
    BOTTOM,
    HEIGHT,
    TOP,
    WIDTH,
    coordinate,
    frame,
    grid,
    ticks,
    x_axis,
    x_ticks,
    y_axis,
)
from everynode.report.html import Html, h, join
from everynode.report.svg import COLORS, legend
from everynode.report.text import significant

#: Number of points of a curve.
CURVE_POINTS = 90
#: Steps of a curve's whole-number coordinates per unit: short text, finer than a screen.
FINE = 8
#: The names of the terms in the paper.
TERMS = {
    "ce": "CE",
    "mi": "MI",
    "tv": "TV",
    "cvg": "CVG",
    **NOT_OF_THE_PAPER,
    "preg": "P-reg",
    "total": "total",
}


def curve_plots(curve: Mapping[str, Sequence[float]], best: int, run: str) -> Html:
    """Draw the terms and the validation metrics of a training over its epochs.

    Parameters
    ----------
    curve : mapping of str to sequence of float
        The values of every epoch, by term (``mi``) or metric (``val_loss``).
    best : int
        The selected epoch.
    run : str
        The name of the run, for screen readers.
    """
    epochs = thin(min(map(len, curve.values())), CURVE_POINTS, keep=[best])
    terms = {term_name(name): [curve[name][e] for e in epochs] for name in terms_of(curve)}
    if len(terms) == 2:  # a single term of weight 1 equals the total
        terms.pop("total", None)
    plots = [
        curves(
            epochs,
            terms,
            label=f"Terms over epochs, {run}",
            x_label="epoch",
            y_label="terms of the loss",
            mark=best,
        )
    ]
    metrics = [name for name in curve if name.startswith("val_")]
    for name in sorted(metrics, key=lambda name: name != "val_loss"):
        title = f"validation {name.removeprefix('val_').replace('_', ' ')}"
        factor, unit = (1, "") if name == "val_loss" else (100, ", %")
        plots.append(
            curves(
                epochs,
                {title: [factor * curve[name][e] for e in epochs]},
                label=f"{title.capitalize()} over epochs, {run}",
                x_label="epoch",
                y_label=f"{title}{unit}",
                mark=best,
            )
        )
    return join(legend(terms, "curve", selectable=False), h("div", plots, class_="plots"))


def terms_of(history: Iterable[str]) -> list[str]:
    """Return the terms of a training's history: the paper's first, the total last.

    >>> terms_of(["my_term", "total", "mi", "ce", "val_loss"])
    ['ce', 'mi', 'my_term', 'total']
    """
    rank = {name: i for i, name in enumerate(name for name in TERMS if name != "total")}
    own = [name for name in history if not name.startswith(("val_", "test_"))]
    return sorted(own, key=lambda name: (name == "total", rank.get(name, len(rank))))


def term_name(name: str) -> str:
    """Return the name of a term on a page; a term of a plugin keeps its own.

    >>> term_name("preg"), term_name("my_term")
    ('P-reg', 'my_term')
    """
    return TERMS.get(name, name)


def curves(
    xs: Sequence[int],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    x_label: str,
    y_label: str,
    mark: int | None = None,
) -> Html:
    """Draw many values over whole numbers, such as epochs; ``mark`` is an x to point at."""
    y, steps = y_axis([value for values in series.values() for value in values], about=4)
    x = x_axis(xs[0], max(xs[-1], xs[0] + 1))
    # The path counts x in epochs and is stretched: one digit per step instead of two.
    width = (x.end - x.start) / (x.high - x.low)
    stretch = f"matrix({width:.6g} 0 0 {1 / FINE:g} {x.start - width * x.low:.6g} 0)"
    drawn: list[Html | None] = [] if mark is None else _best(x(mark), mark)
    for i, (name, values) in enumerate(series.items()):
        finite = [(a, FINE * y(b)) for a, b in zip(xs, values, strict=True) if math.isfinite(b)]
        look = f"curve s{i % COLORS} dash{i}"
        drawn.append(
            h(
                "path",
                d=_fine_path(finite),
                class_=look,
                data_series=i,
                data_name=name,
                transform=stretch,
            )
        )
    marks = [(x(v), significant(v, 4)) for v in ticks(xs[0], xs[-1], 4) if xs[0] <= v <= xs[-1]]
    ends = (x.low, x.high, x.start, x.end, y.low, y.high, y.start, y.end, FINE)
    return frame(
        label,
        grid(y, y_label, steps),
        x_ticks(marks, x_label),
        drawn,
        data_scale=" ".join(f"{v:g}" for v in ends),
        data_x=x_label,
    )


def thin(length: int, at_most: int, keep: Sequence[int] = ()) -> list[int]:
    """Return at most ``at_most`` evenly spread indices below ``length``.

    The first, the last and those in ``keep`` are among them.

    >>> thin(10, 4, keep=[5]), thin(3, 10)
    ([0, 4, 5, 9], [0, 1, 2])
    """
    if length <= at_most:
        return list(range(length))
    places = at_most - len(keep)
    spread = {round(i * (length - 1) / (places - 1)) for i in range(places)}
    return sorted(spread | {k for k in keep if 0 <= k < length})


def _best(x: float, epoch: int) -> list[Html | None]:
    """Draw a dashed vertical line at the selected epoch, with its label."""
    side = "end" if x > WIDTH / 2 else "start"
    at = coordinate(x + (-4 if side == "end" else 4))
    return [
        h("path", d=f"M{coordinate(x)} {TOP}V{HEIGHT - BOTTOM}", class_="best"),
        h("text", f"best {epoch}", x=at, y=TOP + 8, text_anchor=side),
    ]


def _fine_path(places: Sequence[tuple[int, float]]) -> str:
    """Return a line in whole relative coordinates: a third of the text of absolute ones."""
    whole = [(px, round(py)) for px, py in places]
    if not whole:
        return ""
    whole = whole if len(whole) > 1 else whole * 2  # a single point becomes a dot
    steps = (f"{b[0] - a[0]}{'' if b[1] < a[1] else ' '}{b[1] - a[1]}" for a, b in pairwise(whole))
    return f"M{whole[0][0]} {whole[0][1]}l{' '.join(steps)}"
