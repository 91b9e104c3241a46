"""The summary on top: what counts, and what counts once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from everynode.experiments.experiment import experiments
from everynode.report.page import page


def test_what_it_all_says_stands_on_top(plans, make_up):
    semi = experiments()["semi-supervised"]
    everything = make_up(run for runs in plans[semi].values() for run in runs)
    records = everything.records
    for record in records.values():  # cross-entropy as the paper's GCN on Cora; ENC ahead of it on all graphs, on Pubmed with all networks
        ahead = (
            0.0
            if record["objective"] == "ce"
            else 0.01 + (0.001 * (record["seed"] % 3) if record["dataset"] == "pubmed" else 0)
        )
        record["test_accuracy"] = 0.8065 + 0.001 * record["seed"] + ahead
        record["test_oracle_accuracy"] = record["test_accuracy"] + 0.03
    made, (outcome,) = page({semi: plans[semi]}, "paper", records, everything.curve)
    tally = Counter(
        cell.verdict.partition(" ")[0] for cell in outcome.cells if cell.cell.objective == "ce"
    )
    assert tally["reproduced"] >= 1
    assert (
        f"Accuracies of the paper that we reach: {tally['reproduced'] + tally['better']} of 9 with cross-entropy, "
        in made
    )
    short = [cell for cell in outcome.cells if cell.verdict.startswith("short")]
    below = sum(cell.summary.high + 3 < cell.cell.published for cell in short)
    assert 0 < below < len(short)
    assert (
        f"Of the {len(short)} accuracies of the paper that are not reached here, {below} stay out of reach even then."
        in made
    )
    # On the others all differences are the same, which is no test.
    assert "its terms are significantly better in 3 of 3 and significantly worse in 0." in made
    assert 'data-label="significant gains">3 up, 0 down, of 3<' in made
    enc = next(
        cell for cell in outcome.cells if (cell.cell.row, cell.cell.column) == ("ENC-GCN", "cora")
    )
    assert enc.published_gain == pytest.approx(85.3 - 81.1)
    button = re.search(
        r'<button popovertarget="semi-supervised-3" class="cell">(.*?)</button>', made
    )[1]
    assert "gain +1.0</b> (+4.2)" in button


def test_what_stands_in_several_tables_counts_once(plans, make_up):
    chosen = {
        experiments()[name]: plans[experiments()[name]]
        for name in ("semi-supervised", "depth", "halves", "labels-per-class")
    }
    everything = make_up(run for plan in chosen.values() for runs in plan.values() for run in runs)
    made, outcomes = page(chosen, "paper", everything.records, everything.curve)
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    judged = {
        (cell.keys, cell.cell.published)
        for cell in cells
        if cell.verdict and cell.cell.objective == "enc"
    }
    assert len(judged) < sum(bool(cell.verdict) and cell.cell.objective == "enc" for cell in cells)
    assert f" of {len(judged)} with ENC." in made
    # Not ENC with fixed halves, which is no cross-entropy, nor random splits.
    places = {
        (cell.cell.panel, cell.cell.row, cell.cell.column, cell.cell.split): cell for cell in cells
    }
    compared = {
        (
            cell.keys,
            places[cell.cell.panel, cell.cell.against, cell.cell.column, cell.cell.split].keys,
        )
        for cell in cells
        if cell.p_holm is not None and cell.cell.published is not None
    }
    assert f" of {len(compared)} and significantly worse in " in made


def test_what_the_paper_does_not_have_is_judged_and_not_counted(plans, make_up):
    readings = experiments()["readings"]
    everything = make_up(run for runs in plans[readings].values() for run in runs)
    made, (outcome,) = page(
        {readings: plans[readings]}, "paper", everything.records, everything.curve
    )
    assert sum(bool(cell.verdict) for cell in outcome.cells) == len(outcome.cells) > 20
    assert "not in the paper · test accuracy in %" in made
    assert "that we reach" not in made
    assert "significantly worse" not in made
    assert made.count("does not apply") == 4, "cross-entropy has neither gate nor halves"
    assert "reading</span>" in made
    assert {cell.published_gain for cell in outcome.cells} == {None}, (
        "both have the same number of the paper beside them"
    )


def test_the_overview_says_why_runs_are_missing(plans, make_up, sections):
    names = ("datasets", "semi-supervised", "run-times")
    chosen = {experiments()[name]: plans[experiments()[name]] for name in names}
    runs = [run for plan in chosen.values() for made in plan.values() for run in made]
    some = make_up(
        run
        for run in runs
        if run.task != "time"
        and run.dataset != "ogbn-arxiv"
        and (run.dataset, run.seed) != ("pubmed", 9)
    )
    overview = sections(page(chosen, "paper", some.records, some.curve)[0])["overview"]
    assert re.findall(r'class="why">([^<]+)<', overview) == [
        "without ogbn-arxiv",
        "6 to do",
        "not timed here",
    ]
