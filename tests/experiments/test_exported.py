"""Runs that come back from an export: the same runs, checked against their keys, and exported again to the same bytes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from everynode.data.entries import find
from everynode.data.files import Root
from everynode.errors import DataError
from everynode.experiments.exported import Export
from everynode.experiments.run import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.report.export import runs_csv, runs_json
from everynode.settings import Batches, Settings

ROOT = Root(Path("nowhere"), downloads=False)
WRITERS = {"csv": runs_csv, "json": runs_json}


def run(seed: int = 0, objective: str = "enc", *, split: str = "public", **changes: object) -> Run:
    settings = Settings(channels=4, epochs=2, **changes.pop("settings", {})).for_objective(objective)  # type: ignore[arg-type]
    made = Run("citeseer", find("citeseer").digest(split, ROOT), split, 0, seed, "default", objective, settings)
    return dataclasses.replace(made, **changes)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Real runs of every kind: trained, with a later setting, drawn splits, directed, in batches, diverged, timed, described, mapped."""
    runs = [
        run(), run(1, "ce"), run(settings={"class_weight": "balanced"}), run(directed=True), run(batches=Batches(size=64)),
        run(split="random", per_class=5, split_seed=2), run(objective="ce", settings={"lr_oc": 1e30, "lr_gnn": 1e30}),
        run(task="time"), run(task="describe"), run(task="tsne"),
    ]  # fmt: skip
    store = Store(tmp_path_factory.mktemp("made") / "runs.db")
    do_runs(runs, Graphs(), store, workers=1)
    assert any("error" in record for record in store.records().values())
    return store


@pytest.mark.parametrize("ending", WRITERS)
def test_what_is_exported_and_merged_is_exported_again_to_the_same_bytes(store, tmp_path, ending):
    write, file = WRITERS[ending], tmp_path / f"runs.{ending}"
    file.write_text(write(store.records()))
    export, other = Export.read(file, ROOT), Store(tmp_path / "other.db")
    assert export.left_out == (1 if ending == "csv" else 0)  # the map
    assert export.merge_into(other) == (10 - export.left_out, 0)
    assert export.merge_into(other) == (0, 10 - export.left_out)
    there = other.keys()
    kept = {key: record for key, record in store.records().items() if key in there}
    assert write(other.records()) == write(kept)
    assert {other.specification(key) for key in kept} == {store.specification(key) for key in kept}
    assert other.curve(next(iter(kept))) == {}


def test_runs_that_come_back_are_not_done_again(store, tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text(runs_csv(store.records()))
    other = Store(tmp_path / "other.db")
    Export.read(file, ROOT).merge_into(other)
    fresh = []
    do_runs([run(), run(1, "ce")], Graphs(), other, workers=1, on_record=lambda run, record, new: fresh.append(new))
    assert fresh == [False, False]


@pytest.mark.parametrize("change", [{"seed": 7}, {"settings": {"tv": 0.25}}, {"versions": {"torch": "1.0"}}, {"dataset": "cora"}])
def test_a_record_that_was_changed_is_refused_with_its_place(store, tmp_path, change):
    records = json.loads(runs_json(store.records()))
    for name, value in change.items():
        records[3][name] = records[3][name] | value if isinstance(value, dict) else value
    file = tmp_path / "runs.json"
    file.write_text(json.dumps(records))
    with pytest.raises(DataError, match=r"runs\.json, record 4: the record is not of the run that its key names"):
        Export.read(file, ROOT)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "node,label\n1,2\n", "no column 'key'"),
        ("a.csv", "key,seed\nx\n", "row 2 has more or fewer cells"),
        ("a.csv", "", "no column 'key'"),
        ("a.json", "{}", "no list of records"),
        ("a.json", "[1]", "no list of records"),
        ("a.json", "nonsense", "Expecting value"),
        (
            "a.json",
            '[{"key": "x", "settings": {"colour": 1}, "dataset": "cora", "split": "public"}]',
            "record 1: this does not describe a run",
        ),
        ("a.json", '[{"key": "x", "settings": {}, "dataset": "nowhere", "split": "public"}]', "record 1: this does not describe a run"),
    ],
)
def test_other_files_are_refused(tmp_path, name, text, why):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DataError, match=why):
        Export.read(file, ROOT)
