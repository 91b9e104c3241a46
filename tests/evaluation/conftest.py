"""Generated tables with known truth: clean, leaking, and with a rare class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.io.assign_splits import assign_splits

Tables = Callable[..., tuple[dict[str, Any], dict[str, Any]]]
QUICK: dict[str, Any] = {
    "objective": "ce", "settings": {"epochs": 100, "hidden_channels": 8}, "verbose": False,
}  # fmt: skip


def made_tables(kind: str, n: int = 300) -> tuple[dict[str, Any], dict[str, Any]]:
    """Nodes and edges. ``clean``: one good column; ``leak``: a copy of the label beside it;
    ``rare``: 5 % positives and columns of noise; ``drift``: old nodes have labels."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.05).astype(int) if kind == "rare" else rng.integers(2, size=n)
    known = rng.random(n) < 0.7
    x = rng.normal(size=n) if kind == "rare" else rng.normal(2 * y, 1)
    age = rng.normal(size=n) + (3 * known if kind == "drift" else 0)
    nodes: dict[str, Any] = {"id": [f"n{i}" for i in range(n)], "x": x, "age": age}
    if kind == "leak":
        nodes["stage"] = [f"s{c}" if k else None for c, k in zip(y, known, strict=True)]
    nodes["label"] = [["no", "yes"][c] if k else None for c, k in zip(y, known, strict=True)]
    a, b = rng.integers(n, size=(2, 4 * n))
    keep = (a != b) & ((y[a] == y[b]) | (rng.random(4 * n) < 0.4))
    return nodes, {"source": [f"n{i}" for i in a[keep]], "target": [f"n{i}" for i in b[keep]]}


@pytest.fixture(scope="session")
def tables() -> Tables:
    """Returns the tables of nodes and edges of a kind."""
    return made_tables


@pytest.fixture(scope="session")
def summarize() -> Callable[..., FitSummary]:
    """Fits a classifier to tables, quickly."""

    def fit(nodes: Any, edges: Any, **options: Any) -> FitSummary:
        graph, notes = assign_splits(en.read(nodes, edges, **options), seed=0)
        return FitSummary.of(NodeClassifier(**QUICK).fit(graph), graph, notes)

    return fit


@pytest.fixture(scope="session")
def fit_of(summarize: Callable[..., FitSummary]) -> Callable[..., FitSummary]:
    """Fits a kind of table, once per kind."""
    fits: dict[str, FitSummary] = {}

    def fit(kind: str) -> FitSummary:
        if kind not in fits:
            fits[kind] = summarize(*made_tables(kind))
        return fits[kind]

    return fit
