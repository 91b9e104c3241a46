"""What runs say about a table: summaries, pairs, corrections and verdicts, from records made by hand."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from everynode.datasets.files import Root
from everynode.experiments.analysis import CellResult, analyze, value
from everynode.experiments.experiment import Cell, Experiment, find
from everynode.experiments.statistics import compare_paired, holm, summarize
from everynode.report.export import to_json

ROOT = Root.find("/nowhere")
CE, ENC = [0.70, 0.71, 0.69, 0.75, 0.72], [0.72, 0.72, 0.73, 0.76, 0.75]
SIZES = {"train": 120, "val": 500, "test": 60}


def experiment(over: str = "seeds", columns=("c",), **changes) -> Experiment:
    split = {"folds": "geom-gcn", "splits": "random"}.get(over, "public")
    cells = [
        Cell(
            row,
            column,
            "citeseer",
            split,
            objective=objective,
            changes=(("hidden_channels", 8 + i),),
            against=against,
            **changes,
        )
        for i, column in enumerate(columns)
        for row, objective, against in (("GCN", "ce", None), ("ENC-GCN", "enc", "GCN"))
    ]
    return Experiment(
        "e", "E", "tab:e", "", over, "table", lambda: cells, count=10 if over == "folds" else 5
    )


def record(run, accuracy: float | None, oracle: float | None = None) -> dict:
    found = {**run.describe(), "key": run.key, "nodes": SIZES}
    if accuracy is None:
        return found | {"error": "The loss became nan"}
    return found | {
        "test_accuracy": accuracy,
        "test_oracle_accuracy": accuracy + 0.01 if oracle is None else oracle,
    }


def outcome(made: Experiment, scores: dict, count: int | None = None):
    """``scores``: (row, column) to one accuracy per run; None: diverged; "": not done."""
    plan, _ = made.plan("default", count or max(map(len, scores.values())), ROOT)
    records = {}
    for cell, runs in plan.items():
        for run, accuracy in zip(runs, scores.get((cell.row, cell.column), []), strict=False):
            if accuracy != "":
                records[run.key] = record(run, accuracy)
    return {(c.cell.row, c.cell.column): c for c in analyze(made, "default", plan, records).cells}


def percent(values) -> list[float]:
    return [100 * v for v in values]


def test_a_cell_is_the_summary_of_its_runs_in_percent():
    found = outcome(experiment(), {("GCN", "c"): CE, ("ENC-GCN", "c"): ENC})
    cell = found["GCN", "c"]
    assert cell.summary == summarize(percent(CE))
    assert cell.values == tuple(percent(CE))
    assert (cell.planned, len(cell.keys), cell.diverged, cell.complete) == (5, 5, 0, True)
    assert cell.oracle.mean == pytest.approx(100 * np.mean(CE) + 1)
    assert (cell.gain, cell.p_holm) == (None, None)


def test_seeds_are_compared_by_the_plain_paired_t_test():
    cell = outcome(experiment("seeds"), {("GCN", "c"): CE, ("ENC-GCN", "c"): ENC})["ENC-GCN", "c"]
    assert cell.gain.p_value == pytest.approx(stats.ttest_rel(ENC, CE).pvalue)
    assert cell.p_holm == cell.gain.p_value
    assert cell.gain.mean == pytest.approx(100 * (np.mean(ENC) - np.mean(CE)))


def test_folds_are_compared_with_the_correction_for_their_overlap():
    found = outcome(experiment("folds"), {("GCN", "c"): CE, ("ENC-GCN", "c"): ENC})
    share = SIZES["test"] / SIZES["train"]
    difference = np.subtract(percent(ENC), percent(CE))
    error = math.sqrt((1 / 5 + share) * difference.var(ddof=1))
    gain = found["ENC-GCN", "c"].gain
    assert gain.p_value == pytest.approx(2 * stats.t.sf(difference.mean() / error, 4))
    half = stats.t.ppf(0.975, 4) * math.sqrt((1 / 5 + share) * np.var(percent(CE), ddof=1))
    assert found["GCN", "c"].summary.high == pytest.approx(100 * np.mean(CE) + half)
    assert gain.p_value > stats.ttest_rel(ENC, CE).pvalue


@pytest.mark.parametrize("name", ["semi-supervised", "homophilic", "labels-per-class"])
def test_seeds_and_folds_are_never_pooled(name):
    made = find(name)
    for runs in made.plan("paper", 5, ROOT)[0].values():
        folds, seeds = {run.fold for run in runs}, {run.seed for run in runs}
        assert (len(folds), len(seeds)) == ((5, 1) if made.over == "folds" else (1, 5))


def test_only_runs_that_both_have_are_paired():
    found = outcome(
        experiment(), {("GCN", "c"): [0.5, 0.6, 0.7, ""], ("ENC-GCN", "c"): [0.9, "", 0.8, 0.1]}
    )
    cell = found["ENC-GCN", "c"]
    assert cell.gain == compare_paired(percent([0.9, 0.8]), percent([0.5, 0.7]))
    assert cell.summary == summarize(percent([0.9, 0.8, 0.1]))
    assert (cell.planned, len(cell.keys), cell.complete) == (4, 3, False)


def test_without_a_common_run_there_is_no_gain():
    found = outcome(experiment(), {("GCN", "c"): [0.5, ""], ("ENC-GCN", "c"): ["", 0.9]})
    assert (found["ENC-GCN", "c"].gain, found["ENC-GCN", "c"].p_holm) == (None, None)


@pytest.mark.parametrize("unknown", ["GCN", "ENC-GCN"])
def test_a_cell_for_which_the_preset_has_no_settings_has_no_gain(unknown):
    made = experiment()
    plan, _ = made.plan("default", 5, ROOT)
    plan = {cell: [] if cell.row == unknown else runs for cell, runs in plan.items()}
    records = {
        run.key: record(run, accuracy)
        for runs in plan.values()
        for run, accuracy in zip(runs, CE, strict=False)
    }
    cells = {cell.cell.row: cell for cell in analyze(made, "default", plan, records).cells}
    assert cells["ENC-GCN"].gain is None
    assert cells[unknown].summary is None


def test_one_pair_has_a_gain_and_no_p_value():
    found = outcome(experiment(), {("GCN", "c"): [0.5], ("ENC-GCN", "c"): [0.75]})
    cell = found["ENC-GCN", "c"]
    assert cell.gain.mean == pytest.approx(25)
    assert math.isnan(cell.gain.p_value)
    assert cell.p_holm is None


def test_runs_that_diverged_are_counted_and_have_no_value():
    found = outcome(
        experiment(), {("GCN", "c"): [0.5, 0.6, 0.7], ("ENC-GCN", "c"): [0.9, None, 0.8]}
    )
    cell = found["ENC-GCN", "c"]
    assert (cell.diverged, len(cell.keys), cell.complete) == (1, 3, True)
    assert cell.summary == summarize(percent([0.9, 0.8]))
    assert cell.gain == compare_paired(percent([0.9, 0.8]), percent([0.5, 0.7]))
    nothing = outcome(experiment(), {("ENC-GCN", "c"): [None, None]})["ENC-GCN", "c"]
    assert (nothing.diverged, nothing.summary, nothing.gain, nothing.oracle, nothing.verdict) == (
        2,
        None,
        None,
        None,
        "",
    )


def test_nothing_done_is_an_empty_cell():
    for cell in outcome(experiment(), {}, count=3).values():
        assert (cell.planned, cell.keys, cell.values, cell.summary, cell.gain, cell.verdict) == (
            3,
            (),
            (),
            None,
            None,
            "",
        )


@pytest.mark.parametrize(
    ("zero", "said"),
    [
        ((), ""),
        (("cvg",), "without CVG"),
        (("mi", "tv"), "without MI, TV"),
        (("mi", "tv", "cvg"), "no term"),
    ],
)
def test_terms_without_a_weight_are_named(zero, said):
    cell = Cell(
        "ENC-GCN",
        "c",
        "citeseer",
        "public",
        objective="enc",
        changes=tuple((term, 0.0) for term in zero),
    )
    made = Experiment("e", "E", "tab:e", "", "seeds", "table", lambda: [cell])
    found = outcome(made, {("ENC-GCN", "c"): [0.5, 0.6]})["ENC-GCN", "c"]
    assert found.remark == said
    table = to_json(analyze(made, "default", made.plan("default", 2, ROOT)[0], {}))
    assert table["cells"][0]["remark"] == said


def test_what_has_a_term_that_the_paper_has_not_has_no_verdict_against_the_paper():
    def verdict(**changes):
        cell = Cell(
            "ENC-GCN",
            "c",
            "citeseer",
            "public",
            objective="enc",
            changes=tuple(changes.items()),
            published=55.0,
        )
        made = Experiment("e", "E", "tab:e", "", "seeds", "table", lambda: [cell])
        found = outcome(made, {("ENC-GCN", "c"): [0.5, 0.6, 0.5, 0.6, 0.55]})["ENC-GCN", "c"]
        return found.verdict, found.remark

    assert verdict() == ("reproduced", "")
    assert verdict(consistency=1.0) == ("", "with consistency")
    assert verdict(prior=1.0) == ("", "with class prior")
    assert verdict(consistency=1.0, mi=0.0, tv=0.0, cvg=0.0) == (
        "",
        "without MI, TV, CVG, with consistency",
    )


def test_p_values_are_corrected_over_the_whole_experiment():
    columns = ("a", "b", "c", "alone", "empty")
    scores = {("GCN", column): CE for column in columns[:4]}
    rng = np.random.default_rng(0)
    scores |= {
        ("ENC-GCN", column): (np.array(CE) + rng.normal(shift, 0.01, 5)).tolist()
        for column, shift in zip("abc", (0.05, 0, 0.01), strict=True)
    }
    scores["ENC-GCN", "alone"] = [0.9]
    found = outcome(experiment(columns=columns), scores)
    raw = [found["ENC-GCN", column].gain.p_value for column in "abc"]
    assert [found["ENC-GCN", column].p_holm for column in "abc"] == holm([*raw, 1.0, 1.0])[:3]
    assert max(
        found["ENC-GCN", column].p_holm / p for column, p in zip("abc", raw, strict=True)
    ) == pytest.approx(5), (
        "what has not been run is among the tests from the start, so that it takes no star away later"
    )
    assert found["ENC-GCN", "alone"].p_holm is found["ENC-GCN", "empty"].p_holm is None


@pytest.mark.parametrize(
    ("over", "of_ce", "of_enc", "judged"),
    [
        ("seeds", CE, ENC, True),
        ("seeds", CE[:4], ENC[:4], False),
        ("seeds", [*CE[:4], ""], ENC, False),
        ("seeds", [*CE, ""], [*ENC, 0.7], True),
        ("seeds", ["", *CE], [0.7, *ENC], False),
        ("seeds", CE, [*ENC[:4], None], False),
        ("seeds", CE, [value + 0.02 for value in CE], False),
        ("folds", CE, ENC, False),
        ("folds", CE * 2, ENC * 2, True),
    ],
    ids=[
        "five",
        "four",
        "one missing",
        "the sixth missing",
        "the first missing",
        "one diverged",
        "all differ by the same",
        "five folds",
        "all ten folds",
    ],
)
def test_a_gain_is_significant_only_of_runs_enough_the_first_and_none_diverged(
    over, of_ce, of_enc, judged
):
    cell = outcome(experiment(over), {("GCN", "c"): of_ce, ("ENC-GCN", "c"): of_enc})[
        "ENC-GCN", "c"
    ]
    assert cell.gain.mean > 0
    assert (cell.p_holm is not None) == judged


# ---------------------------------------------------------------------- verdicts


def verdict(
    paper: float | None,
    values: list[float],
    *,
    task: str = "train",
    comparable: bool = True,
    missing: int = 0,
    diverged: int = 0,
    needed: int = 5,
    in_order: bool = True,
) -> str:
    cell = Cell("r", "c", "cora", "public", published=paper, task=task)
    keys, summary = ("key",) * len(values), summarize(values, test_share=2.0)
    planned = len(values) + missing
    return CellResult(
        cell, planned=planned, needed=needed, in_order=in_order, keys=keys, values=tuple(values), diverged=diverged, summary=summary,
        oracle=None, gain=None, p_holm=None, comparable=comparable,
    ).verdict  # fmt: skip


#: Five runs whose mean has the 95% interval 80 to 82.
AROUND_81 = [
    81.0 + step * math.sqrt(2.0) / stats.t.ppf(0.975, 4) for step in (-2.0, -1.0, 0.0, 1.0, 2.0)
]


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        (80.0, "reproduced"),
        (82.0, "reproduced"),
        (81.3, "reproduced"),
        (79.9, "better by 1.1"),
        (82.1, "short by 1.1"),
        (None, ""),
    ],
)
def test_the_papers_number_is_reproduced_if_it_lies_in_our_interval(paper, expected):
    assert verdict(paper, AROUND_81) == expected
    assert verdict(paper, AROUND_81, comparable=False) == "", (
        "cross-entropy's runs say nothing about the paper's ENC"
    )


@pytest.mark.parametrize(
    ("paper", "expected"), [(80.0, False), (82.1, False), (82.9, False), (83.1, True)]
)
def test_what_no_choice_of_epochs_would_reach_is_told_by_the_interval_too(paper, expected):
    """The best test epochs are a point better, 81 to 83."""
    cell = outcome(
        experiment(published=paper), {("GCN", "c"): [value / 100 for value in AROUND_81]}
    )["GCN", "c"]
    assert cell.short_at_any_epoch is expected


def test_few_runs_are_no_verdict():
    assert verdict(80.0, [81.0]) == ""
    assert verdict(80.5, AROUND_81) == "reproduced"
    assert verdict(80.5, AROUND_81, needed=10) == "", "of folds all are needed"
    assert verdict(80.0, AROUND_81[:4]) == ""
    assert verdict(80.5, AROUND_81, missing=1) == "reproduced", (
        "the first five are, whatever was planned"
    )
    assert verdict(80.5, AROUND_81, missing=1, in_order=False) == "", "nor are any five of them"
    assert verdict(80.0, AROUND_81, diverged=1) == "", "nor those that did not diverge"


@pytest.mark.parametrize(
    ("scores", "said"), [(CE, ""), ([*CE, *CE[:4]], ""), (CE * 2, "better by 21.4")]
)
def test_of_folds_all_ten_are_needed_for_a_verdict(scores, said):
    """The paper's means are of all ten."""
    assert (
        outcome(experiment("folds", published=50.0), {("GCN", "c"): scores})["GCN", "c"].verdict
        == said
    )


@pytest.mark.parametrize(
    ("scores", "judged"),
    [
        ([*CE, "", ""], True),
        ([*CE[:4], "", CE[4]], False),
        (["", *CE], False),
        ([*CE[:4], "", ""], False),
    ],
    ids=["the first five", "not the fifth", "not the first", "four"],
)
def test_the_first_runs_of_a_plan_are_judged_and_others_are_not(scores, judged):
    """Which runs have ended may have to do with what they got: a run that stops early is there first."""
    cell = outcome(experiment(published=50.0), {("GCN", "c"): scores})["GCN", "c"]
    assert (cell.verdict == "better by 21.4", cell.verdict == "") == (judged, not judged)
    assert not cell.complete


def test_fewer_runs_than_declared_have_no_star():
    """Five seeds, then ten: who looks after five, and stops where there is a star, finds too many."""
    made = dataclasses.replace(experiment(), count=6)
    cell = outcome(made, {("GCN", "c"): CE, ("ENC-GCN", "c"): ENC}, count=5)["ENC-GCN", "c"]
    assert cell.complete
    assert cell.gain.p_value < 0.05
    assert (cell.p_holm, cell.significant) == (None, False)


def test_rounding_is_no_difference():
    """Ten runs that all got what the paper printed: 100 * 0.811 is a little more than 81.1."""
    assert 100 * 0.811 != 81.1
    assert verdict(81.1, [100 * 0.811] * 10) == "reproduced"


def test_milliseconds_are_not_judged():
    assert verdict(5.0, [1.0, 2.0, 3.0], task="time") == ""


@pytest.mark.parametrize(
    ("paper", "found", "expected"),
    [
        (5278.0, 5278.0, "same"),
        (5429.0, 5278.0, "differs by -151"),
        (1166243.0, 1157799.0, "differs by -8,444"),
        (0.81, 0.8052, "same"),
        (0.81, 0.8148, "same"),
        (0.81, 0.8049, "differs by -0.01"),
        (0.80, 0.74, "differs by -0.06"),
    ],
)
def test_counts_must_be_the_same_and_homophily_as_the_paper_rounds(paper, found, expected):
    assert verdict(paper, [found], task="describe") == expected


# ---------------------------------------------------------------------- records to numbers


def test_a_metric_is_found_by_its_dotted_name():
    nested = {
        "test_accuracy": 0.5,
        "statistics": {"edge_homophily": 0.25, "nodes": 7},
        "training_ms": 3.5,
    }
    assert value(nested, "test_accuracy") == 50.0
    assert value(nested, "statistics.edge_homophily") == 0.25
    assert value(nested, "statistics.nodes") == 7.0
    assert value(nested, "training_ms") == 3.5


def test_pictures_have_runs_and_no_numbers():
    tsne = find("tsne")
    plan, _ = tsne.plan("paper", None, Root("/nowhere", downloads=True))
    (run, *_) = next(iter(plan.values()))
    found = analyze(
        tsne, "paper", plan, {run.key: {"key": run.key, "positions": [[0.0, 0.0]]}}
    ).cells
    assert [len(cell.keys) for cell in found] == [1, 0, 0]
    assert all(cell.summary is None for cell in found)


@pytest.mark.parametrize(
    "name", ["semi-supervised", "depth", "datasets", "run-times", "tsne", "labels-per-class"]
)
def test_every_experiment_concludes_from_nothing_to_plain_json(name):
    made = find(name)
    plan, _ = made.plan("paper", 2, ROOT)
    result = analyze(made, "paper", plan, {})
    assert result.done == 0
    told = json.loads(json.dumps(to_json(result), allow_nan=False))
    assert len(told["cells"]) == len(made.cells())
    assert sum(map(len, result.panels().values())) == len(result.cells)


def test_a_run_that_two_cells_share_is_counted_once():
    made = find("run-times")
    plan, _ = made.plan("paper", 1, Root("/nowhere", downloads=True))
    timed = {
        run.key: record(run, 0.5) | {"training_ms": 1.0, "inference_ms": 1.0}
        for runs in plan.values()
        for run in runs
    }
    result = analyze(made, "paper", plan, timed)
    assert (len(result.cells), result.done) == (27, 18)
    assert {
        cell.oracle is None for cell in result.cells if cell.cell.metric != "test_accuracy"
    } == {True}, "milliseconds have none"
    json.dumps(to_json(result), allow_nan=False)
