"""The package works where a module of Unix is missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "everynode"

HIDDEN = """
import sys, warnings
for name in ("fcntl", "resource"):
    sys.modules[name] = None
warnings.filterwarnings("ignore", message="only soft file lock is available")
"""
TINY = """
import everynode
everynode.NodeClassifier, everynode.training
from everynode.datasets import generate
import everynode.cli, everynode.experiments.store, everynode.selection.study_storage
result = everynode.train(generate(40, 80, 4, 2), everynode.Settings(hidden_channels=4, epochs=2))
from pathlib import Path
from everynode.storage.owner import Owner, lives
from everynode.training.checkpoint import load_model, save_model
save_model("model", result)
assert load_model("model")[1]["epochs"] == 2
owner = Owner(Path("runs.db"))
assert lives(Path("runs.db"), owner.name)
owner.close()
assert not lives(Path("runs.db"), owner.name)
assert sorted(path.name for path in Path(".").iterdir()) == ["model"]
"""


def test_without_fcntl_and_resource_a_model_is_trained(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HIDDEN + TINY]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr


def test_importing_everynode_needs_no_locks(tmp_path: Path) -> None:
    hidden = HIDDEN.replace('("fcntl", "resource")', '("fcntl", "resource", "filelock", "torch")')
    command = [sys.executable, "-c", hidden + "import everynode; everynode.Settings()"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr


def test_no_module_imports_what_other_systems_lack() -> None:
    for file in SOURCE.rglob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines()
        for line in lines:
            assert not line.startswith(("import fcntl", "import resource")), file
            assert "unittest.mock" not in line, file


def test_rows_are_read_and_written_without_preadv(tmp_path: Path) -> None:
    code = """
import os
for name in ("preadv", "pwrite", "pread"):
    delattr(os, name) if hasattr(os, name) else None
import numpy as np, tempfile
from everynode.graph.matrix_rows import FileRows
with tempfile.TemporaryFile() as file:
    rows = FileRows(file, (9, 3), np.float32, offset=5)
    x = np.arange(27, dtype=np.float32).reshape(9, 3)
    rows.write(0, x)
    rows.write(4, x[:2])
    x[4:6] = x[:2]
    assert (rows.read(np.array([8, 4, 5, 0])) == x[[8, 4, 5, 0]]).all()
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr


SPAWN = """
import multiprocessing, os
from everynode import Settings, train
from everynode.datasets import generate
from everynode.training import process_pool


def train_seed(seed, graph):
    fitted = train(graph, Settings(hidden_channels=4, epochs=2), seed=seed)
    return os.getpid(), fitted.history["total"]


if __name__ == "__main__":
    class Elsewhere:  # what differs from Linux: the system's name, and with it the start method
        platform = "darwin"

    process_pool.sys = Elsewhere
    graph = generate(40, 80, 4, 2)
    results = dict(process_pool.run_many(train_seed, range(2), graph, workers=2))
    assert os.getpid() not in {pid for pid, _ in results.values()}
    for seed, (_, losses) in results.items():
        assert losses == train_seed(seed, graph)[1]
"""


def test_the_pool_works_with_spawned_processes(tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(HIDDEN + SPAWN)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=180
    )
    assert done.returncode == 0, done.stderr
