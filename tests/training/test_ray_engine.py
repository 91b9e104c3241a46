"""Many runs on a Ray cluster of two nodes on this machine: what one process finds, each once, also when a node is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from everynode.datasets import generate
from everynode.errors import EverynodeError, UsageError
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.selection.study import Study
from everynode.selection.study_storage import Journal
from everynode.selection.tuning import tune
from everynode.settings import Settings
from everynode.training import ray_engine
from everynode.training.ray_engine import run_on_ray

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'everynode[ray]'"),
    pytest.mark.skipif(sys.platform != "linux", reason="a Ray cluster on one machine, and signals"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]


#: One CPU, bound to this machine.
NODE = {
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
    "object_store_memory": 80 * 1024**2,
    "num_cpus": 1,
}


@pytest.fixture(scope="module")
def cluster():
    """Two such nodes, and one connection for all tests: with it workers go on, where a new one would start its own."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = (
        "0"  # or Ray, once imported, looks for it at this machine's outer address
    )
    import ray
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(
        sys.modules[__name__]
    )  # what is not installed on the nodes is sent to them
    made = Cluster(initialize_head=True, head_node_args=NODE)
    made.add_node(**NODE)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def where(job: int, shared: list[str]) -> tuple[int, str, int]:
    import ray
    import torch

    time.sleep(0.3)
    return job * len(shared), ray.get_runtime_context().get_node_id(), torch.get_num_threads()


def plugin_paths(job: int, shared: None) -> str | None:
    return os.environ.get("EVERYNODE_PLUGINS")


def test_workers_know_the_plugins(cluster, monkeypatch):
    monkeypatch.setenv("EVERYNODE_PLUGINS", "/somewhere/my_terms.py")
    assert dict(run_on_ray(plugin_paths, [0], None)) == {0: "/somewhere/my_terms.py"}
    monkeypatch.delenv("EVERYNODE_PLUGINS")
    assert dict(run_on_ray(plugin_paths, [0], None)) == {0: None}


def test_jobs_are_done_on_both_nodes(cluster):
    found = dict(run_on_ray(where, range(6), ["a", "b"]))
    assert {job: value for job, (value, _, _) in found.items()} == {
        job: 2 * job for job in range(6)
    }
    assert len({node for _, node, _ in found.values()}) == 2
    assert {threads for *_, threads in found.values()} == {1}
    assert sys.modules["ray"].is_initialized(), "it closed a connection that is not its own"


def fail(job: int, shared: None) -> int:
    if job == 2:
        raise EverynodeError("job two cannot be done")
    return job


def test_an_exception_comes_through_as_itself(cluster):
    with pytest.raises(EverynodeError, match=r"^job two cannot be done$"):
        list(run_on_ray(fail, range(8), None))


def test_a_machine_that_lacks_a_module_is_told_of_in_one_sentence(cluster, tmp_path, monkeypatch):
    path = tmp_path / "only_here.py"
    path.write_text("def work(job, shared): ...")
    spec = spec_from_file_location("only_here", path)
    only_here = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    spec.loader.exec_module(only_here)
    with pytest.raises(
        UsageError,
        match=r"^A machine of the Ray cluster has no only_here: install everynode there as here\.$",
    ):
        list(run_on_ray(only_here.work, [0], None))


def die(job: int, shared: str) -> int:
    """Kill the own worker: at every try for job 1, at the first only for job 0."""
    tries = Path(shared, str(job))
    with tries.open("a") as file:
        file.write("x")
    if job == 1 or (job == 0 and len(tries.read_text()) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_a_lost_job_is_done_again_but_not_for_ever(cluster, tmp_path, monkeypatch):
    assert dict(run_on_ray(die, [0, 2, 3], str(tmp_path))) == {0: 0, 2: 2, 3: 3}
    assert [len((tmp_path / str(job)).read_text()) for job in (0, 2, 3)] == [2, 1, 1]
    monkeypatch.setattr(ray_engine, "CHANCES", 2)
    with pytest.raises(EverynodeError, match="lost with its worker 2 times") as caught:
        list(run_on_ray(die, [1], str(tmp_path)))
    assert "\n" not in str(caught.value)
    assert len((tmp_path / "1").read_text()) == 2


def test_stopping_early_ends_the_jobs(cluster, tmp_path):
    jobs = run_on_ray(linger, [0, 1, 2], str(tmp_path))
    assert next(jobs)[0] == 0
    until(lambda: len(list(tmp_path.iterdir())) >= 2)
    jobs.close()
    pids = [int(path.read_text()) for path in tmp_path.iterdir() if path.name != "0"]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def linger(job: int, shared: str) -> int:
    path = Path(shared, f".{job}")
    path.write_text(str(os.getpid()))
    path.rename(Path(shared, str(job)))
    time.sleep(60 if job else 0)
    return job


def test_what_has_ended_comes_out_before_an_exception_among_the_jobs(cluster, tmp_path):
    def jobs():
        yield from range(2)
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)  # for Ray to hear of both
        raise EverynodeError("the store is locked")

    found = run_on_ray(leave_a_mark, jobs(), str(tmp_path))
    assert {next(found)[0], next(found)[0]} == {0, 1}
    with pytest.raises(EverynodeError, match=r"^the store is locked$"):
        next(found)


def leave_a_mark(job: int, shared: str) -> None:
    Path(shared, str(job)).touch()


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_nothing_to_do_is_no_reason_to_connect():
    assert list(run_on_ray(fail, iter([]), None, address="127.0.0.1:1")) == []


def test_without_ray_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"--engine ray needs ray: pip install 'everynode\[ray\]'"):
        list(run_on_ray(fail, [0], None))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "nowhere.invalid:6379", "nonsense", "ray://127.0.0.1:1"]
)
def test_no_cluster_is_one_sentence_at_once(address):
    started = time.monotonic()
    with pytest.raises(
        UsageError, match=f"There is no Ray cluster at {address}: start one"
    ) as caught:
        list(run_on_ray(fail, [0], None, address=address))
    assert "\n" not in str(caught.value)
    assert time.monotonic() - started < 30


def rows_of(path: Path) -> list[tuple]:
    """Everything but what a run took."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT key, specification, record, curve FROM runs ORDER BY key"
        ).fetchall()


def test_the_command_finds_what_it_finds_on_this_machine(cluster, call, tmp_path, monkeypatch):
    """In a process of its own with Ctrl-C to end it, then in this one to go on: the store is that of local workers."""
    monkeypatch.chdir(tmp_path)
    compare = (
        "compare",
        "citeseer",
        "--hidden-channels",
        8,
        "--epochs",
        12,
        "--seeds",
        2,
        "--quiet",
        "--json",
        "--split",
        "random",
    )
    on_ray = (*compare, "--engine", "ray", "--address", cluster.address, "--out", "far")
    first = subprocess.Popen(
        [sys.executable, "-m", "everynode", *map(str, on_ray)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(
        lambda: (
            first.poll() is not None
            or (Path("far/runs.db").exists() and Store("far/runs.db").keys())
        )
    )
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=60)
    kept = rows_of(Path("far/runs.db"))
    assert (first.returncode, b"Traceback" in err) in ((130, False), (0, False)), (out, err)
    assert list(Path("far").glob("*.lock")) == [], "a claim was not given up"
    assert len(kept) >= 1
    far, near = call(*on_ray), call(*compare, "--workers", 1, "--out", "near")
    assert (far.returncode, near.returncode) == (0, 0), far.stderr
    assert rows_of(Path("far/runs.db")) == rows_of(Path("near/runs.db"))
    assert set(kept) <= set(rows_of(Path("far/runs.db")))
    assert json.loads(far.stdout)["summary"] == json.loads(near.stdout)["summary"]


def test_tune_finds_what_it_finds_on_this_machine(cluster, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = (
        "tune",
        "citeseer",
        "--objective",
        "ce",
        "--hidden-channels",
        4,
        "--epochs",
        3,
        "--seeds",
        1,
        "--trials",
        4,
        "--quiet",
        "--json",
    )
    far = call(*command, "--engine", "ray", "--address", cluster.address, "--out", "far")
    near = call(*command, "--workers", 1, "--out", "near")
    assert (far.returncode, near.returncode) == (0, 0), far.stderr
    found, expected = (json.loads(done.stdout) | {"seconds": None} for done in (far, near))
    assert found == expected
    assert found["trials"] == 4


def test_a_node_is_killed_midway_and_every_run_is_done_once(cluster, tmp_path):
    graph = generate(60, 180, 5, 3)
    settings = Settings(hidden_channels=8, epochs=30)
    runs = [
        Run("toy", graph.digest, "public", 0, seed, "default", "enc", settings) for seed in range(8)
    ]
    graphs = Graphs()
    graphs.add(runs[0], graph)
    do_runs(runs, graphs, Store(tmp_path / "near.db"), workers=1)
    doomed = cluster.add_node(**NODE)
    log, heard = tmp_path / "log", []

    def engine(work, jobs, shared, **options):
        return run_on_ray(until_the_end, jobs, (work, shared, str(log), doomed.node_id), **options)

    def on_record(run, record, fresh):
        heard.append((run.key, fresh))
        if len(heard) == 1:  # so the doomed node has a run in hand
            cluster.remove_node(doomed, allow_graceful=False)

    do_runs(runs, graphs, Store(tmp_path / "far.db"), engine=engine, on_record=on_record)
    assert sorted(heard) == sorted((run.key, True) for run in runs), (
        "a run was recorded twice, or not at all"
    )
    assert rows_of(tmp_path / "far.db") == rows_of(tmp_path / "near.db")
    nodes = log.read_text().split()
    assert len(nodes) == len(runs) + 1, "the lost run was not done again, or others were"
    assert len(set(nodes)) == 3


def test_a_node_is_killed_midway_and_the_study_is_that_of_one_process(cluster, tmp_path):
    graph = generate(60, 180, 5, 3)
    space = {
        "lr": {"low": 0.001, "high": 0.1, "log": True},
        "normalize_features": {"choices": [True, False]},
    }
    study = Study(
        "toy",
        graph.digest,
        "public",
        "gcn",
        "ce",
        "seeds",
        2,
        Settings(hidden_channels=4, epochs=10),
        space,
    )
    near, far = (Journal(tmp_path / f"{name}.journal", study) for name in ("near", "far"))
    tune(
        near, graph, 6, workers=1
    )  # not so many that a draw depends on what others have found by then
    doomed = cluster.add_node(**NODE)
    log, heard = tmp_path / "log", []

    def engine(work, jobs, shared, **options):
        return run_on_ray(until_the_end, jobs, (work, shared, str(log), doomed.node_id), **options)

    def on_trial():
        heard.append(len(far.ended()))
        if len(heard) == 1:
            cluster.remove_node(doomed, allow_graceful=False)

    tune(far, graph, 6, engine=engine, on_trial=on_trial)
    assert heard == [1, 2, 3, 4, 5, 6]
    assert [trials_of(far), len(far.optuna.trials)] == [trials_of(near), 6]
    assert len(log.read_text().split()) == 7, "the lost trial was not done again, or others were"


def trials_of(journal: Journal) -> list[tuple]:
    """Everything but what a trial took."""
    return [
        (t.number, t.params, t.value, t.intermediate_values, t.user_attrs["losses"])
        for t in journal.ended()
    ]


def until_the_end(job, shared):
    """Do a run, or a trial; on the doomed node never end it, elsewhere wait until that one has started its own."""
    import ray

    work, shared, log, doomed = shared
    here = ray.get_runtime_context().get_node_id()
    with Path(log).open("a") as file:
        file.write(f"{here}\n")
    if here == doomed:
        time.sleep(600)
    until(lambda: doomed in Path(log).read_text())
    return work(job, shared)
