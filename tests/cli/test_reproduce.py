"""``everynode reproduce``, with an experiment of two cells that take a second where something has to be run."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import types
from contextlib import closing
from pathlib import Path
from statistics import mean, stdev

import pytest

from everynode.datasets.files import Root
from everynode.experiments import runner
from everynode.experiments.experiment import Cell, Experiment, experiments, experiments_for
from everynode.experiments.runtime_model import Speed
from everynode.experiments.store import Store, state_path

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.skipif(
        sys.platform == "win32",
        reason="sends SIGINT and SIGKILL to a process, which Windows does not have",
    ),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
STORE = Path("runs/runs.db")


def tiny(epochs: int = 3) -> Experiment:
    changes = (("epochs", epochs), ("hidden_channels", 8), ("num_layers", 2))
    cells = [
        Cell("GCN", "citeseer", "citeseer", "public", "gcn", "ce", changes=changes, published=70.8),
        Cell(
            "ENC-GCN",
            "citeseer",
            "citeseer",
            "public",
            "gcn",
            "enc",
            changes=changes,
            published=20.0,
            against="GCN",
        ),
    ]
    return Experiment(
        "tiny", "Tiny", "tab:tiny", "Two cells.", "seeds", "table", lambda: cells, count=2
    )


@pytest.fixture
def small(monkeypatch) -> Experiment:
    """The tiny experiment among the others, for calls in this process."""
    made = tiny()
    monkeypatch.setitem(experiments(), "tiny", made)
    return made


#: The command with that experiment, for calls in a process of their own; the first word is its number of epochs.
SCRIPT = f"""
import importlib.util, sys
from everynode.experiments.experiment import experiments
spec = importlib.util.spec_from_file_location("these", {__file__!r})
these = importlib.util.module_from_spec(spec)
spec.loader.exec_module(these)
experiments()["tiny"] = these.tiny(int(sys.argv.pop(1)))
from everynode.cli import main
main()
"""


def start(epochs: int, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", SCRIPT, str(epochs), "reproduce", "tiny", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def rows(path: Path = STORE, columns: str = "key, specification, record, curve") -> list[tuple]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(f"SELECT {columns} FROM runs ORDER BY key").fetchall()
    except sqlite3.Error:
        return []


# ---------------------------------------------------------------------- listing


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        [],
        ["semi-supervised", "--seeds", "2", "--dry-run"],
        ["all", "--dry-run", "--json"],
    ],
)
def test_listing_imports_nothing_that_computes_and_makes_nothing(arguments):
    code = f"""
import sys
sys.argv = ["everynode", "reproduce", *{arguments!r}]
from everynode.cli import main
try:
    main()
finally:
    print("MODULES", *sorted(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    modules = done.stderr.partition("MODULES")[2].split()
    assert "everynode.experiments.experiment" in modules
    assert not {"torch", "numpy", "scipy", "sklearn", "torch_geometric"} & set(modules)
    assert list(Path().iterdir()) == []


def test_a_dry_run_lists_every_run_once_and_at_once(call):
    started = time.monotonic()
    done = call("reproduce", "semi-supervised", "--seeds", 2, "--dry-run")
    assert time.monotonic() - started < 5
    *lines, last = done.stdout.splitlines()
    assert len(lines) == len({line.split()[0] for line in lines}) == 36
    assert last.startswith("36 runs, 0 done; about ")
    told = json.loads(
        call("reproduce", "semi-supervised", "--seeds", 2, "--dry-run", "--json").stdout
    )
    assert [run["key"][:12] for run in told] == [line.split()[0] for line in lines]
    assert not any(run["done"] for run in told)
    assert {run["seed"] for run in told} == {0, 1}


def test_a_dry_run_on_some_graphs_lists_theirs_only(call):
    for graphs, count in (("citeseer", 12), ("citeseer, cora", 24)):
        told = json.loads(
            call(
                "reproduce",
                "semi-supervised",
                "--seeds",
                2,
                "--graphs",
                graphs,
                "--dry-run",
                "--json",
            ).stdout
        )
        assert {run["dataset"] for run in told} == set(graphs.split(", "))
        assert len(told) == count


def test_a_dry_run_of_some_rows_and_columns_lists_theirs_only(call):
    chosen = (
        "--graphs",
        "pubmed",
        "--rows",
        "gcnii, ENC-GCNII",
        "--columns",
        "16,64",
        "--seeds",
        2,
    )
    told = json.loads(call("reproduce", "depth", *chosen, "--dry-run", "--json").stdout)
    found = [
        (run["dataset"], run["backbone"], run["num_layers"], run["objective"], run["seed"])
        for run in told
    ]
    expected = [
        ("pubmed", "gcnii", num_layers, objective, seed)
        for num_layers in (16, 64)
        for objective in ("ce", "enc")
        for seed in (0, 1)
    ]
    assert sorted(found) == sorted(expected)


def test_the_list_has_every_experiment(call):
    done = call("reproduce", "list")
    *listed, missing, _ = done.stdout.splitlines()
    assert [line.split()[0] for line in listed] == [e.id for e in experiments_for("paper")]
    assert (
        missing
        == "The files of cornell-legacy are missing: `everynode data check cornell-legacy` downloads them, or says how to get them."
    )
    told = {row["id"]: row for row in json.loads(call("reproduce", "list", "--json").stdout)}
    assert [*told] == [e.id for e in experiments_for("paper")]
    assert (told["semi-supervised"]["runs"], told["semi-supervised"]["done"]) == (180, 0)
    assert (told["arxiv"]["missing"], told["arxiv"]["runs"]) == ([], 60), "it can be downloaded"
    assert (told["depth"]["missing"], told["datasets"]["missing"]) == ([], ["cornell-legacy"])


def test_with_another_preset_what_is_about_the_papers_settings_is_left_out(call):
    told = json.loads(call("reproduce", "list", "--preset", "tuned", "--json").stdout)
    assert [row["id"] for row in told] == [e.id for e in experiments_for("tuned")]
    done = call("reproduce", "all", "--preset", "tuned", "--dry-run")
    assert (done.returncode, "readings" in done.stderr) == (0, False)


@pytest.mark.parametrize("words", [("list",), ("halves", "--dry-run")])
def test_listing_makes_no_store_of_an_empty_file(call, words):
    Path("runs").mkdir()
    Path("runs/runs.db").touch()
    assert call("reproduce", *words).returncode == 0
    assert [(file.name, file.stat().st_size) for file in Path("runs").iterdir()] == [("runs.db", 0)]


# ---------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["semi-supervized"],
            2,
            "Unknown experiment 'semi-supervized' (did you mean 'semi-supervised'?). Choose from: datasets, ",
        ),
        (
            ["semi-supervised", "--folds", "3"],
            2,
            "semi-supervised goes over seeds, not over folds: give --seeds.",
        ),
        (
            ["homophilic", "--seeds", "3"],
            2,
            "homophilic goes over the ten folds with one seed each: give --folds.",
        ),
        (
            ["datasets", "--seeds", "3"],
            2,
            "datasets does each run once: give neither --seeds nor --folds.",
        ),
        (["semi-supervised", "--seeds", "0"], 2, "--seeds must be at least 1."),
        (["homophilic", "--folds", "-1"], 2, "--folds must be at least 1."),
        (["homophilic", "--folds", "11"], 2, "--folds can be at most 10: there are ten folds."),
        (
            ["depth", "--graphs", "cora,texas"],
            2,
            "Unknown graph of depth 'texas'. Choose from: cora, citeseer, pubmed.",
        ),
        (
            ["depth", "--graphs", ","],
            2,
            "Unknown graph of depth ','. Choose from: cora, citeseer, pubmed.",
        ),
        (
            ["depth", "--rows", "GCNIII"],
            2,
            "Unknown row of depth 'GCNIII' (did you mean 'GCNII'?). Choose from: GCN, ENC-GCN, GAT, ",
        ),
        (
            ["depth", "--columns", "128"],
            2,
            "Unknown column of depth '128'. Choose from: 2, 4, 8, 16, 32, 64.",
        ),
        (
            ["heterophilic", "--graphs", "texas", "--columns", "actor"],
            2,
            "No cell of heterophilic matches all filters: leave out one of --graphs and --columns.",
        ),
        (
            ["mi-vs-tv", "--panels", "GIN"],
            2,
            "Unknown panel of mi-vs-tv 'GIN' (did you mean 'GCN'?). Choose from: GCN, GAT, GCNII.",
        ),
        (
            ["halves", "--panels", "GCN"],
            2,
            "halves has only one table or plot: leave out --panels.",
        ),
        (
            ["readings", "--preset", "tuned", "--dry-run"],
            2,
            "readings has no runs with preset tuned: give --preset paper.",
        ),
        (["list", "--rows", "GCN"], 2, "`everynode reproduce list` takes no choice of runs"),
        (
            ["tsne", "--graphs", "cora", "--data-dir", "nowhere"],
            3,
            "tsne cannot be run: the files of cora are not in nowhere.",
        ),
        (
            ["homophilic", "--graphs", "pubmed", "--data-dir", "nowhere"],
            3,
            "homophilic cannot be run: the files of pubmed are not in",
        ),
        (
            ["semi-supervised", "--max-run-minutes", "-1"],
            2,
            "--max-run-minutes must be at least 0.",
        ),
        (
            ["list", "--seeds", "3"],
            2,
            "`everynode reproduce list` takes no choice of runs: use --dry-run.",
        ),
        (["list", "--graphs", "cora"], 2, "`everynode reproduce list` takes no choice of runs"),
        (["tsne", "--workers", "0"], 2, "--workers must be at least 1."),
        (["tsne", "--device", "tpu9"], 2, "The device 'tpu9' cannot be used here"),
        (
            ["tsne", "--device", "cuda", "--workers", "2"],
            2,
            "--device cuda does one run at a time: leave out --workers.",
        ),
        (
            ["tsne", "--data-dir", "nowhere"],
            3,
            "tsne cannot be run: the files of cora are not in nowhere.",
        ),
        (
            ["homophilic", "--data-dir", "nowhere", "--dry-run"],
            3,
            "homophilic cannot be run: the files of ",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(call, arguments, code, sentence):
    done = call("reproduce", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"everynode: {sentence}")
    assert done.stderr.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_graphs_that_are_not_here_are_left_out_and_named(call):
    done = call(
        "reproduce", "semi-supervised", "--seeds", 1, "--data-dir", "nowhere", "--dry-run", "--json"
    )
    assert done.returncode == 0
    assert {run["dataset"] for run in json.loads(done.stdout)} == {"citeseer"}
    for graph in ("cora", "pubmed"):
        assert (
            f"semi-supervised: left out {graph}: the files of {graph} are not in nowhere."
            in done.stderr
        )


def test_what_the_store_has_of_graphs_that_are_not_here_is_shown(call, monkeypatch):
    made = tiny()
    away = dataclasses.replace(made.cells()[0], dataset="cora", column="cora")
    monkeypatch.setitem(
        experiments(), "tiny", dataclasses.replace(made, cells=lambda: [*made.cells(), away])
    )
    (run,) = away.runs("paper", "seeds", 1, Root.find("nowhere"))
    Store(STORE).put(
        run.specification, {**run.describe(), "key": run.key, "test_accuracy": 0.5}, {}, {}
    )
    done = call(
        "reproduce", "tiny", "--seeds", 1, "--max-run-minutes", 0, "--data-dir", "nowhere", "--json"
    )
    assert "tiny: left out cora: the files of cora are not in nowhere." in done.stderr
    assert [len(cell["runs"]) for cell in json.loads(done.stdout)[0]["cells"]] == [0, 0, 1]


# ---------------------------------------------------------------------- running


@pytest.mark.usefixtures("small")
def test_a_second_call_does_nothing_new_and_says_the_same(call):
    command = ("reproduce", "tiny", "--workers", 1, "--json")
    first = call(*command)
    assert (first.returncode, first.stdout.count("\n")) == (0, 1)
    assert "4 runs, 0 of them in runs/runs.db already." in first.stderr
    before = rows(columns="*")
    second = call(*command)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "4 runs, 4 of them in runs/runs.db already." in second.stderr
    assert rows(columns="*") == before, "cost included: nothing was run again"
    (table,) = json.loads(first.stdout)
    assert (table["id"], table["preset"], table["over"]) == ("tiny", "paper", "seeds")
    ce, enc = table["cells"]
    assert (ce["row"], ce["planned"], len(ce["runs"]), ce["diverged"]) == ("GCN", 2, 2, 0)
    records = {key: json.loads(record) for key, record in rows(columns="key, record")}
    found = [
        100 * record["test_accuracy"] for record in records.values() if record["objective"] == "enc"
    ]
    assert enc["summary"]["mean"] == pytest.approx(sum(found) / 2)
    assert (enc["gain"]["against"], enc["gain"]["count"]) == ("GCN", 2)
    assert list(Path("runs").glob("*.lock")) == []
    more = call("reproduce", "tiny", "--seeds", 3, "--dry-run")
    assert more.stdout.splitlines()[-1].startswith("6 runs, 4 done; ")


@pytest.mark.usefixtures("small")
def test_the_table_has_our_numbers_and_the_papers(call):
    done = call("reproduce", "tiny", "--workers", 1, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Tiny (tab:tiny, preset paper, over seeds)" in " ".join(done.stdout.split())
    scores = [
        [
            100 * record["test_accuracy"]
            for record in Store(STORE).records().values()
            if record["objective"] == objective
        ]
        for objective in ("ce", "enc")
    ]
    for found, paper in zip(scores, ("70.8", "20"), strict=True):
        assert f"{mean(found):.1f} ± {stdev(found):.1f}" in done.stdout
        assert f"paper {paper}" in done.stdout
    assert f"gain {mean(scores[1]) - mean(scores[0]):+.1f}".replace("-", "−") in done.stdout


def test_runs_on_other_graphs_are_left_out_and_the_table_is_whole(call, monkeypatch):
    made = tiny()
    elsewhere = dataclasses.replace(
        made.cells()[0], dataset="generated-60x120x8x3", column="other", split="random"
    )
    monkeypatch.setitem(
        experiments(), "tiny", dataclasses.replace(made, cells=lambda: [*made.cells(), elsewhere])
    )
    done = call("reproduce", "tiny", "--graphs", "citeseer", "--seeds", 1, "--workers", 1, "--json")
    assert done.returncode == 0, done.stderr
    assert "2 runs, 0 of them" in done.stderr
    assert [len(cell["runs"]) for cell in json.loads(done.stdout)[0]["cells"]] == [1, 1, 0]


def test_who_measures_time_waits_until_nobody_else_does(call, monkeypatch):
    made = tiny(1)
    timed = dataclasses.replace(made.cells()[0], task="time", metric="training_ms")
    monkeypatch.setitem(experiments(), "tiny", dataclasses.replace(made, cells=lambda: [timed]))
    STORE.parent.mkdir()
    other, waits = Store(STORE), []
    assert other.claim(runner.TIMING)

    def wait(seconds):
        waits.append(len(other.keys()))
        other.close()

    monkeypatch.setattr(runner, "time", types.SimpleNamespace(sleep=wait))
    assert call("reproduce", "tiny", "--seeds", 1).returncode == 0
    assert (waits, len(other.keys())) == ([0], 1), (
        "what was measured was measured after the other had ended"
    )
    assert call("reproduce", "tiny", "--seeds", 1).returncode == 0
    assert waits == [0], "with nothing to measure nobody waits"


@pytest.mark.usefixtures("small")
def test_runs_that_would_take_too_long_are_left_out(call):
    done = call("reproduce", "tiny", "--max-run-minutes", 0, "--json")
    assert done.returncode == 0
    assert "Left out 4 runs of more than 0 minutes." in done.stderr
    assert [cell["runs"] for cell in json.loads(done.stdout)[0]["cells"]] == [[], []]
    assert call("reproduce", "tiny", "--max-run-minutes", 0, "--dry-run").stdout.startswith(
        "0 runs, 0 done"
    )


def test_what_is_begun_is_not_left_out(call, small):
    """An estimate that has changed since must not leave half a run behind."""
    (run, *_), *_ = small.plan("paper", None, Root.find(None))[0].values()
    Path("runs").mkdir()
    state_path(STORE, run.key).write_bytes(b"begun")
    done = call("reproduce", "tiny", "--max-run-minutes", 0, "--json")
    assert "Left out 3 runs of more than 0 minutes." in done.stderr
    assert [len(cell["runs"]) for cell in json.loads(done.stdout)[0]["cells"]] == [1, 0]


@pytest.mark.usefixtures("small")
def test_a_table_in_a_pipe_is_not_cut_and_a_preset_may_be_called_anything(call):
    Path("[").mkdir()
    Path("[/b]t.toml").write_text("[public.citeseer.gcn.ce]\nnum_layers = 2\n")
    done = call("reproduce", "tiny", "--preset", "[/b]t.toml", "--max-run-minutes", 0)
    assert done.returncode == 0, done.stderr
    assert "Tiny (tab:tiny, preset [/b]t.toml, over seeds)" in " ".join(done.stdout.split())


def test_a_run_that_diverges_is_shown_as_such(call, monkeypatch):
    made = tiny()
    ce, enc = made.cells()
    wild = dataclasses.replace(enc, changes=(*enc.changes, ("lr_gnn", 1e30), ("lr", 1e30)))
    monkeypatch.setitem(experiments(), "tiny", dataclasses.replace(made, cells=lambda: [ce, wild]))
    done = call("reproduce", "tiny", "--seeds", 1, "--workers", 1)
    assert done.returncode == 0
    assert "diverged" in done.stdout
    cells = json.loads(call("reproduce", "tiny", "--seeds", 1, "--workers", 1, "--json").stdout)[0][
        "cells"
    ]
    assert [cell["diverged"] for cell in cells] == [0, 1]
    assert cells[1]["gain"] is None


@pytest.mark.long
def test_killed_or_beside_another_it_ends_as_if_undisturbed(call, monkeypatch):
    """kill -9 after the first run; then two at once, of which each run is done by one and both show all."""
    monkeypatch.setitem(experiments(), "tiny", tiny(epochs=15))
    assert (
        call("reproduce", "tiny", "--workers", 1, "--out", "undisturbed", "--quiet").returncode == 0
    )
    victim = start(15, "--workers", 2)
    try:
        until(lambda: victim.poll() is not None or rows())
    finally:
        victim.kill()
        victim.communicate()
    kept = rows(columns="*")
    assert 1 <= len(kept) <= 4
    two = [start(15, "--workers", 1, "--json") for _ in range(2)]
    ended = [(process, *process.communicate(timeout=240)) for process in two]
    assert [process.returncode for process in two] == [0, 0], ended
    for _, out, _ in ended:
        assert [len(cell["runs"]) for cell in json.loads(out)[0]["cells"]] == [2, 2]
    assert rows() == rows(Path("undisturbed/runs.db"))
    assert len(rows()) == 4
    assert set(kept) <= set(rows(columns="*")), "what had ended was run again"
    assert list(Path("runs").glob("*.lock")) == []


@pytest.mark.long
def test_ctrl_c_keeps_what_has_ended_shows_it_and_the_same_command_goes_on():
    process = start(15, "--seeds", 400, "--workers", 2, "--json")
    until(lambda: process.poll() is not None or rows())
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("Ctrl-C did not end the command")
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Interrupted: finished runs are in runs/runs.db. The same command continues." in err
    done = len(rows())
    assert sum(len(cell["runs"]) for cell in json.loads(out)[0]["cells"]) == done >= 1
    assert not any(json.loads(record)["interrupted"] for (record,) in rows(columns="record"))
    assert list(Path("runs").glob("*.lock")) == [], "a claim was not given up"


def test_a_closed_pipe_is_no_error():
    process = start(3, "--dry-run", "--seeds", 2000)
    process.stdout.close()
    process.wait(60)
    assert process.returncode == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert list(Path().iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_nobody_has_to_listen(closed):
    words = [sys.executable, "-c", SCRIPT, "3", "reproduce", "tiny", "--workers", "1"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, len(rows())) == (0, 4)
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.long
def test_nobody_has_to_go_on_listening():
    """2>&1 | head: what is said is lost, what is done is not."""
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-c", SCRIPT, "3", "reproduce", "tiny", "--workers", "1"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=write, text=True, timeout=120)
    refused = subprocess.run(
        [sys.executable, "-m", "everynode", "results", "show", "--store", "nowhere.db"],
        stderr=write,
        timeout=60,
    )
    os.close(write)
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:  # a log on a full disk
            again = subprocess.run(refused.args, stderr=full, timeout=60)
        assert again.returncode == 3
    assert (done.returncode, len(rows())) == (0, 4)
    assert "ENC-GCN" in done.stdout
    assert refused.returncode == 3


def test_the_cheapest_runs_come_first(call, monkeypatch):
    order = []
    monkeypatch.setattr(
        "everynode.experiments.runner.do_runs", lambda runs, *_, **__: order.extend(runs)
    )
    call("reproduce", "depth", "--graphs", "citeseer", "--seeds", 1)
    speed = Speed()
    estimates = [speed.seconds(run) for run in order]
    assert len(order) == 36
    assert len(set(estimates)) == 24  # GCN and GCNII are alike to the model
    assert estimates == sorted(estimates)
    first, last = order[0], order[-1]
    assert (
        first.settings.num_layers,
        first.objective,
        last.settings.num_layers,
        last.objective,
    ) == (2, "ce", 64, "enc")


# ---------------------------------------------------------------------- ogbn-arxiv and its stand-in


def test_without_its_files_arxiv_names_the_stand_in(call, tmp_path, monkeypatch):
    monkeypatch.setenv("EVERYNODE_DATA", str(tmp_path / "empty"))
    done = call("reproduce", "arxiv")
    assert done.returncode == 3
    assert "the files of ogbn-arxiv are not in" in done.stderr
    assert "Or use --stand-in generated for a generated graph." in done.stderr


def test_a_stand_in_says_so_and_shows_nothing_of_the_paper(call, monkeypatch):
    made = experiments()["arxiv"]
    cells = [
        dataclasses.replace(cell, changes=(("epochs", 3), ("hidden_channels", 8)))
        for cell in made.cells()[:2]
    ]
    monkeypatch.setitem(experiments(), "arxiv", dataclasses.replace(made, cells=lambda: cells))
    command = (
        "reproduce",
        "arxiv",
        "--stand-in",
        "generated-200x600x8x4",
        "--seeds",
        2,
        "--workers",
        1,
    )
    assert "A generated stand-in, not real data" in call(*command, "--dry-run").stdout
    shown = call(*command)
    assert shown.returncode == 0, shown.stderr
    assert "A generated stand-in, not real data" in " ".join(shown.stdout.split())
    assert "paper 7" not in shown.stdout
    (table,) = json.loads(call(*command, "--json").stdout)
    assert table["id"] == "arxiv-stand-in"
    assert [(cell["dataset"], cell["published"], len(cell["runs"])) for cell in table["cells"]] == [
        ("generated-200x600x8x4", None, 2)
    ] * 2
    assert all(
        "not real data" in json.loads(record)["stand_in"] for (record,) in rows(columns="record")
    )
    monkeypatch.setenv("EVERYNODE_DATA", "nowhere")
    assert json.loads(call("reproduce", "list", "--json").stdout)[5]["done"] == 0, (
        "its runs were counted as those of ogbn-arxiv"
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--address", "127.0.0.1:6379"), "--address is for a Ray cluster: add --engine ray."),
        (
            ("--engine", "ray", "--address", "127.0.0.1:1"),
            "There is no Ray cluster at 127.0.0.1:1: start one with `ray start --head`",
        ),
        (("--workers", 0), "--workers must be at least 1."),
    ],
)
@pytest.mark.usefixtures("small")
def test_an_engine_that_cannot_be_is_refused(call, flags, words):
    done = call("reproduce", "tiny", *flags, "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("heterophilic --folds 2.5", "Invalid value for --folds: 2.5 is not a whole number."),
        ("depth --workers 1.9", "Invalid value for --workers: 1.9 is not a whole number."),
        ("depth --max-run-minutes nan", "--max-run-minutes must be at least 0."),
        (
            "depth --out notes.txt",
            "--out names a folder, and notes.txt is a file: give --out .",
        ),
    ],
)
def test_what_cannot_be_is_not_made_something_else(call, words, why):
    Path("notes.txt").write_text("mine")
    done = call("reproduce", *words.split(), "--dry-run")
    assert done.returncode == 2
    assert why in done.stderr


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "settings",
    ["[gcn.ce]\nlayrs = 2\n", '[gcn.ce]\nnum_layers = "two"\n', "[gcn.ce\n"],
    ids=["name", "type", "syntax"],
)
def test_a_preset_that_is_wrong_is_not_taken_for_an_empty_one(call, settings):
    Path("wrong.toml").write_text(settings)
    said = {}
    for words in (
        ["reproduce", "heterophilic", "--dry-run"],
        ["report", "runs"],
        ["results", "tables", "t.json"],
    ):
        Store("runs/runs.db")
        done = call(*words, "--preset", "wrong.toml")
        assert done.returncode == 3, words
        said[words[0]] = done.stderr
    assert len(set(said.values())) == 1
    assert "wrong.toml" in said["report"]
