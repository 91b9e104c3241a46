"""Two processes: the gradient of the union of their batches, one checkpoint, and a clear end when one is killed."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from everynode.errors import EverynodeError
from everynode.training.distributed import LOST, Ranks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found under /proc")

#: Prints the terms and the gradient of one step, whatever the number of processes that share it.
ONE_STEP = """
import json, sys
import numpy as np, torch
from everynode.graph import Graph, Split
from everynode.batches import Batches
from everynode.settings import Settings
from everynode.training.distributed import process_group
from everynode.training.mini_batch.work import Batched

def graph(train):
    rng = np.random.default_rng(0)
    parts = torch.from_numpy(rng.permutation(50)).split([train, 10, 40 - train])
    edges = rng.integers(0, 50, (2, 120))
    return Graph.from_arrays(rng.normal(size=(50, 6)), edges, np.arange(50) % 3, splits=[Split(*parts)]).to(torch.float64)

found = []
with process_group() as ranks:
    torch.set_num_threads(1)
    for train, size in ((13, 26), (13, 12), (1, 20)):  # the last: one process has no training node
        for backbone in ("gcn", "gat", "gcnii"):
            weighted = {"class_weight": "balanced", "monitor": "macro_f1"} if backbone == "gcn" else {}
            settings = Settings(backbone=backbone, hidden_channels=4, dropout=0.0, layer_dropout=0.0, cvg=0.8, mi=0.5, mi_lambda=2.0, **weighted)
            work = Batched(graph(train), settings, Batches(size // ranks.size, (-1,), tv_edges=-1), fold=0, seed=1, ranks=ranks)
            generator = torch.Generator().manual_seed(5)
            for p in work.network.parameters():
                p.data += 0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype)
            work.optimizer = torch.optim.SGD(work.network.parameters(), lr=0.0)
            for step in range(min(2, work.steps)):
                work.advance(0)
            gradient = torch.cat([p.grad.reshape(-1) for p in work.network.parameters()])
            found.append([work.sums, gradient.tolist(), work.objective.terms["mi"].marginal.tolist(), work.validate()])
    if ranks.first:
        print(json.dumps(found))
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d",
            "--rdzv-endpoint", "localhost:0"]  # fmt: skip


def run(words: list[str], timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.long
def test_two_processes_have_the_gradient_of_the_union(tmp_path, capsys):
    script = tmp_path / "one_step.py"
    script.write_text(ONE_STEP)
    together = run([*TORCHRUN, str(script)])
    assert together.returncode == 0, together.stderr
    runpy.run_path(str(script))
    alone = json.loads(capsys.readouterr().out)
    for (terms, gradient, marginal, row), (terms_2, gradient_2, marginal_2, row_2) in zip(
        alone, json.loads(together.stdout), strict=True
    ):
        assert terms_2 == pytest.approx(terms, abs=1e-11)
        assert set(terms) == {"ce", "mi", "tv", "cvg", "total"}
        torch.testing.assert_close(
            torch.tensor(gradient_2), torch.tensor(gradient), rtol=1e-9, atol=1e-11
        )
        assert max(map(abs, gradient)) > 1e-3
        assert marginal_2 == pytest.approx(marginal, abs=1e-12)
        assert row_2 == pytest.approx(row, abs=1e-12)


#: With a checkpoint after every step, so that there is one to be found.
EAGER = """
import everynode.experiments.tasks as tasks
from everynode.cli import main
assert "checkpoint_every" in tasks.train_run.__kwdefaults__
tasks.train_run.__kwdefaults__["checkpoint_every"] = 0.0
main()
"""
TRAIN = [
    "train",
    "citeseer",
    "--batch-size",
    "32",
    "--fan-out",
    "3",
    "--epochs",
    "25",
    "--hidden-channels",
    "8",
]


@pytest.mark.long
def test_a_killed_worker_ends_the_job_and_the_same_command_goes_on(elsewhere, tmp_path):
    script = tmp_path / "eager.py"
    script.write_text(EAGER)
    state = Path("model/training.safetensors")
    command = [*TORCHRUN, str(script), *TRAIN, "--out", "model"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 200
        while not state.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        assert state.exists(), (
            process.stderr.read() if process.poll() is not None else "no checkpoint"
        )
        os.kill(worker(process.pid, rank=1), signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
    assert process.returncode != 0
    assert f"everynode: {LOST}" in said
    assert "everynode.errors" not in said, "a traceback of everynode's own"
    assert not Path("model/model.json").exists()
    again = run([*TORCHRUN, "-m", "everynode", *TRAIN, "--out", "model"])
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(f"Continuing from {state}.") == 1
    assert sorted(path.name for path in Path("model").iterdir()) == [
        "model.json",
        "model.safetensors",
        "run.json",
    ]
    assert again.stdout.count("validation accuracy") == 1, "one process tells"


def worker(parent: int, rank: int) -> int:
    """The process of this rank among the descendants of a process."""
    found = [parent]
    for pid in found:
        found += [
            int(child)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
        if pid != parent and f"RANK={rank}" in Path(f"/proc/{pid}/environ").read_text().split("\0"):
            return pid
    raise AssertionError(f"there is no process of rank {rank}")


def test_processes_without_batches_are_refused(elsewhere, call, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = call("train", "citeseer", "--out", "model")
    assert done.returncode == 2
    assert done.stderr.endswith("train in mini-batches: give --batch-size.\n")
    assert not Path("model").exists()


def test_one_process_needs_nobody():
    alone = Ranks()
    assert alone.first
    assert alone.any(True)
    assert not alone.any(False)
    alone.agree_on("anything", 7)
    assert alone.add_up(torch.ones(2)).tolist() == [1.0, 1.0]


def test_processes_that_do_not_agree_are_refused(monkeypatch):
    pair = Ranks(0, 2)
    monkeypatch.setattr(
        pair, "add_up", lambda tensor: tensor.add_(3)
    )  # the other has 3 where this one has 5
    with pytest.raises(
        EverynodeError, match="do not have the same graph: start all with one command and one --out"
    ):
        pair.agree_on("graph", 5)
