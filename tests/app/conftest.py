"""A small project, and the application in a separate process."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from everynode.app.project import Project, Source
from everynode.app.round import Facts, Round

#: A name that must stay text.
ODD = "<b>x</b>&\"'</script><img src=x onerror=alert(1)>"


def write_tables(
    folder: Path, n: int = 120, *, classes: int = 3, known: float = 0.3, seed: int = 0
) -> tuple[Path, Path]:
    """Write people of some teams who mostly know their own team; some teams are unknown."""
    draw = random.Random(seed)
    team = [draw.randrange(classes) for _ in range(n)]
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name", "size", "mood", "team"])
        for i in range(n):
            name = ODD if i == 0 else f"Person {i}"
            label = f"team{team[i]}" if draw.random() < known and i else ""
            writer.writerow(
                [f"n{i}", name, round(team[i] + draw.gauss(0, 1), 3), draw.choice("ab"), label]
            )
    by_team = [[i for i in range(n) if team[i] == c] for c in range(classes)]
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", "strength"])
        for i in range(n):
            for _ in range(3):
                j = draw.choice(by_team[team[i]]) if draw.random() < 0.85 else draw.randrange(n)
                if i != j:
                    writer.writerow([f"n{i}", f"n{j}", draw.randrange(1, 9)])
    return nodes, edges


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """A node table and an edge table."""
    return write_tables(tmp_path)


@pytest.fixture
def source(tables: tuple[Path, Path]) -> Source:
    return Source(nodes=str(tables[0]), edges=str(tables[1]), label="team")


@pytest.fixture
def project(tmp_path: Path, source: Source) -> Iterator[Project]:
    project = Project(tmp_path / "project", source)
    yield project
    project.close()


def make_round(
    folder: Path, predicted: list[int], *, held_out: dict[int, tuple[int, int]]
) -> Round:
    """A round of three classes; ``held_out`` has the label and the prediction of some nodes."""
    folder.mkdir(parents=True, exist_ok=True)
    n = len(predicted)
    probabilities = np.full((n, 3), 0.1, np.float32)
    probabilities[np.arange(n), predicted] = 0.8
    labels, unseen = zip(*held_out.values(), strict=True)
    right = sum(a == b for a, b in held_out.values())
    facts = Facts(
        ("a", "b", "c"), "quick", 1.5, 2.5, len(held_out), 0, right, len(held_out), (0.5, 0.2, 0.8)
    )
    arrays = {
        "positions": np.arange(2 * n, dtype=np.float32).reshape(n, 2),
        "probabilities": probabilities,
        "held_out": np.array(list(held_out)),
        "held_out_labels": np.array(labels),
        "held_out_predicted": np.array(unseen),
        "queue": np.arange(n)[::-1].copy(),
    }
    return Round(folder, facts, arrays)


class App:
    """`everynode app` in a separate process."""

    def __init__(self, arguments: list[str], folder: Path):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment.pop("PYTEST_CURRENT_TEST", None)  # NiceGUI would act as in its own tests
        command = [sys.executable, "-m", "everynode", "app", "--no-browser", *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if "http://" in line:
                self.url = line.partition("app: ")[2].strip()
                break
        else:
            pytest.fail("".join(self.said))
        self.port = int(self.url.partition("127.0.0.1:")[2].partition("/")[0])
        self.token = self.url.partition("token=")[2]
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Start the application with some arguments; whatever was started is killed at the end."""
    running: list[App] = []

    def begin(*arguments: str | Path) -> App:
        running.append(App([str(argument) for argument in arguments], tmp_path))
        return running[-1]

    yield begin
    for app in running:
        app.kill()


def entries(journal: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]
