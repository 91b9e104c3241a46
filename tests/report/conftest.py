"""A store as `everynode reproduce all` leaves it, made up in a second: seeded numbers, no training, none of the public files."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from everynode.data.files import Root
from everynode.experiments.declare import Cell, Experiment, experiments
from everynode.experiments.run import Run
from everynode.experiments.store import Store

Plans = dict[Experiment, dict[Cell, list[Run]]]
Record = tuple[dict[str, Any], dict[str, float], dict[str, list[float]]]
EPOCHS, CLASSES, NODES = 300, 7, 400


def make_record(run: Run, *, diverged: bool = False) -> Record:
    """Record, cost and curve of a run, as its task would leave them."""
    draw = random.Random(run.key)
    made: dict[str, Any] = {**run.describe(), "key": run.key, "version": "0.2.0", "versions": run.versions}
    made |= {"python": "3.11.7", "system": "linux"}
    if diverged:
        return made | {"error": "The loss became <nan> at epoch 3."}, {}, {}
    if run.task == "describe":
        counts = {"nodes": 2708, "edges": 5278, "features": 1433, "classes": 7, "isolated": 0, "unlabelled": 0}
        return made | {"statistics": counts | {"edge_homophily": 0.81, "node_homophily": 0.825}}, {}, {}
    if run.task == "time":
        return made, {"training_ms": draw.uniform(3, 30), "inference_ms": draw.uniform(1, 5)}, {}
    if run.task.startswith("tsne"):
        made |= {"positions": [[round(draw.gauss(0, 30), 2), round(draw.gauss(0, 30), 2)] for _ in range(NODES)]}
        made |= {"labels": [i % CLASSES for i in range(NODES)]}
    if run.task == "tsne-input":
        return made, {}, {}
    best = draw.randrange(50, EPOCHS - 100)
    score = draw.gauss(0.8, 0.01) + 0.02 * (run.objective == "enc")
    terms = ["ce", *(term for term in ("mi", "tv", "cvg", "preg") if getattr(run.settings, term))]
    curve = {name: [draw.gauss(0, 0.02) + 2 * 0.98**epoch for epoch in range(EPOCHS)] for name in (*terms, "total", "val_loss")}
    curve |= {name: [score * (1 - 0.95**epoch) for epoch in range(EPOCHS)] for name in ("val_accuracy", "test_accuracy")}
    made |= {"nodes": {"train": 140, "val": 500, "test": 1000}, "epochs": EPOCHS, "best_epoch": best, "val_loss": 0.6}
    for part in ("val", "test"):
        made |= {f"{part}_accuracy": score, f"{part}_macro_f1": score - 0.01, f"{part}_nll": 0.6, f"{part}_ece": 0.04}
    made |= {"test_oracle_accuracy": score + 0.01, "terms": {name: curve[name][best] for name in (*terms, "total")}}
    made |= {"confusion": [[draw.randrange(9) + 90 * (i == j) for j in range(CLASSES)] for i in range(CLASSES)]}
    made |= {"interrupted": False, "settings": dataclasses.asdict(run.settings)}
    return made, {"seconds": 2.5, "seconds_per_epoch": 0.01, "peak_mb": 380.0}, curve


def fill(store: Store, runs: Iterable[Run], *, diverged: Callable[[Run], bool] = lambda run: False) -> None:
    """Put made-up records of the runs into a store."""
    for run in {run.key: run for run in runs}.values():
        store.put(run.specification, *make_record(run, diverged=diverged(run)))


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A data folder without any file: the page needs none."""
    return Root(tmp_path_factory.mktemp("no-data"), downloads=False)


@pytest.fixture(scope="session")
def plans(nowhere: Root) -> Plans:
    """What every experiment would run."""
    return {experiment: experiment.plan("paper", None, nowhere)[0] for experiment in experiments().values()}


def some(plans: Plans) -> list[Run]:
    """Two runs of every cell: all cells are there, and most are incomplete."""
    return [run for plan in plans.values() for runs in plan.values() for run in runs[:2]]


@pytest.fixture(scope="session")
def store(plans: Plans, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some runs of every cell, of which a few diverged."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    fill(Store(path), some(plans), diverged=lambda run: run.task == "train" and run.key.startswith("0"))
    return path
