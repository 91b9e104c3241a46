"""``everynode results``: showing, exporting, merging and tabling a store that was made without training anything."""

from __future__ import annotations

import csv
import dataclasses
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from everynode.cli.results import results_export
from everynode.datasets.files import Root
from everynode.experiments import exports
from everynode.experiments.experiment import find
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store, state_path

pytestmark = pytest.mark.usefixtures("elsewhere")


def planned(seeds: int) -> list[Run]:
    plan, _ = find("halves").plan("paper", seeds, Root(Path("nowhere"), downloads=False))
    return [run for runs in plan.values() for run in runs]


def record(run: Run) -> dict[str, object]:
    score = 0.5 + run.seed / 100 + (0.1 if run.settings.halves == "random" else 0.0)
    made_with = {"versions": run.versions, "version": "0.1.0", "python": "3.11", "system": "linux"}
    got = {
        "test_accuracy": score,
        "settings": {"hidden_channels": 64},
        "confusion": [[1, 0], [0, 1]],
    }
    return {**run.describe(), "key": run.key, **made_with, **got}


def whole(run: Run) -> dict[str, object]:
    """A record with all that an export has to say of a run to be read back."""
    got = {
        "graph_digest": run.graph_digest,
        "directed": run.directed,
        "val_accuracy": 0.5,
        "epochs": 3,
        "best_epoch": 1,
        "nodes": {"train": 1, "val": 2, "test": 2},
        "terms": {"ce": 1.0},
    }
    return record(run) | {"settings": dataclasses.asdict(run.settings)} | got


def make(path: str, runs: list[Run], record: Callable[[Run], dict[str, object]] = record) -> Store:
    store = Store(path)
    for run in runs:
        store.put(run.specification, record(run), {"seconds": 1.5}, {"total": [2.0, 1.0]})
    return store


def test_times_of_another_store_are_left_out(call):
    """They may be of another machine, and times of two machines have no mean."""
    plan, _ = find("run-times").plan("paper", 1, Root(Path("nowhere"), downloads=False))
    runs = [run for made in plan.values() for run in made]
    timed = {run.key for run in runs if run.task == "time"}
    assert 0 < len(timed) < len({run.key for run in runs})
    make("theirs.db", runs)
    done = call("results", "merge", "theirs.db", "--into", "ours.db")
    assert done.returncode == 0
    assert f"Left out: {len(timed)} records" in done.stderr
    assert Store("ours.db").keys() == {run.key for run in runs} - timed


def test_what_ends_during_an_export_is_left_for_the_next_one(call, monkeypatch):
    runs = planned(2)
    store = make("runs/runs.db", runs[:-1])
    late, read = runs[-1], Store.runs

    def slowly(self):
        found = read(self)
        store.put(late.specification, record(late), {}, {})
        return found

    monkeypatch.setattr(Store, "runs", slowly)
    assert call("results", "export", "runs.csv", "--experiment", "halves").returncode == 0
    assert {row["key"] for row in csv.DictReader(Path("runs.csv").read_text().splitlines())} == {
        run.key for run in runs[:-1]
    }
    assert store.get(late.key) is not None


def test_an_export_may_add_to_a_file_which_has_to_be_one(call):
    runs = planned(2)
    make("runs/runs.db", runs[2:])
    export = ("results", "export", "runs.csv", "--add")
    Path("runs.csv").write_text("key,name\n1,2\n")
    done = call(*export)
    assert (done.returncode, Path("runs.csv").read_text()) == (3, "key,name\n1,2\n")
    assert (
        done.stderr
        == "everynode: runs.csv is not an export of `everynode results export`: column 'dataset' is missing.\n"
    )
    Path("runs.csv").unlink()
    assert call(*export).returncode == 0
    assert {row["key"] for row in csv.DictReader(Path("runs.csv").read_text().splitlines())} == {
        run.key for run in runs[2:]
    }


def test_two_that_add_to_a_file_at_once_lose_nothing(monkeypatch):
    """Both read it, and the second to write left out what the first had added."""
    runs, read = planned(2), exports.add_records
    for name, some in (("a.db", runs[:3]), ("b.db", runs[3:6]), ("c.db", runs[6:])):
        make(name, some, whole)
    results_export(Path("runs.csv"), store=Path("a.db"))

    def slowly(*arguments):
        found = read(*arguments)
        time.sleep(0.5)
        return found

    monkeypatch.setattr(exports, "add_records", slowly)
    with ThreadPoolExecutor() as both:
        codes = both.map(
            lambda name: results_export(Path("runs.csv"), add=True, store=Path(name)),
            ["b.db", "c.db"],
        )
        assert list(codes) == [0, 0]
    assert {row["key"] for row in csv.DictReader(Path("runs.csv").read_text().splitlines())} == {
        run.key for run in runs
    }
    assert sorted(path.name for path in Path().iterdir() if "runs.csv" in path.name) == [
        "runs.csv"
    ], "a lock was left behind"


def test_nothing_is_added_to_a_file_of_which_a_record_is_of_another_run_than_its_key(call):
    run, other = planned(1)[:2]
    make("a.db", [run], whole)
    make("b.db", [other], whole)
    Path("runs.json").write_text(json.dumps([{**whole(run), "seed": 7}]))
    before = Path("runs.json").read_bytes()
    done = call("results", "export", "runs.json", "--add", "--store", "b.db")
    assert (done.returncode, Path("runs.json").read_bytes()) == (3, before)
    assert "runs.json, record 1: the record does not match its key" in done.stderr


def test_tables_never_replace_runs(call):
    make("runs/runs.db", planned(5))
    assert call("results", "export", "runs.json").returncode == 0
    before = Path("runs.json").read_bytes()
    done = call("results", "tables", "runs.json")
    assert (done.returncode, Path("runs.json").read_bytes()) == (2, before)
    assert (
        done.stderr
        == "everynode: runs.json is an export of runs and is not replaced: name another file.\n"
    )
    assert call("results", "tables", "tables.json").returncode == 0
    assert call("results", "tables", "tables.json").returncode == 0, "tables may be made anew"


def test_tables_never_replace_the_export_that_they_are_made_of(call):
    make("runs/runs.db", planned(5), whole)
    for name in ("runs.csv", "runs.json"):
        assert call("results", "export", name).returncode == 0
        before = Path(name).read_bytes()
        done = call("results", "tables", name, "--store", name)
        assert (done.returncode, Path(name).read_bytes()) == (2, before)
        assert (
            done.stderr
            == f"everynode: {name} is an export of runs and is not replaced: name another file.\n"
        )
    done = call("results", "tables", "new.csv")
    assert (done.returncode, done.stderr) == (
        2,
        "everynode: The tables are JSON: name a file that ends in .json, not new.csv.\n",
    )


def test_an_export_is_no_store_and_who_takes_it_for_one_is_told_the_way(call):
    make("runs/runs.db", planned(1))
    assert call("results", "export", "runs.csv").returncode == 0
    done = call("results", "show", "--store", "runs.csv")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith(
        "if it is an export, `everynode results merge runs.csv` adds its runs to a store.\n"
    )


def test_show_counts_the_runs_of_each_kind(call):
    make("runs/runs.db", planned(3))
    rows = json.loads(call("results", "show", "--json").stdout)
    assert {(row["backbone"], row["num_layers"], row["runs"]) for row in rows} == {
        ("gat", 2, 6),
        ("gcn", 2, 6),
        ("gcnii", 8, 6),
    }
    assert "18 runs in runs/runs.db" in call("results", "show").stdout


def test_what_is_written_never_replaces_a_store(call):
    """In `report` the first argument is the store, in `tables` it is what is written."""
    make("runs/runs.db", planned(5))
    make("runs/table.csv", planned(1))
    before = {path: path.read_bytes() for path in Path("runs").iterdir()}
    for words in (
        ["results", "tables", "runs/runs.db"],
        ["results", "export", "runs/table.csv"],
        ["results", "export", "runs/table.csv", "--store", "runs/table.csv"],
        ["report", "--out", "runs/table.csv"],
    ):
        done = call(*words)
        assert done.returncode == 2, words
        assert "and is not replaced" in done.stderr
    for words in (["results", "tables", "runs"], ["report", "--out", "."]):
        done = call(*words)
        assert (done.returncode, "is a folder: name a file" in done.stderr) == (2, True)
    Path("one.csv").symlink_to("other.csv")
    Path("other.csv").symlink_to("one.csv")
    done = call("results", "export", "one.csv")
    assert (done.returncode, "Cannot write one.csv: " in done.stderr) == (3, True)
    assert "--out" not in done.stderr, "which `results export` does not have"
    assert {path: path.read_bytes() for path in Path("runs").iterdir()} == before


def test_nothing_is_written_over_a_good_file_if_there_is_nothing_to_write(call):
    Store("empty/runs.db")
    Path("t.csv").write_text("good")
    Path("t.json").write_text("good")
    for words in (["export", "t.csv"], ["tables", "t.json"]):
        done = call("results", *words, "--store", "empty")
        assert (done.returncode, "nothing was written" in done.stderr) == (2, True)
    assert Path("t.csv").read_text() == Path("t.json").read_text() == "good"


def test_runs_of_another_torch_are_still_shown_and_exported(call):
    """With versions other than those installed they are other runs, but what they got can be read."""
    runs = [
        dataclasses.replace(run, versions={**run.versions, "torch": "1.0.0"}) for run in planned(10)
    ]
    store = Store("runs/runs.db")
    for run in runs:
        store.put(run.specification, record(run), {"seconds": 1.5}, {})
    assert call("results", "tables", "t.json").returncode == 0
    cells = next(
        table for table in json.loads(Path("t.json").read_text()) if table["id"] == "halves"
    )["cells"]
    assert [cell["summary"]["count"] for cell in cells] == [10] * 6
    assert call("report").returncode == 0
    assert runs[0].key[:12] in Path("report.html").read_text()
    assert call("results", "export", "halves.csv", "--experiment", "halves").returncode == 0
    listed = call("reproduce", "halves", "--dry-run")
    assert (
        "Most runs in runs/runs.db were made with protocol 1, torch 1.0.0; `everynode report` shows them. They are repeated with protocol 1, torch 2"
        in listed.stderr
    )
    assert "60 runs, 0 done" in listed.stdout
    make("runs/runs.db", planned(2))  # a few with the torch that is installed
    assert call("report").returncode == 0
    assert runs[0].key[:12] in Path("report.html").read_text()


def test_merging_says_where_two_stores_disagree(call):
    run, *others = planned(2)
    make("a/runs.db", [run, *others])
    store = Store("b/runs.db")
    store.put(run.specification, {**record(run), "test_accuracy": 0.999}, {}, {"total": [1.0]})
    done = call("results", "merge", "b/runs.db", "--into", "a")
    assert "0 new runs, 1 known one. 1 known run differs" in done.stderr
    assert Store("a/runs.db").get(run.key)["test_accuracy"] == record(run)["test_accuracy"]
    store = Store("c/runs.db")
    store.put(run.specification, {**record(run), "test_accuracy": 0.999}, {}, {})
    done = call("results", "merge", "a", "--into", "c/runs.db")
    assert "Replaced 1 without a curve, 1 of them with another result." in done.stderr
    assert Store("c/runs.db").get(run.key)["test_accuracy"] == record(run)["test_accuracy"]


def test_merging_into_a_folder_that_is_not_there_makes_it(call):
    make("a/runs.db", planned(1))
    assert call("results", "merge", "a", "--into", "new").returncode == 0
    assert Path("new/runs.db").is_file(), "a store was made that `reproduce --out new` cannot find"
    Path("new/runs.db").rename("store")
    assert "0 new runs" in call("results", "merge", "a", "--into", "store").stderr


def test_show_counts_what_has_not_ended(call):
    make("runs/runs.db", planned(1))
    assert "not ended" not in call("results", "show").stdout
    for key in "abc":
        state_path(Path("runs/runs.db"), key * 64).write_bytes(b"x" * 2_000_000)
    shown = call("results", "show").stdout
    assert "Unfinished trainings: 3 (runs/runs.db.*.state, 6 MB)." in shown


def test_show_tells_everything_about_one_run(call):
    run = planned(1)[0]
    make("runs/runs.db", planned(1))
    shown = json.loads(call("results", "show", run.key[:10], "--curve", "--json").stdout)
    assert shown["specification"] == json.loads(run.specification)
    assert shown["record"] == {**record(run), "seconds": 1.5}
    assert shown["curve"] == {"total": [2.0, 1.0]}


@pytest.mark.parametrize("key", ["zzz", ""])
def test_a_key_that_fits_no_run_or_several_is_refused(call, key):
    make("runs/runs.db", planned(1))
    done = call("results", "show", key)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"starts with {key!r}" in done.stderr


def test_exports_have_every_run_once_and_the_same_bytes_again(call):
    runs = planned(2)
    make("runs/runs.db", runs)
    for name in ("out.csv", "out.json"):
        assert call("results", "export", name).returncode == 0
        first = Path(name).read_bytes()
        Path(name).unlink()
        call("results", "export", name)
        assert Path(name).read_bytes() == first
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == sorted(run.key for run in runs)
    assert {row["settings.hidden_channels"] for row in rows} == {"64"}
    assert json.loads(rows[0]["confusion"]) == [[1, 0], [0, 1]]
    assert json.loads(Path("out.json").read_text()) == [
        {**record(run), "seconds": 1.5} for run in sorted(runs, key=lambda run: run.key)
    ]


def test_an_export_of_some_runs(call):
    halves, nowhere = planned(2), Root(Path("nowhere"), downloads=False)
    plans = (
        find(name).plan("paper", 3, nowhere)[0]
        for name in ("tsne", "labels-per-class", "homophilic")
    )
    maps, drawn, folds = ([run for runs in plan.values() for run in runs] for plan in plans)
    assert {run.split_seed for run in drawn} == {run.fold for run in folds} == {0, 1, 2}
    older = [
        dataclasses.replace(run, versions={**run.versions, "torch": "1.0.0"}) for run in halves[:5]
    ]
    other = dataclasses.replace(halves[0], seed=77, preset="tuned")
    make("runs/runs.db", [*halves, *maps, *drawn, *folds, *older, other])

    def exported_with(*flags: str) -> set[str]:
        assert call("results", "export", "some.json", *flags).returncode == 0
        return {found["key"] for found in json.loads(Path("some.json").read_text())}

    assert exported_with("--preset", "paper") == {
        run.key for run in [*halves, *maps, *drawn, *folds, *older]
    }
    assert exported_with("--preset", "there/tuned") == {other.key}
    assert exported_with("--experiment", "tsne") == {run.key for run in maps}
    assert exported_with("--experiment", "labels-per-class") == {run.key for run in drawn}
    assert exported_with("--experiment", "homophilic") == {run.key for run in folds}
    assert exported_with("--experiment", "halves", "--preset", "paper") == {
        run.key for run in [*halves, *older, other]
    }, "whatever their torch, and the preset is a label"
    Path("some.json").write_text("precious")
    for flags in (
        ("--preset", "papr"),
        ("--experiment", "mi-vs-tv"),
        ("--experiment", "depth", "--preset", "tuned"),
    ):
        done = call("results", "export", "some.json", *flags)
        assert (done.returncode, Path("some.json").read_text()) == (2, "precious")
        assert (
            "There is no such run in runs/runs.db, which has runs of paper, tuned: nothing was written."
            in done.stderr
        )
    done = call("results", "export", "some.json", "--experiment", "halfs")
    assert (done.returncode, "did you mean 'halves'?" in done.stderr) == (2, True)


def test_a_store_may_be_named_by_its_folder(call):
    make("there/runs.db", planned(1))
    assert "6 runs in there" in call("results", "show", "--store", "there").stdout
    assert call("results", "export", "out.csv", "--store", "there").returncode == 0
    done = call("results", "show", "--store", "runs")
    assert (done.returncode, "no store of runs at runs" in done.stderr) == (3, True)


def test_tables_and_page_of_as_many_seeds_as_were_run(call):
    make("runs/runs.db", planned(12))
    for seeds, count in ((None, 10), (12, 12), (5, 5)):
        flags = [] if seeds is None else ["--seeds", seeds]
        assert call("results", "tables", "t.json", "--data-dir", "nowhere", *flags).returncode == 0
        (table,) = [
            table for table in json.loads(Path("t.json").read_text()) if table["id"] == "halves"
        ]
        assert {(cell["planned"], len(cell["runs"])) for cell in table["cells"]} == {(count, count)}
    done = call("results", "tables", "t.json", "--seeds", 0)
    assert (done.returncode, done.stderr) == (2, "everynode: --seeds must be at least 1.\n")


def test_export_to_another_ending_is_refused(call):
    make("runs/runs.db", planned(1))
    done = call("results", "export", "out.xlsx")
    assert (done.returncode, Path("out.xlsx").exists()) == (2, False)


def test_an_ending_in_capitals_is_the_same_ending(call):
    make("runs/runs.db", planned(1))
    for name in ("a.csv", "b.CSV", "a.json", "b.Json"):
        assert call("results", "export", name).returncode == 0
    assert Path("a.csv").read_bytes() == Path("b.CSV").read_bytes()
    assert Path("a.json").read_bytes() == Path("b.Json").read_bytes()


def test_merge_adds_what_is_new_and_says_how_much(call):
    make("a.db", planned(2))
    make("b.db", planned(3))
    done = call("results", "merge", "a.db", "b.db", "--into", "c.db")
    assert done.returncode == 0
    assert "a.db: 12 new runs, 0 known ones." in done.stderr
    assert "b.db: 6 new runs, 12 known ones." in done.stderr
    assert Store("c.db").records() == Store("b.db").records()


def test_merge_looks_at_all_stores_before_it_writes(call):
    make("a.db", planned(1))
    Path("b.db").write_text("not a store")
    done = call("results", "merge", "a.db", "b.db", "--into", "c.db")
    assert done.returncode == 3
    assert not Path("c.db").exists()
    assert Path("b.db").read_text() == "not a store"
    assert call("results", "merge", "--into", "c.db").returncode == 2


def test_merge_takes_exports_and_looks_at_them_before_it_writes(call):
    make("a.db", planned(2), whole)
    call("results", "export", "a.csv", "--store", "a.db")
    Path("b.csv").write_text("something,else\n")
    done = call("results", "merge", "a.csv", "b.csv", "--into", "c.db")
    assert (done.returncode, Path("c.db").exists()) == (3, False)
    assert "b.csv is not an export" in done.stderr
    done = call("results", "merge", "a.csv", "--into", "c.db")
    assert "a.csv: 12 new runs, 0 known ones." in done.stderr
    assert call("results", "merge", "a.csv", "--into", "x.csv").returncode == 2
    call("results", "export", "c.csv", "--store", "c.db")
    assert Path("c.csv").read_bytes() == Path("a.csv").read_bytes()


def test_tables_come_from_the_runs_that_are_there(call):
    make("runs/runs.db", planned(10))
    assert call("results", "tables", "tables.json").returncode == 0
    first = Path("tables.json").read_bytes()
    halves = next(table for table in json.loads(first) if table["id"] == "halves")
    cell = next(c for c in halves["cells"] if (c["row"], c["column"]) == ("random halves", "GCN"))
    assert cell["summary"]["mean"] == pytest.approx(64.5)
    assert cell["gain"]["mean"] == pytest.approx(10.0)
    assert len(cell["runs"]) == cell["planned"] == 10
    assert all(
        not c["runs"]
        for table in json.loads(first)
        if table["id"] == "homophilic"
        for c in table["cells"]
    )
    Path("tables.json").unlink()
    call("results", "tables", "tables.json")
    assert Path("tables.json").read_bytes() == first


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("export", "x.csv"),
        ("merge", "runs/runs.db", "--into", "c.db"),
        ("tables", "t.json"),
    ],
)
def test_without_a_store_nothing_is_made(call, words):
    done = call("results", *words)
    assert done.returncode == 3
    assert "There is no store of runs" in done.stderr
    assert not list(Path.cwd().iterdir())
