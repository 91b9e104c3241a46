"""Runs that come back from an export: the same runs, checked against their keys, and exported again to the same bytes."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pytest

from everynode.batches import Batches
from everynode.datasets.entries import find
from everynode.datasets.files import Root
from everynode.errors import DataError
from everynode.experiments.exports import (
    Export,
    ExportedRuns,
    add_records,
    load_records,
    merge,
    read_runs,
)
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.report.export import runs_csv, runs_json
from everynode.settings import Settings

ROOT = Root(Path("nowhere"), downloads=False)
WRITERS = {"csv": runs_csv, "json": runs_json}


def run(
    seed: int = 0,
    objective: str = "enc",
    *,
    split: str = "public",
    dataset: str = "citeseer",
    **changes: object,
) -> Run:
    settings = Settings(hidden_channels=4, epochs=2, **changes.pop("settings", {})).for_objective(
        objective
    )  # type: ignore[arg-type]
    made = Run(
        dataset, find(dataset).digest(split, ROOT), split, 0, seed, "default", objective, settings
    )
    return dataclasses.replace(made, **changes)


RUNS = [
    run(), run(1, "ce"), run(settings={"class_weight": "balanced"}), run(directed=True), run(batches=Batches(size=64, fan_out=(3, 2))),
    run(split="random", per_class=5, split_seed=2), run(objective="ce", settings={"lr": 1e30, "lr_gnn": 1e30}),
    run(dataset="generated-60x200x8x3", split="stratified"), run(task="describe"), run(task="time"),
    run(dataset="generated-60x200x8x3", split="stratified", task="tsne"),
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Real runs of every kind."""
    store = Store(tmp_path_factory.mktemp("made") / "runs.db")
    do_runs(RUNS, Graphs(), store, workers=1)
    assert sum("error" in record for record in store.records().values()) == 1
    return store


@pytest.mark.parametrize(
    ("ending", "left_out"), [("csv", 2), ("json", 1)]
)  # times, and in a table the map
def test_what_is_exported_and_merged_is_exported_again_to_the_same_bytes(
    store, tmp_path, ending, left_out
):
    write, file = WRITERS[ending], tmp_path / f"runs.{ending}"
    file.write_text(write(store.records()))
    export, other = Export.read(file), Store(tmp_path / "other.db")
    assert export.left_out == left_out
    assert other.put_all(export.rows) == (len(RUNS) - left_out, 0, 0, 0, 0)
    there = other.keys()
    kept = {key: record for key, record in store.records().items() if key in there}
    assert write(other.records()) == write(kept)
    assert {key: run[0] for key, run in other.runs().items()} == {
        key: store.runs()[key][0] for key in kept
    }
    assert other.curve(next(iter(kept))) == {}
    known = len(RUNS) - left_out
    assert store.put_all(export.rows) == (0, known, 0, 0, 0), (
        "an export says nothing else than what it is of"
    )
    without = sum(kept[key].get("error") is None and bool(store.curve(key)) for key in kept)
    assert other.put_all(store.rows()) == (left_out, known, 0, without, 0)
    assert other.curve(RUNS[0].key) == store.curve(RUNS[0].key), (
        "a record of an export gives way to the whole one"
    )
    assert runs_csv(other.records()) == runs_csv(store.records())


def test_runs_that_come_back_are_not_done_again(store, tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text(runs_csv(store.records()), encoding="utf-8-sig")  # as a spreadsheet saves it
    other = Store(tmp_path / "other.db")
    other.put_all(Export.read(file).rows)
    fresh = []
    do_runs(
        RUNS[:2], Graphs(), other, workers=1, on_record=lambda run, record, new: fresh.append(new)
    )
    assert fresh == [False, False]


@pytest.fixture
def change(store, tmp_path):
    """Reads an export of one trained run after some of its values were changed; None takes a value away."""

    def read(changes: dict[str, object]) -> Export:
        record = json.loads(runs_json({RUNS[0].key: store.records()[RUNS[0].key]}))[0]
        for name, value in changes.items():
            outer, _, last = name.rpartition(".")
            inner = record[outer] if outer else record
            inner[last] = value
            if value is None:
                del inner[last]
        file = tmp_path / "runs.json"
        file.write_text(json.dumps([record]))
        return Export.read(file)

    return read


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *(({name: value}, "does not match its key") for name, value in (
            ("seed", 7), ("settings.tv", 0.25), ("versions.torch", "1.0"), ("dataset", "cora"), ("graph_digest", "0" * 64),
            ("directed", True), ("objective", "mi"), ("task", "describe"), ("key", "0" * 64),
        )),
        ({"settings.num_layers": "many"}, "settings: The 'num_layers' of Settings must be a whole number. Got 'many'."),
        ({"settings.colour": 1}, "settings: unknown setting 'colour'"),
        ({"settings.dropout": 2.0}, "settings: The 'dropout' of Settings must be in [0, 1). Got 2.0."),
        ({"settings.tv": 10**400}, "int too large"),
        ({"settings.backbone": "gnc"}, "does not match its key"),
        ({"settings": [1]}, "settings must be a table"),
        ({"batches": {"fan_out": 3}}, "batches: "),
        ({"batches": {"size": 8}}, "batches: 'fan_out'"),
        ({"fold": "abc"}, "fold must be a whole number >= 0. Got 'abc'."),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"task": "juggle"}, "task must be one of train, time"),
        ({"objective": "bogus"}, "Unknown objective 'bogus'"),
        ({"dataset": ["x"]}, "dataset must be text"),
        ({"graph_digest": None}, "graph_digest is missing"),
        ({"directed": None}, "directed is missing"),
        ({"directed": 1}, "directed must be true or false"),
        ({"versions": None}, "versions is missing"),
        ({"python": None}, "python is missing"),
        ({"test_accuracy": None}, "test_accuracy is missing"),
        ({"test_accuracy": "hello"}, "test_accuracy must be a number from 0 to 1. Got 'hello'."),
        ({"test_accuracy": 97.5}, "test_accuracy must be a number from 0 to 1. Got '97.5'."),
        ({"val_accuracy": float("nan")}, "val_accuracy must be a number from 0 to 1. Got 'nan'."),
        ({"seconds_per_epoch": "fast"}, "seconds_per_epoch must be a number >= 0"),
        ({"seconds": float("inf")}, "seconds must be a number >= 0"),
        ({"nodes": 5}, "nodes must be a table"),
        ({"terms.ce": "x"}, "terms.ce must be a number"),
        ({"epochs": None}, "epochs is missing"),
        ({"confusion": "abc"}, "confusion must be a square matrix of whole numbers"),
        ({"confusion": [[1, 2], [3]]}, "confusion must be a square matrix of whole numbers"),
        ({"confusion": [[1, None], [3, 4]]}, "confusion must be a square matrix of whole numbers"),
        ({"nodes": {}}, "nodes.train must be a whole number >= 1. Got 'None'."),
        ({"nodes.train": 0}, "nodes.train must be a whole number >= 1. Got '0'."),
        ({"nodes.test": None}, "nodes.test must be a whole number >= 0"),
        ({"terms": {"ce": None}}, "terms must be numbers"),
        ({"seconds": 10**400}, "seconds must be a number >= 0"),
        ({"cpu": "\ud800"}, "surrogates not allowed"),
        ({"positions": []}, "positions must be two numbers for each node"),
        ({"positions": [[1.0, 2.0]], "labels": [0, 1]}, "labels must be a whole number for each node"),
    ],
)  # fmt: skip
def test_what_no_run_can_be_or_get_is_refused_with_its_place(change, changes, why):
    with pytest.raises(DataError, match=r"runs\.json, record 1: ") as refused:
        change(changes)
    assert why in str(refused.value)


def test_what_the_key_says_counts_and_not_what_else_stands_in_the_record(change):
    ((_, _, record, *_),) = change({"num_layers": "many", "backbone": "nope"}).rows
    assert (json.loads(record)["num_layers"], json.loads(record)["backbone"]) == (2, "gcn")


HEAD = "key,dataset,task,settings.num_layers"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "node,label\n1,2\n", "column 'key' is missing"),
        ("a.csv", f"{HEAD}\nx\n", "row 2 and the header differ in length"),
        ("a.csv", f"{HEAD},seed,seed\n", "column 'seed' appears twice"),
        ("a.csv", f"{HEAD},settings\n", "unknown column 'settings.num_layers'"),
        ("a.csv", f"{HEAD},{'a.' * 1200}\n", "unknown column"),
        ("a.csv", f"{HEAD}\n", "has no run that a store can take"),
        ("a.csv", f"{HEAD}\nx,cora,train,2\n", "row 2: graph_digest is missing"),
        ("a.csv", f"{HEAD},nodes.x\nx,cora,train,2,{'[' * 100000}\n", "is not an export of"),
        ("a.csv", "", "column 'key' is missing"),
        ("a.csv", "\0\0\0", "column 'key' is missing"),
        ("a.json", "{}", "not a list of records"),
        ("a.json", "[1]", "not a list of records"),
        ("a.json", "[]", "has no run that a store can take"),
        ("a.json", "[{}]", "record 1: key is missing"),
        ("a.json", "nonsense", "Expecting value"),
        ("a.json", "[" * 100000, "is not an export of"),
        ("a.json", "[" + "7" * 5000 + "]", "is not an export of"),
        (
            "a.json",
            '[{"key": "x", "settings": {}, "dataset": "cora"}]',
            "record 1: graph_digest is missing",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, name, text, why):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DataError) as refused:
        Export.read(file)
    assert why in str(refused.value)


def test_a_run_that_stands_there_twice_is_refused(store, tmp_path):
    file = tmp_path / "runs.csv"
    lines = runs_csv({RUNS[0].key: store.records()[RUNS[0].key]}).splitlines()
    file.write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(DataError, match=r"row 3: run [0-9a-f]{12} appears twice in the file"):
        Export.read(file)


def test_lists_in_a_table_are_json(store):
    rows = list(csv.DictReader(io.StringIO(runs_csv(store.records()))))
    assert {row["batches.fan_out"] for row in rows} == {"", "[3, 2]"}


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_what_a_file_has_and_the_store_has_not_is_kept_as_it_stands(store, tmp_path, ending):
    file = tmp_path / f"runs.{ending}"
    everything = store.records()
    file.write_text(WRITERS[ending](everything))
    own = {key: record for key, record in everything.items() if record["task"] == "train"}
    records, left_out = add_records(file, own)
    assert (WRITERS[ending](records), left_out) == (file.read_text(), 0)


def test_times_of_two_machines_are_not_mixed(store, tmp_path):
    """Those of the store replace the file's only if it has all that the file has."""
    file, times = tmp_path / "runs.csv", [run(seed, task="time") for seed in (0, 1, 2)]
    record = next(record for record in store.records().values() if record["task"] == "time")
    of_file, of_store = (
        {
            made.key: {**record, "key": made.key, "seed": made.seed, "training_ms": ms}
            for made in times
        }
        for ms in (1.0, 2.0)
    )
    file.write_text(runs_csv(of_file))
    some = dict(list(of_store.items())[:1])
    assert [
        (found[key]["training_ms"], left_out)
        for found, left_out in [add_records(file, some)]
        for key in of_file
    ] == [(1.0, 1)] * 3
    assert add_records(file, of_store) == (of_store, 0)
    another = {run(3, task="time").key: record}
    assert add_records(file, another)[0].keys() == of_file.keys()
    file.write_text(runs_csv(some))
    assert add_records(file, of_store) == (of_store, 0)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_file_has_its_times_and_what_is_left_of_maps(store, tmp_path, ending):
    file = tmp_path / f"runs.{ending}"
    file.write_text(WRITERS[ending](store.records()))
    runs = read_runs(file)
    assert runs.keys() == store.keys() == load_records(file).keys()
    assert len(ExportedRuns([file]).records()) == len(runs) - (ending == "csv")
    timed = next(key for key, (made, _) in runs.items() if made.task == "time")
    assert runs[timed][1]["training_ms"] == store.get(timed)["training_ms"]


def test_stores_and_exports_are_merged(store, tmp_path):
    file = tmp_path / "runs.json"
    file.write_text(runs_json(store.records()))
    (of_export, times), (of_store, same_times) = merge([file, store.path], tmp_path / "other.db")
    assert (of_export.added, of_export.known, times) == (len(RUNS) - 1, 0, 1)
    assert (of_store.added, of_store.known, same_times) == (0, len(RUNS) - 1, 1)
    assert load_records(tmp_path / "other.db").keys() < load_records(store.path).keys()


def test_nothing_is_merged_if_a_source_cannot_be_read(store, tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        merge([store.path, tmp_path / "absent.csv"], tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()
