"""The figures: shared axes, the paper's lines, and signs for missing runs."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import experiments
from everynode.report import figures
from everynode.report.page import page


def test_the_axis_of_a_figure_ends_where_accuracies_do(plans, make_up):
    """Two runs that differ by much have an interval from -500 to 600%, which is no reason to draw it."""
    depth = experiments()["depth"]
    (cell, runs), *_ = plans[depth].items()
    two = make_up(runs[:2])
    records = two.records
    for record, accuracy in zip(records.values(), (0.1, 0.9), strict=True):
        record["test_accuracy"] = accuracy
    text = page(
        {depth: {dataclasses.replace(cell, against=None): runs[:2]}}, "paper", records, two.curve
    )[0]
    plot = text.split('<svg viewBox="0 0 4', 1)[1].split("</svg>", 1)[0]
    numbers = [float(found.replace("−", "-")) for found in re.findall(r">([−-]?\d+)</text>", plot)]
    assert {0.0, 100.0} <= set(numbers)
    assert min(numbers) >= 0
    assert max(numbers) <= 100


@pytest.mark.parametrize(
    ("name", "plots"), [("depth", 9), ("labels-per-class", 3), ("mi-vs-tv", 3)]
)
def test_plots_that_are_read_beside_each_other_have_one_axis(text, name, plots, sections):
    """GCNII's 76 to 86 beside GCN's 30 to 90 made a loss of four points look like one of twenty-four."""
    drawn = sections(text)[name].split("<div popover", 1)[0].split('<svg viewBox="0 0 420')[1:]
    axes = {tuple(re.findall(r'class="yt">([^<]+)<', plot.split("</svg>", 1)[0])) for plot in drawn}
    assert (len(drawn), len(axes)) == (plots, 1)


def test_one_run_has_no_interval_in_a_figure(plans, make_up):
    depth = experiments()["depth"]
    (cell, runs), *_ = plans[depth].items()
    outcome = analyze(
        depth,
        "paper",
        {dataclasses.replace(cell, against=None): runs[:1]},
        make_up(runs[:1]).records,
    )
    (point,) = figures._points(depth, outcome.cells, dict.fromkeys(outcome.cells, "id"))
    assert math.isnan(point.low)
    assert math.isnan(point.high)


def test_figures_have_the_papers_lines_and_hollow_marks_where_runs_are_missing(
    text, plans, make_up, sections
):
    depth = sections(text)["depth"].split("<div popover", 1)[0]
    assert depth.count('class="beside"') == 18  # six methods on three graphs
    assert 'class="pt hollow"' in depth
    assert 'class="beside"' not in sections(text)["weights"]  # the paper prints no numbers of it
    whole = make_up(run for runs in plans[experiments()["depth"]].values() for run in runs)
    chosen = {experiments()["depth"]: plans[experiments()["depth"]]}
    assert 'class="pt hollow"' not in page(chosen, "paper", whole.records, whole.curve)[0]
