"""Doing runs: each once, however many processes work on a store and however they end."""

from __future__ import annotations

import dataclasses
import logging
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import sklearn.metrics  # noqa: F401 - before processes are forked, or each of them would import it

import everynode.experiments.runner as module
import everynode.training.loop as loop
from everynode.datasets import load, random_split
from everynode.experiments import tasks
from everynode.experiments.compare import BASELINE
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store, state_path
from everynode.graph import Graph
from everynode.training import train
from everynode.training.full_batch import WholeGraph

forking = pytest.mark.skipif(
    sys.platform != "linux",
    reason="counts runs in forked workers, and workers are forked on Linux only",
)


@pytest.fixture
def graphs(graph, make_run) -> Graphs:
    found = Graphs()
    found.add(make_run(), graph)
    return found


@pytest.fixture
def pairs(make_run):
    def make(seeds: int, **changes) -> list[Run]:
        return [
            make_run(seed, objective, **changes)
            for seed in range(seeds)
            for objective in (BASELINE, "enc")
        ]

    return make


def rows_of(path: Path) -> list[tuple]:
    """Everything but what a run took."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT key, specification, record, curve FROM runs ORDER BY key"
        ).fetchall()


@pytest.fixture
def executed(monkeypatch, tmp_path):
    """The keys of the runs that were carried out, in whatever process."""
    log = tmp_path / "executed.log"
    work = module._work

    def logged(run, shared):
        with log.open("a") as file:
            file.write(f"{run.key}\n")
        return work(run, shared)

    logged.__module__, logged.__qualname__ = module.__name__, "_work"  # as which workers look it up
    monkeypatch.setattr(module, "_work", logged)
    return lambda: log.read_text().split() if log.exists() else []


# ---------------------------------------------------------------------- one process


def test_runs_in_the_store_are_not_done_again(pairs, graphs, tmp_path, executed):
    heard = []

    def on_record(run, record, fresh):
        assert record["key"] == run.key
        heard.append(fresh)

    first = do_runs(pairs(2), graphs, Store(tmp_path / "runs.db"), workers=1, on_record=on_record)
    assert executed() == [run.key for run in pairs(2)]
    assert heard == [True] * 4
    again = do_runs(pairs(3), graphs, Store(tmp_path / "runs.db"), workers=1, on_record=on_record)
    assert executed()[4:] == [run.key for run in pairs(3)[4:]]
    assert heard[4:] == [False] * 4 + [True] * 2
    assert again[:4] == first


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_are_done_again_and_until_then_the_old_records_stay(
    pairs, graphs, tmp_path, executed, monkeypatch, workers
):
    store, runs, heard = Store(tmp_path / "runs.db"), pairs(2), []
    for run in runs:
        store.put(run.specification, {"old": True}, {}, {})
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "TASKS", {})  # so that every run fails
        with pytest.raises(KeyError):
            do_runs(runs, graphs, store, workers=workers, again=True)
    assert list(store.records().values()) == [{"old": True}] * 4

    def on_record(run, record, fresh):
        heard.append(fresh)
        assert sum("old" in found for found in store.records().values()) == 4 - len(heard)

    done = len(executed())
    records = do_runs(runs, graphs, store, workers=workers, on_record=on_record, again=True)
    assert (heard, sorted(executed()[done:])) == ([True] * 4, sorted(run.key for run in runs))
    assert {record["key"]: record for record in records} == store.records()


def test_a_run_that_is_done_again_begins_anew_and_leaves_the_state_of_another_time(
    make_run, graphs, tmp_path, monkeypatch
):
    """From that the training goes on with which it began, if this one does not end."""
    run, store, work = make_run(), Store(tmp_path / "runs.db"), module._work
    state, seen = state_path(store.path, run.key), []
    state.write_bytes(b"which is none and would give way")

    def look(run, shared):
        result = work(run, shared)
        seen.append(state.read_bytes())
        return result

    monkeypatch.setattr(module, "_work", look)
    do_runs([run], graphs, store, workers=1, again=True)
    assert seen == [b"which is none and would give way"]
    assert not state.exists(), "what has ended goes on from no state"


def test_a_run_that_is_named_twice_is_done_once(make_run, graphs, tmp_path, executed):
    run = make_run()
    one, two = do_runs(
        [run, dataclasses.replace(run)], graphs, Store(tmp_path / "runs.db"), workers=1
    )
    assert one == two
    assert executed() == [run.key]


def test_records_come_in_the_order_of_the_runs(pairs, graphs, tmp_path):
    store = Store(tmp_path / "runs.db")
    runs = pairs(2)
    do_runs([runs[2]], graphs, store, workers=1)
    records = do_runs(runs, graphs, store, workers=2)
    assert [record["key"] for record in records] == [run.key for run in runs]


def test_several_workers_find_what_one_finds(pairs, graphs, tmp_path):
    for n in (1, 2):
        do_runs(pairs(3), graphs, Store(tmp_path / f"{n}.db"), workers=n)
    assert len(rows_of(tmp_path / "1.db")) == 6
    assert rows_of(tmp_path / "1.db") == rows_of(tmp_path / "2.db")


def test_no_claim_and_no_lock_stays(pairs, graphs, tmp_path):
    do_runs(pairs(1), graphs, Store(tmp_path / "runs.db"), workers=2)
    assert list(tmp_path.glob("*.lock")) == []
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_ended_before_a_failure_is_kept(pairs, graphs, tmp_path, monkeypatch, workers):
    work = module._work

    def fail(run, shared):
        if run.seed == 3:
            started, there = (
                time.monotonic(),
                Store(tmp_path / "runs.db"),
            )  # a connection of this process
            while (
                not all(there.get(run.key) for run in runs[:4]) and time.monotonic() < started + 60
            ):  # however slow the other worker is
                time.sleep(0.01)
            raise RuntimeError("out of luck")
        return work(run, shared)

    fail.__module__, fail.__qualname__ = module.__name__, "_work"
    monkeypatch.setattr(module, "_work", fail)
    store = Store(tmp_path / "runs.db")
    runs = pairs(4)
    with pytest.raises(RuntimeError, match="out of luck"):
        do_runs(runs, graphs, store, workers=workers)
    kept = [store.get(run.key) is not None for run in runs]
    assert kept[:4] == [True] * 4
    assert kept[6:] == [False] * 2
    other = Store(tmp_path / "runs.db")
    assert all(other.claim(run.key) for run in runs[6:]), "a claim outlived the failure"
    other.close()


def test_a_run_that_diverges_does_not_stop_the_others_and_is_not_done_again(
    make_run, graphs, tmp_path, executed
):
    runs = [make_run(0), make_run(1, lr=1e30, lr_gnn=1e30), make_run(2)]
    for _ in range(2):
        records = do_runs(runs, graphs, Store(tmp_path / "runs.db"), workers=1)
        assert ["error" in record for record in records] == [False, True, False]
    assert len(executed()) == 3


def test_ctrl_c_with_one_worker_ends_the_runs_and_keeps_no_half_run(make_run, graphs, tmp_path):
    """The run in hand notices Ctrl-C itself: it must not pass for a finished run, nor the others be carried out."""
    store = Store(tmp_path / "runs.db")
    long = make_run(epochs=100_000, patience=100_000)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            do_runs([long], graphs, store, workers=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert store.get(long.key) is None
    assert store.claim(long.key)
    store.close()


# ---------------------------------------------------------------------- graphs


def test_graphs_are_loaded_once_and_random_splits_are_dropped(monkeypatch, make_run, graph):
    loaded = []

    def fake(name, split, **options):
        loaded.append((name, split, options.get("per_class"), options.get("seed")))
        return graph

    monkeypatch.setattr(module, "load", fake)
    graphs = Graphs("somewhere")
    fixed = [make_run(dataset=name) for name in ("a", "b")]
    drawn = [make_run(dataset="a", split="random", per_class=5, split_seed=i) for i in range(3)]
    graphs.prepare([*fixed, *fixed, *drawn])
    assert [call[:2] for call in loaded] == [("a", "public"), ("b", "public"), ("a", "random")]
    made = [graphs.of(run) for run in (drawn[0], drawn[1], drawn[0], drawn[2], drawn[0])]
    assert made[0] is made[2]
    assert made[0] is not made[4], "more than two random splits were kept"
    for found, seed in zip(made, (0, 1, 0, 2, 0), strict=True):
        assert found.features is graph.features
        assert (
            found.splits[0].train.tolist()
            == random_split(graph.labels, 5, seed=seed).train.tolist()
        )
    assert len(loaded) == 3, (
        "a split was read from files again, which another machine does not have"
    )


def test_graphs_go_to_the_device_except_where_time_is_measured(make_run):
    graphs = Graphs(device="meta")  # the device of this machine that is not its CPU
    run = make_run(dataset="citeseer", split="public")
    assert graphs.of(run).labels.device.type == "meta"
    assert graphs.of(dataclasses.replace(run, task="time")).labels.device.type == "cpu"


def test_a_random_split_is_that_of_load(make_run):
    run = make_run(dataset="citeseer", split="random", per_class=7, split_seed=3)
    assert Graphs().of(run).digest == load("citeseer", "random", per_class=7, seed=3).digest


def test_a_random_split_is_drawn_by_its_own_seed(make_run):
    graphs = Graphs()
    one, two = (
        graphs.of(make_run(dataset="citeseer", split="random", per_class=5, split_seed=i))
        for i in range(2)
    )
    assert len(one.nodes("train")) == len(two.nodes("train")) == 30
    assert one.nodes("train").tolist() != two.nodes("train").tolist()


# ---------------------------------------------------------------------- several processes

FORK = multiprocessing.get_context("fork") if sys.platform == "linux" else None


def start(runs: list[Run], graph: Graph, path: Path, workers: int = 1, **options):
    """A process of its own that does the runs; it exits with 0 if it has the records of all of them."""

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        graphs = Graphs()
        graphs.add(runs[0], graph)
        records = do_runs(runs, graphs, Store(path), workers=workers, **options)
        os._exit(0 if [record["key"] for record in records] == [run.key for run in runs] else 9)

    process = FORK.Process(target=work)
    process.start()
    return process


@pytest.mark.long
@forking
@pytest.mark.parametrize("workers", [1, 2])
def test_two_processes_do_each_run_once_and_both_have_all(
    pairs, graph, tmp_path, executed, workers, monkeypatch
):
    monkeypatch.setattr(module, "POLL", 0.02)
    runs = pairs(5, epochs=20)
    processes = [start(order, graph, tmp_path / "runs.db", workers) for order in (runs, runs[::-1])]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(executed()) == sorted(run.key for run in runs)
    assert list(tmp_path.glob("*.lock")) == []


@pytest.mark.long
@forking
def test_two_processes_that_do_runs_again_do_each_once_for_each(
    pairs, graph, tmp_path, executed, monkeypatch
):
    monkeypatch.setattr(module, "POLL", 0.02)
    runs = pairs(2, epochs=20)
    for run in runs:
        Store(tmp_path / "runs.db").put(run.specification, {"key": "old"}, {}, {})
    processes = [
        start(order, graph, tmp_path / "runs.db", again=True) for order in (runs, runs[::-1])
    ]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(executed()) == sorted(2 * [run.key for run in runs])
    assert Store(tmp_path / "runs.db").keys() == {run.key for run in runs}


@pytest.mark.long
@forking
def test_what_a_killed_process_was_doing_is_taken_over(
    make_run, graph, tmp_path, executed, monkeypatch
):
    monkeypatch.setattr(module, "POLL", 0.02)
    slow = make_run(epochs=400, patience=400)
    first = start([slow], graph, tmp_path / "runs.db")
    while not executed():
        time.sleep(0.01)
    second = start([slow], graph, tmp_path / "runs.db")
    time.sleep(0.2)
    assert executed() == [slow.key], "it was not waited for"
    first.kill()
    first.join()
    second.join(60)
    assert second.exitcode == 0
    assert executed() == [slow.key] * 2
    assert list(tmp_path.glob("*.lock")) == []


@pytest.mark.long
@forking
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_was_killed_goes_on_from_its_last_state(
    make_run, graph, graphs, tmp_path, monkeypatch, workers
):
    """A long run loses the epochs since its last state, not all; and its record is that of one that nobody killed."""
    monkeypatch.setattr(module, "POLL", 0.02)
    monkeypatch.setattr(tasks, "STATE_EVERY", 0.0)
    log, advance = tmp_path / "epochs.log", WholeGraph.advance

    def logged(self, epoch):
        with log.open("a") as file:
            file.write(f"{epoch}\n")
        time.sleep(0.01)  # so that a busy machine sees it in time
        advance(self, epoch)

    runs, path = (
        [make_run(seed, epochs=60, patience=60) for seed in range(workers)],
        tmp_path / "disturbed.db",
    )
    do_runs(runs, graphs, Store(tmp_path / "undisturbed.db"), workers=1)
    monkeypatch.setattr(WholeGraph, "advance", logged)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1.0)
    kills, end = 0, time.monotonic() + 240
    while len(Store(path).keys()) < workers:
        assert time.monotonic() < end, "it does not come to an end"
        begun = len(log.read_text().split()) if log.exists() else 0
        process = start(runs, graph, path, workers)
        while process.is_alive() and (
            not log.exists() or len(log.read_text().split()) < begun + 15
        ):
            time.sleep(0.005)
        kills += process.is_alive()
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    epochs = [int(epoch) for epoch in log.read_text().split()]
    assert kills >= 2
    assert set(epochs) == set(range(60))
    assert len(epochs) <= workers * (60 + 2 * kills), (
        "more than the epoch in hand, and the one whose state was not yet whole, was lost"
    )
    assert rows_of(path) == rows_of(tmp_path / "undisturbed.db")
    assert list(tmp_path.glob("*.state")) == []


def test_a_state_that_outlived_its_run_is_removed(make_run, graphs, tmp_path):
    run, store = make_run(), Store(tmp_path / "runs.db")
    do_runs([run], graphs, store, workers=1)
    left = state_path(store.path, run.key)
    left.write_bytes(b"killed before this was removed")
    do_runs([run], graphs, store, workers=1)
    assert not left.exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_states_of_no_use_give_way(make_run, graph, graphs, tmp_path, capfd, monkeypatch, workers):
    """Damaged ones, and those of a training that an upgrade or a change of settings made another: none may stop the others."""
    runs, path = [make_run(seed) for seed in range(3)], tmp_path / "runs.db"
    do_runs(runs, graphs, Store(tmp_path / "undisturbed.db"), workers=1)
    state_path(path, runs[0].key).write_bytes(b"no state")
    train(graph, runs[0].settings, seed=7, checkpoint=state_path(path, runs[1].key))
    capfd.readouterr()
    monkeypatch.setattr(
        logging.getLogger("everynode"), "handlers", [logging.StreamHandler(sys.__stderr__)]
    )
    do_runs(runs, graphs, Store(path), workers=workers)
    assert rows_of(path) == rows_of(tmp_path / "undisturbed.db")
    assert list(tmp_path.glob("*.state")) == []
    said = [
        line
        for line in capfd.readouterr().err.splitlines()
        if line.endswith("training starts over.")
    ]
    assert sorted(line.partition(" is ")[0] for line in said) == sorted(
        str(state_path(path, run.key)) for run in runs[:2]
    )


def test_runs_on_other_machines_keep_no_state_here(make_run, graphs, tmp_path):
    seen = []

    def elsewhere(work, jobs, shared, *, workers, at_most):
        seen.append(shared.store)
        return ((job, work(job, shared)) for job in jobs)

    do_runs([make_run()], graphs, Store(tmp_path / "runs.db"), engine=elsewhere)
    assert seen == [None]


@pytest.mark.long
@forking
def test_killed_at_any_moments_it_ends_as_if_undisturbed(
    pairs, graph, graphs, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "POLL", 0.02)
    runs = pairs(6, epochs=80)  # long enough for kills to hit on a fast machine
    do_runs(runs, graphs, Store(tmp_path / "undisturbed.db"), workers=1)
    moments = random.Random(5)
    path = tmp_path / "disturbed.db"
    left = [0]
    for attempt in range(6):
        process = start(runs, graph, path, workers=1 + attempt % 2)
        more = moments.choice([0, 1, 2])
        end = time.monotonic() + 10
        while (
            len(Store(path).keys()) < left[-1] + more
            and process.is_alive()
            and time.monotonic() < end
        ):
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.15))
        process.kill()
        process.join()
        left.append(len(Store(path).keys()))
    assert left[-1] > 2
    assert left[3] < 12, "the kills hit nothing"
    process = start(runs, graph, path, workers=2)
    process.join(60)
    assert process.exitcode == 0
    assert len(rows_of(path)) == 12
    assert rows_of(path) == rows_of(tmp_path / "undisturbed.db")
