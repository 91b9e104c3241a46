"""Commands for kills and full disks: each writes a folder whose results can be compared."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

#: One core for each process, and no progress bars.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SMALL = ("--epochs", "12", "--hidden-channels", "8")
FILES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "label")
#: The arguments of each command. They run in a folder of :func:`prepare`.
COMMANDS: dict[str, tuple[str, ...]] = {
    "fit": ("fit", *FILES, "--effort", "quick", "--time-limit", "1h", *SMALL, "--out", "out"),
    "fit, two workers": (
        "fit", *FILES, "--effort", "quick", "--time-limit", "1h", "--workers", "2", *SMALL,
        "--out", "out",
    ),
    "train": ("train", "citeseer", *SMALL, "--out", "out"),
    "compare": ("compare", "citeseer", "--seeds", "2", *SMALL, "--workers", "1", "--out", "out"),
    "compare, two workers": (
        "compare", "citeseer", "--seeds", "2", *SMALL, "--workers", "2", "--out", "out",
    ),
    "tune": ("tune", "citeseer", "--trials", "3", "--seeds", "1", *SMALL, "--out", "out"),
    "predict": ("predict", "model", *FILES[:4], "--out", "out/predictions.csv"),
    "results export": ("results", "export", "out/runs.csv", "--store", "runs.db"),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Write a small graph, a model and a store of runs for the commands."""
    folder.mkdir(parents=True)
    chance = random.Random(0)
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "label"])
        writer.writerows(
            [i, chance.randrange(20) + 20 * (i % 2), "ab"[i % 2] if i % 5 else ""]
            for i in range(90)
        )
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows(
            [i, (i + 2 * chance.randrange(1, 9)) % 90] for i in range(90) for _ in "ab"
        )
    for words in (
        ("fit", *FILES, "--backbone", "gcn", "--objective", "ce", *SMALL, "--out", "fitted"),
        ("compare", "citeseer", "--seeds", "1", *SMALL, "--workers", "1", "--out", "compared"),
    ):
        done = run(words, folder)
        if done.returncode:
            raise RuntimeError(f"{words} failed: {done.stderr}")
    shutil.copytree(folder / "fitted" / "model", folder / "model")
    shutil.copy(folder / "compared" / "runs.db", folder / "runs.db")


def start(words: tuple[str, ...], folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a folder, as the leader of its own group of processes."""
    return subprocess.Popen(
        [sys.executable, "-m", "everynode", *words], cwd=folder, env=ENVIRONMENT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, **options,
    )  # fmt: skip


def run(words: tuple[str, ...], folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    process = start(words, folder, **options)
    out, err = process.communicate(timeout=900)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def results(folder: Path) -> dict[str, str]:
    """Return a digest of everything that equal runs have in common, by file.

    Times and pages differ from run to run. Of a store, the runs count; of a study, its trials.
    """
    found: dict[str, str] = {}
    for path in sorted((folder / "out").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.endswith((".html", ".lock", "-wal", "-shm")):
            continue
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as connection:
                rows = connection.execute(
                    "SELECT key, specification, record, curve FROM runs ORDER BY key"
                ).fetchall()
                content = repr(rows).encode()
        elif path.suffix in (".safetensors", ".csv"):
            content = path.read_bytes()
            if name.endswith("runs.csv"):
                content = b"\n".join(sorted(content.splitlines()))
        elif path.name in ("model.json", "member.json"):
            card = json.loads(path.read_bytes())
            kept = ("classes", "settings", "history", "temperature", "weight", "networks")
            content = json.dumps({k: card[k] for k in kept if k in card}, sort_keys=True).encode()
        elif path.suffix == ".journal":
            content = str(path.read_bytes().count(b'"state":1')).encode()
        else:  # it must be there, whole
            content = b""
            if path.suffix == ".json":
                json.loads(path.read_bytes())
        found[name] = hashlib.sha256(content).hexdigest()[:16]
    return found
