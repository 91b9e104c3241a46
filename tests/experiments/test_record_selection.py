"""Records by preset, experiment, kind and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from everynode.datasets.files import Root
from everynode.errors import UsageError
from everynode.experiments.planning import (
    CellFilter,
    plan_runs,
)
from everynode.experiments.record_selection import (
    count_kinds,
    find_key,
    has_runs_of,
    nothing_of,
    nothing_selected,
    presets_of,
    select_records,
)


@pytest.fixture
def root(tmp_path) -> Root:
    """A folder for downloads, so that no graph counts as missing."""
    return Root(tmp_path, downloads=True)


def test_records_are_selected_by_preset_and_by_experiment(root):
    plan = plan_runs("halves", "paper", root, seeds=2)
    others = plan_runs("semi-supervised", "paper", root, seeds=1, only=CellFilter(graphs="pubmed"))
    runs = {
        key: (run.specification, run.describe()) for key, run in (plan.runs | others.runs).items()
    }
    assert select_records(runs, root).keys() == runs.keys()
    assert select_records(runs, root, preset="tuned") == {}
    assert select_records(runs, root, preset="paper").keys() == runs.keys()
    assert select_records(runs, root, experiment="halves").keys() == plan.runs.keys()
    with pytest.raises(UsageError, match="Unknown experiment 'half'"):
        select_records(runs, root, experiment="half")


def test_the_preset_of_a_record_may_be_a_file(root, make_run):
    run = make_run(preset="mine.toml")
    runs = {run.key: (run.specification, run.describe())}
    assert select_records(runs, root, preset=str(Path("a") / "mine.toml")).keys() == runs.keys()


def test_kinds_are_counted(make_run):
    records = [make_run(seed).describe() for seed in range(3)]
    records += [make_run(objective="ce").describe()]
    kinds = count_kinds(records)
    assert [(kind["objective"], kind["runs"]) for kind in kinds] == [("ce", 1), ("enc", 3)]


def test_the_start_of_a_key_is_enough_if_it_is_the_only_one():
    keys = ["ab12", "ac34"]
    assert find_key(keys, "AB", Path("runs.db")) == "ab12"
    for start, number in (("a", "2"), ("x", "No")):
        with pytest.raises(UsageError, match=f"^{number} runs in runs.db have a key that starts"):
            find_key(keys, start, Path("runs.db"))


def test_a_store_without_the_runs_that_were_asked_for():
    records = [{"preset": "tuned"}, {"preset": "default"}, {"preset": "tuned"}]
    assert presets_of(records) == ["default", "tuned"]
    assert str(nothing_selected(Path("runs.db"), records)) == (
        "There is no such run in runs.db, which has runs of default, tuned: nothing was written."
    )
    assert not has_runs_of("paper", [], {})
    assert "(it has runs of default, tuned)" in str(nothing_of("paper", "runs.db", records))
    assert "belong to no table or figure" in str(nothing_of("tuned", "runs.db", records))
    assert str(nothing_of("paper", "runs.db", [])).startswith("There is no run in runs.db")
