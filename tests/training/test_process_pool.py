"""Many runs at once: the same results as one after the other, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from everynode.errors import DataError, EverynodeError
from everynode.graph import Graph, Split
from everynode.machine import cores
from everynode.settings import Settings
from everynode.training import train
from everynode.training.process_pool import run_many

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="workers are forked, and /proc is there, on Linux only"
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    n = 60
    parts = torch.from_numpy(rng.permutation(n)).split([15, 20, 25])
    split = Split(*(p.sort().values for p in parts))
    return Graph.from_arrays(
        rng.normal(size=(n, 5)), rng.integers(0, n, (2, 3 * n)), np.arange(n) % 3, splits=[split]
    )


def children(of: int) -> list[int]:
    """The living children of a process."""
    try:
        return [
            int(pid)
            for path in Path(f"/proc/{of}/task").glob("*/children")
            for pid in path.read_text().split()
        ]
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(condition, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def train_seed(seed: int, graph: Graph):
    fitted = train(graph, Settings(hidden_channels=8, epochs=6), seed=seed)
    return (
        {name: value.numpy() for name, value in fitted.network.state_dict().items()},
        fitted.history,
        torch.get_num_threads(),
        os.getpid(),
    )


def test_results_are_those_of_one_after_the_other(graph):
    serial = dict(run_many(train_seed, range(4), graph, workers=1))
    spread = dict(run_many(train_seed, range(4), graph, workers=2))
    assert list(serial) == [0, 1, 2, 3]
    assert set(spread) == set(serial)
    for seed, (weights, history, threads, pid) in spread.items():
        assert history == serial[seed][1]
        assert all((value == serial[seed][0][name]).all() for name, value in weights.items())
        assert threads == 1
        assert pid != os.getpid()
    assert all(pid == os.getpid() for *_, pid in serial.values())


def nap(seconds: float, shared) -> float:
    time.sleep(seconds)
    return seconds * shared


def test_results_come_in_the_order_in_which_they_end():
    found = list(run_many(nap, [1.0, 0.01], 2, workers=2))
    assert found == [(0.01, 0.02), (1.0, 2.0)]


def test_no_jobs_no_workers():
    assert list(run_many(nap, [], None, workers=2)) == []


def test_there_is_at_least_one_core():
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_one_worker_gives_the_threads_back():
    torch.set_num_threads(2)
    assert [
        threads
        for _, threads in run_many(
            lambda job, shared: torch.get_num_threads(), [0], None, workers=1
        )
    ] == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_is_taken_only_when_a_worker_is_free(workers, tmp_path):
    """One more in line would be claimed from the store, and a worker of another process might be free for it."""
    taken = []

    def jobs():
        for job in range(8):
            ended = len(list(tmp_path.iterdir()))
            assert job < ended + workers, "a job was taken that nobody was ready for"
            taken.append(job)
            yield job

    assert len(list(run_many(leave_a_mark, jobs(), tmp_path, workers=workers))) == 8
    assert taken == list(range(8))


def leave_a_mark(job: int, folder: Path) -> None:
    time.sleep(0.02)
    (folder / str(job)).touch()


@pytest.mark.long
def test_a_worker_is_not_left_idle_whose_job_ends_while_another_is_taken(tmp_path):
    def jobs():
        yield from range(2)
        (tmp_path / "asked").touch()
        assert until((tmp_path / "0").exists)
        time.sleep(0.5)  # for the pool to hear of it
        yield from range(2, 4)

    assert sorted(job for job, _ in run_many(until_another, jobs(), tmp_path, workers=2)) == [
        0,
        1,
        2,
        3,
    ]


def until_another(job: int, folder: Path) -> None:
    """Job 0 ends while job 2 is taken, and job 2 once job 3 has begun, for which the worker of job 0 is free."""
    if job == 0:
        assert until((folder / "asked").exists)
    (folder / str(job)).touch()
    if job == 2:
        assert until((folder / "3").exists), "a worker was idle"


def double(job: int, shared) -> int:
    return 2 * job


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_among_the_jobs_comes_through_and_ends_the_workers(workers):
    def jobs():
        yield 0
        yield 1
        yield 2
        yield 3
        raise DataError("there is no fifth job")

    before = children(os.getpid())
    found = run_many(double, jobs(), None, workers=workers)
    assert next(found)[0] in range(4)
    with pytest.raises(DataError, match="no fifth job"):
        list(found)
    assert until(
        lambda: not [pid for pid in children(os.getpid()) if pid not in before and alive(pid)]
    )


@pytest.mark.long
@pytest.mark.parametrize("what", [DataError, KeyboardInterrupt])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_has_ended_comes_out_before_an_exception_among_the_jobs(workers, what, tmp_path):
    def jobs():
        yield from range(2)
        assert until(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)  # for the pool to hear of both
        raise what("the store is locked, say, or Ctrl-C")

    found = run_many(leave_a_mark, jobs(), tmp_path, workers=workers)
    assert {next(found)[0], next(found)[0]} == {0, 1}
    with pytest.raises(what):
        next(found)


def who(job: int, shared) -> int:
    return os.getpid()


@linux
def test_there_are_no_more_workers_than_jobs():
    assert [pid for _, pid in run_many(who, iter([0]), None, workers=2, at_most=1)] == [os.getpid()]
    assert [pid for _, pid in run_many(who, [0], None, workers=2)] == [os.getpid()]
    unknown = [pid for _, pid in run_many(who, iter([0]), None, workers=2)]
    assert unknown != [os.getpid()]
    assert len({pid for _, pid in run_many(who, iter(range(12)), None, workers=8, at_most=3)}) <= 3


def test_no_jobs_from_an_iterator():
    assert list(run_many(double, iter([]), None, workers=2)) == []
    assert list(run_many(double, iter([]), None, workers=2, at_most=0)) == []


def refuse(job: int, shared) -> int:
    if job == 3:
        raise DataError("job three cannot be done")
    return job


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_comes_through_and_ends_the_workers(workers):
    before = children(os.getpid())
    with pytest.raises(DataError, match="job three cannot be done"):
        list(run_many(refuse, range(8), None, workers=workers))
    assert until(
        lambda: not [pid for pid in children(os.getpid()) if pid not in before and alive(pid)]
    )


@pytest.mark.long
@pytest.mark.parametrize("bad", [0, 1])
def test_what_ended_well_beside_an_exception_comes_out_first(bad, tmp_path):
    def jobs():
        yield from range(2)  # both have ended when the next one is asked for
        assert until(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)

    found = run_many(refuse_one, jobs(), (tmp_path, bad), workers=2)
    assert next(found) == (1 - bad, 1 - bad)
    with pytest.raises(DataError, match=f"job {bad} cannot be done"):
        next(found)


def refuse_one(job: int, shared: tuple[Path, int]) -> int:
    folder, bad = shared
    (folder / str(job)).touch()
    if job == bad:
        assert until((folder / str(1 - bad)).exists)
        time.sleep(0.3)  # the other one has ended by then
        raise DataError(f"job {bad} cannot be done")
    return job


def die(job: int, shared) -> int:
    if job == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_a_killed_worker_is_one_clear_sentence():
    with pytest.raises(EverynodeError, match=r"worker process was killed .*--workers 1") as caught:
        list(run_many(die, range(4), None, workers=2))
    assert "\n" not in str(caught.value)


def die_second(job: int, folder: Path) -> int:
    if job == 1:
        until((folder / "first has ended").exists)
        os.kill(os.getpid(), signal.SIGKILL)
    return job


@pytest.mark.long
@linux
def test_a_worker_that_is_killed_while_a_job_is_taken_costs_no_result(tmp_path):
    """The pool then refuses the job, where the exception was a traceback; and what had ended was lost."""
    before = children(os.getpid())

    def jobs():
        yield from range(2)
        (tmp_path / "first has ended").touch()
        assert until(
            lambda: not [pid for pid in children(os.getpid()) if pid not in before and alive(pid)]
        )
        time.sleep(0.5)  # for the pool to see it
        yield 2

    results = run_many(die_second, jobs(), tmp_path, workers=2)
    assert next(results) == (0, 0)
    with pytest.raises(EverynodeError, match=r"worker process was killed .*--workers 1"):
        next(results)


@linux
def test_stopping_early_ends_the_workers():
    before = children(os.getpid())
    jobs = run_many(nap, [0.01, 60.0, 60.0], 1, workers=2)
    assert next(jobs) == (0.01, 0.01)
    started = time.monotonic()
    jobs.close()
    assert time.monotonic() - started < 5
    assert until(
        lambda: not [pid for pid in children(os.getpid()) if pid not in before and alive(pid)]
    )


class Unpicklable:
    """Stands for the graph: workers must see it without its being sent to them."""

    value = 42

    def __reduce__(self):
        raise AssertionError("the shared object was pickled")


def look(job: int, shared: Unpicklable) -> int:
    return shared.value + job


def plugin_paths(job: int, shared: None) -> str | None:
    return os.environ.get("EVERYNODE_PLUGINS")


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_know_the_plugins(monkeypatch, workers):
    monkeypatch.setenv("EVERYNODE_PLUGINS", "/somewhere/my_terms.py")
    paths = dict(run_many(plugin_paths, range(2), None, workers=workers))
    assert set(paths.values()) == {"/somewhere/my_terms.py"}


@linux
def test_the_shared_graph_is_not_sent_to_the_workers():
    assert dict(run_many(look, range(3), Unpicklable(), workers=2)) == {0: 42, 1: 43, 2: 44}


PARENT = """
import os, sys, time
from pathlib import Path
from everynode.training.process_pool import run_many

def work(job, folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)

if __name__ == "__main__":
    list(run_many(work, range(4), sys.argv[1], workers=2))
"""


@pytest.mark.long
@linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, how):
    pids = tmp_path / "pids"
    pids.mkdir()
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(pids)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert until(lambda: len(list(pids.iterdir())) == 2, 30), "the workers did not start"
        workers = [int(path.name) for path in pids.iterdir()]
        assert all(alive(pid) for pid in workers)
        parent.send_signal(how)
        parent.wait(20)
        assert until(lambda: not any(alive(pid) for pid in workers)), "a worker outlived its parent"
    finally:
        if parent.poll() is None:
            parent.kill()
            parent.wait()


def test_one_worker_leaves_the_caller_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _, threads in run_many(
            lambda job, shared: torch.get_num_threads(), range(2), None, workers=1
        ):
            assert (threads, torch.get_num_threads()) == (1, 2)
    finally:
        torch.set_num_threads(before)
