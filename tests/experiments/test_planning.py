"""Which runs a command needs, in which order, and the records that an export selects."""

from __future__ import annotations

import pytest

from everynode.datasets.files import Root
from everynode.errors import DataError, UsageError
from everynode.experiments.experiment import experiments_for
from everynode.experiments.planning import (
    CellFilter,
    Schedule,
    overview,
    plan_runs,
    schedule,
)
from everynode.experiments.store import Store, state_path


@pytest.fixture
def root(tmp_path) -> Root:
    """A folder for downloads, so that no graph counts as missing."""
    return Root(tmp_path, downloads=True)


def test_a_plan_has_all_cells_and_the_runs_that_were_chosen(root):
    only = CellFilter(graphs="Cora, citeseer", rows="gcn,ENC-GCN")
    plan = plan_runs("semi-supervised", "paper", root, seeds=2, only=only)
    (cells,) = plan.cells.values()
    assert len(cells) == 18
    assert {(run.dataset, run.settings.backbone) for run in plan.runs.values()} == {
        ("cora", "gcn"),
        ("citeseer", "gcn"),
    }
    assert len(plan.runs) == 2 * 2 * 2
    assert plan.notes == []


@pytest.mark.parametrize(
    ("only", "why"),
    [
        (CellFilter(graphs="karate"), "Unknown graph of depth 'karate'"),
        (CellFilter(rows="GIN"), "Unknown row of depth 'GIN'"),
        (CellFilter(columns="3"), "Unknown column of depth '3'"),
        (CellFilter(graphs="cora", panels="pubmed"), "leave out one of --graphs and --panels"),
    ],
)
def test_a_filter_that_selects_nothing_is_refused(root, only, why):
    with pytest.raises(UsageError, match=why):
        plan_runs("depth", "paper", root, only=only)


def test_a_filter_of_panels_needs_panels(root):
    with pytest.raises(UsageError, match="has only one table or plot"):
        plan_runs("semi-supervised", "paper", root, only=CellFilter(panels="x"))


def test_an_experiment_of_another_preset_is_refused(root):
    with pytest.raises(UsageError, match=r"readings has no runs with .*give --preset paper"):
        plan_runs("readings", "tuned", root)


def test_cells_without_settings_are_noted_or_refused(root):
    plan = plan_runs("semi-supervised", "authors", root)
    assert plan.notes == [
        "semi-supervised: left out 15 cells without settings in the preset authors."
    ]
    with pytest.raises(UsageError, match="no settings for these cells of semi-supervised"):
        plan_runs("semi-supervised", "authors", root, only=CellFilter(rows="GCN"))


def test_missing_graphs_are_noted_or_refused(tmp_path):
    nowhere = Root(tmp_path, downloads=False)
    with pytest.raises(DataError, match=r"arxiv cannot be run: .*--stand-in generated"):
        plan_runs("arxiv", "paper", nowhere)
    plan = plan_runs("semi-supervised", "paper", nowhere)
    assert {run.dataset for run in plan.runs.values()} == {"citeseer"}, "which is bundled"
    assert [note.partition(":")[2].split()[2] for note in plan.notes] == ["cora:", "pubmed:"]


def test_the_shortest_runs_come_first_and_long_ones_can_be_left_out(root, tmp_path):
    plan = plan_runs("depth", "paper", root, seeds=1, only=CellFilter(graphs="cora"))
    path = tmp_path / "runs.db"
    work = schedule(plan.runs, path)
    times = [work.left[run.key] for run in work.runs]
    assert times == sorted(times)
    assert (work.done, len(work.runs), work.notes) == (0, 36, [])
    limit = times[17] / 60
    longest = work.runs[-1]
    short = schedule(plan.runs, path, max_run_minutes=limit)
    assert longest not in short.runs
    assert short.notes == [f"Left out {36 - len(short.runs)} runs of more than {limit:g} minutes."]
    state_path(path, longest.key).touch()
    assert longest in schedule(plan.runs, path, max_run_minutes=limit).runs, "it has begun"


def test_records_of_another_version_are_noted(root, tmp_path, make_run):
    run = make_run(versions={"protocol": "0", "torch": "1.0"})
    store = Store(tmp_path / "runs.db")
    store.put(run.specification, {**run.describe(), "versions": run.versions}, {}, {})
    (note,) = schedule({}, store.path).notes
    assert "were made with protocol 0, torch 1.0" in note


def test_no_more_runs_at_once_than_there_are(make_run):
    runs = [make_run(seed) for seed in range(3)]
    assert Schedule(runs, {run.key: 1.0 for run in runs}, []).at_once(8) == 3
    assert Schedule(runs, {}, []).at_once(8) == 1


def test_the_overview_counts_the_runs_of_every_experiment(root):
    rows = {row["id"]: row for row in overview("paper", root, {})}
    assert [*rows] == [experiment.id for experiment in experiments_for("paper")]
    assert rows["semi-supervised"]["runs"] == 180
    assert rows["semi-supervised"]["done"] == 0
    plan = plan_runs("tsne", "paper", root)
    some = {
        row["id"]: row
        for row in overview("paper", root, {key: {"dataset": ""} for key in plan.runs})
    }
    assert some["tsne"]["done"] == some["tsne"]["runs"] == 3
