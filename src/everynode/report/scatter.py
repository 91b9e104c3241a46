"""A map of points in the plane, colored by class."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.report.axes import coordinate
from everynode.report.html import Html, h
from everynode.report.svg import COLORS

#: The side of a map and its margin, in its own units.
SIZE, MARGIN = 400, 8

Place = tuple[float, float]


def scatter(
    positions: Sequence[Sequence[float]],
    classes: Sequence[int],
    names: Sequence[str],
    *,
    label: str,
) -> Html:
    """Draw points in the plane, colored by class.

    The number of a class stands in the middle of its points, so that color is not the only
    sign. Points without a class (a negative number) are faint and lie behind the others.
    """
    places = _scaled(positions)
    clouds, signs = [], []
    if faint := [place for place, code in zip(places, classes, strict=True) if code < 0]:
        clouds.append(h("path", d=_dots(faint), class_="cloud none", transform="scale(.5)"))
    for i, name in enumerate(names):
        own = [place for place, code in zip(places, classes, strict=True) if code == i]
        if not own:
            continue
        clouds.append(
            h(
                "path",
                d=_dots(own),
                class_=f"cloud s{i % COLORS}",
                data_series=i,
                data_name=name,
                transform="scale(.5)",
            )
        )
        x, y = _central(own)
        place = {"x": coordinate(x), "y": coordinate(y + 4)}
        signs.append(h("text", str(i), **place, class_="sign", data_series=i))
    return h(
        "svg",
        clouds,
        signs,
        viewBox=f"0 0 {SIZE} {SIZE}",
        class_="plot map",
        role="img",
        aria_label=label,
        tabindex=0,
    )


def _scaled(positions: Sequence[Sequence[float]]) -> list[Place]:
    """Center the positions and scale them to the size of the map."""
    spans = [(min(p[k] for p in positions), max(p[k] for p in positions)) for k in (0, 1)]
    largest = max(high - low for low, high in spans) or 1.0
    factor = (SIZE - 2 * MARGIN) / largest
    x, y = ((low + high) / 2 for low, high in spans)
    return [(SIZE / 2 + (p[0] - x) * factor, SIZE / 2 - (p[1] - y) * factor) for p in positions]


def _dots(places: Sequence[Place]) -> str:
    """Return a path of dots at twice the scale, which saves the decimals."""
    return "".join(f"M{2 * x:.0f} {2 * y:.0f}h0" for x, y in places)


def _central(places: Sequence[Place]) -> Place:
    """Return the point nearest to the median: the median of a curved cloud may lie outside it."""
    x, y = (sorted(place[k] for place in places)[len(places) // 2] for k in (0, 1))
    return min(places, key=lambda place: (place[0] - x) ** 2 + (place[1] - y) ** 2)
