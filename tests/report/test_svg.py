"""The plots: what they draw is what they were given."""

from __future__ import annotations

import re

import pytest

from everynode.report import svg
from everynode.report.svg import Point


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
