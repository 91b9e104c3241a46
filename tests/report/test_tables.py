"""The tables: the numbers are those of the analysis, and the interval shown decides."""

from __future__ import annotations

import re

from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import experiments
from everynode.report.cell import digits_of
from everynode.report.page import page

KEY = re.compile(r'<code class="key">([0-9a-f]{12})</code>')


def test_the_interval_that_is_shown_is_the_one_that_decides(plans, make_up):
    experiment = experiments()["homophilic"]
    everything = make_up(run for runs in plans[experiment].values() for run in runs)
    made = page({experiment: plans[experiment]}, "paper", everything.records, everything.curve)[0]
    cells = re.findall(r'class="cell">(.*?)</button>', made)
    assert len(cells) == 18
    verdicts = set()
    for cell in cells:
        low, high = map(float, re.search(r'class="ci">([\d.]+) to ([\d.]+)<', cell).groups())
        paper, verdict = (
            float(re.search(r"paper ([\d.]+)", cell)[1]),
            re.search(r'class="verdict (\w+)"', cell)[1],
        )
        assert verdict == ("better" if low > paper else "short" if high < paper else "reproduced")
        verdicts.add(verdict)
    assert len(verdicts) > 1  # or this test would say little
    panel = made.split('id="homophilic-0"')[1].split("<div popover")[0]
    assert "95% interval on these folds" in panel
    assert "95% interval for other folds" in panel


def test_print_has_the_numbers_of_figures(text, sections):
    """There no mark can be asked, and no list opened."""
    found = sections(text)
    tables = {
        name: found[name].count('<div class="on-paper">')
        for name in ("labels-per-class", "mi-vs-tv", "halves", "weights", "depth")
    }
    assert tables == {"labels-per-class": 3, "mi-vs-tv": 3, "halves": 1, "weights": 1, "depth": 0}


def test_cells_without_a_number_are_empty_to_the_sorting(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *others = plans[semi].items()
    bad = make_up(runs, lambda run: True)
    made = (
        page({semi: {cell: runs, **dict(others)}}, "paper", bad.records, bad.curve)[0]
        .split('<table class="matrix')[1]
        .split("</table>")[0]
    )
    assert made.count('<td class="none" data-v="">') == 17
    assert made.count('data-v=""') == 18  # and the one that diverged


def test_the_numbers_are_those_of_the_outcome(text, plans, two_each, sections):
    found, records = sections(text), two_each.records
    for experiment, plan in plans.items():
        if experiment.view != "table":
            continue
        for index, cell in enumerate(analyze(experiment, "paper", plan, records).cells):
            if not cell.keys:
                continue
            button = re.search(
                rf'<button popovertarget="{experiment.id}-{index}" class="cell">(.*?)</button>',
                found[experiment.id],
            )
            assert button
            if cell.summary is not None:
                assert (
                    f'<span class="mean">{cell.summary.mean:,.{digits_of(experiment, cell)}f}'
                    in button[1]
                )
            assert ('class="verdict' in button[1]) is bool(cell.verdict)
            assert cell.verdict.replace("-", "−") in button[1]
            assert (f"{len(cell.keys)} of {cell.planned} runs" in button[1]) is (not cell.complete)
            assert (f"{cell.diverged} diverged" in button[1]) is (cell.diverged > 0)
            panel = (
                found[experiment.id]
                .split(f'id="{experiment.id}-{index}"')[1]
                .split("<div popover")[0]
            )
            assert KEY.findall(panel) == [key[:12] for key in cell.keys]
            assert f"everynode results show {cell.keys[0][:12]}" in panel


def test_a_cell_whose_runs_all_diverged_has_no_number(plans, make_up):
    experiment = experiments()["semi-supervised"]
    first = next(iter(plans[experiment].values()))
    everything = make_up(first, lambda run: True)
    made = page({experiment: plans[experiment]}, "paper", everything.records, everything.curve)[0]
    button = re.search(
        r'<button popovertarget="semi-supervised-0" class="cell">(.*?)</button>', made
    )
    assert button
    assert '<span class="mean">diverged</span>' in button[1]
    assert "10 diverged" in button[1]
