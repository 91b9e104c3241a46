"""The axes: their ends have a number."""

from __future__ import annotations

import re

import pytest

from everynode.report import axes, svg
from everynode.report.svg import Point


@pytest.mark.parametrize(
    ("low", "high"), [(34.0, 84.0), (31.5, 88.5), (0.3, 9.2), (78.2, 85.1), (12.0, 71.0)]
)
def test_every_number_of_the_axis_is_beside_the_plot(low, high):
    """The ends of the scale are round numbers, also for a wide scale."""
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


def test_an_axis_maps_its_ends_and_a_single_value_to_the_middle():
    axis = axes.Axis(1.0, 100.0, 0.0, 10.0, log=True)
    assert (axis(1.0), axis(10.0), axis(100.0)) == pytest.approx((0.0, 5.0, 10.0))
    assert axes.Axis(3.0, 3.0, 0.0, 10.0)(3.0) == 5.0


def test_a_text_that_would_overlap_is_left_out():
    drawn = axes.x_ticks([(100.0, "first"), (101.0, "second"), (200.0, "third")], "x")
    assert ">first<" in drawn
    assert ">second<" not in drawn
    assert ">third<" in drawn
