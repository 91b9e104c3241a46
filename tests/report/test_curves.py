"""Training curves: what they draw can be read back."""

from __future__ import annotations

import math
import re

import pytest

from everynode.report import curves


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


def test_a_term_of_a_plugin_has_a_curve_and_a_single_term_hides_the_total():
    history = {"my_term": [1.0, 0.5], "ce": [2.0, 1.0], "total": [3.0, 1.5], "val_loss": [1.0, 0.9]}
    drawn = curves.curve_plots(history, 1, "a run")
    names = re.findall(r'data-name="([^"]+)"', drawn)
    assert names == ["CE", "my_term", "total", "validation loss"]
    alone = curves.curve_plots({"ce": [2.0, 1.0], "total": [2.0, 1.0]}, 1, "a run")
    assert re.findall(r'data-name="([^"]+)"', alone) == ["CE"]
