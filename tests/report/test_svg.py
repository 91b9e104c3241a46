"""The plots: what they draw is what they were given."""

from __future__ import annotations

import math
import re

import pytest

from everynode.report import axes, curves, svg
from everynode.report.scatter import scatter
from everynode.report.svg import Point


def read_curve(plot: str) -> list[tuple[int, float]]:
    """The points of the first curve, read back as the page's script does."""
    *_, y0, y1, bottom, top, fine = map(float, re.search(r'data-scale="([^"]+)"', plot)[1].split())
    path = re.search(r' d="([^"]+)" class="curve', plot)[1]
    numbers, found, x, y = list(map(int, re.findall(r"-?\d+", path))), [], 0, 0
    for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
        x, y = x + dx, y + dy
        found.append((x, y0 + (y / fine - bottom) / (top - bottom) * (y1 - y0)))
    return found


@pytest.mark.parametrize(("length", "best"), [(1, 0), (2, 1), (99, 50), (1500, 777)])
def test_a_curve_can_be_read_back(length, best):
    values = [3 * math.sin(i / 40) - i / 500 for i in range(length)]
    epochs = curves.thin(length, 100, keep=[best])
    assert len(epochs) <= 100
    assert {0, best, length - 1} <= set(epochs)
    plot = curves.curves(
        epochs,
        {"CE": [values[e] for e in epochs]},
        label="",
        x_label="epoch",
        y_label="",
        mark=best,
    )
    found = read_curve(plot)
    assert sorted({x for x, _ in found}) == epochs
    for x, y in found:
        assert y == pytest.approx(values[x], abs=0.005)


def test_a_curve_leaves_out_what_is_not_a_number():
    plot = curves.curves(
        [0, 1, 2], {"CE": [1.0, math.nan, 3.0]}, label="", x_label="epoch", y_label=""
    )
    assert [x for x, _ in read_curve(plot)] == [0, 2]


def test_points_without_an_interval_have_no_whisker():
    plot = svg.lines(
        {"a": [Point(1, 5.0), Point(2, 6.0, 5.5, 6.5)]}, label="", x_label="", y_label=""
    )
    assert plot.count("V") == 1
    assert plot.count('class="pt"') == 2


def test_one_point_alone_is_drawn():
    assert "nan" not in svg.lines(
        {"a": [Point(1, 5.0)]}, label="", x_label="", y_label="", log_x=True
    )


def test_bars_start_at_zero():
    plot = svg.bars(
        {"a": [Point(0, 81.0)], "b": [Point(0, 82.0)]}, ["GCN"], label="", x_label="", y_label=""
    )
    assert ">0</text>" in plot
    heights = [float(height) for height in re.findall(r'height="([\d.]+)" class="bar', plot)]
    assert heights[0] / heights[1] == pytest.approx(81 / 82, abs=0.002)


def test_a_map_draws_every_point_of_a_named_class():
    plot = scatter([[0, 0], [1, 1], [2, 0], [9, 9]], [0, 1, 1, -1], ["a", "b"], label="<map>")
    assert plot.count("h0") == 4
    (faint,) = re.findall(r'<path d="([^"]*)" class="cloud none"', plot)
    assert faint.count("h0") == 1  # the point of no class
    assert 'aria-label="&lt;map&gt;"' in plot


@pytest.mark.parametrize(
    ("low", "high"), [(34.0, 84.0), (31.5, 88.5), (0.3, 9.2), (78.2, 85.1), (12.0, 71.0)]
)
def test_every_number_of_the_axis_is_beside_the_plot(low, high):
    """The scale goes from round number to round number, of which there may be other ones for so wide a scale."""
    plot = svg.lines({"a": [Point(1, low), Point(2, high)]}, label="", x_label="", y_label="")
    places = [
        float(y)
        for y in re.findall(r'y="([\d.-]+)"[^>]*class="yt"|class="yt"[^>]*y="([\d.-]+)"', plot)
        for y in y
        if y
    ]
    assert len(places) >= 2
    assert all(axes.TOP <= y - 4 <= axes.HEIGHT - axes.BOTTOM for y in places)
    assert {min(places) - 4, max(places) - 4} == {
        axes.TOP,
        axes.HEIGHT - axes.BOTTOM,
    }  # its ends have one


def test_a_line_is_broken_where_a_tick_has_no_point():
    whole = [Point(x, float(x)) for x in (2, 4, 8, 16)]
    plot = svg.lines(
        {"a": whole, "b": [whole[0], whole[1], whole[3]]},
        label="",
        x_label="",
        y_label="",
        log_x=True,
        xs=[2, 4, 8, 16, 32],
    )
    a, b = (re.sub(r"[^ML]", "", d) for d in re.findall(r'd="([^"]*)" class="line"', plot))
    assert (a, b) == ("MLLL", "MLM")
