"""Doing runs: each once, in any number of processes, and never again after it has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from everynode.data import load
from everynode.experiments.run import Run
from everynode.experiments.store import Store
from everynode.experiments.tasks import Result, carry_out
from everynode.graph import Graph
from everynode.training.many import run_many

#: Seconds between two looks at runs that another process is doing.
POLL = 0.5
#: Random splits are made at need; so many are kept.
KEPT = 2

#: Hears of every record, and whether it is fresh.
OnRecord = Callable[[Run, dict[str, Any], bool], None]


class Graphs:
    """The graphs of runs by what a run says of them. What is loaded before workers are forked is shared between them."""

    def __init__(self, data_dir: str | os.PathLike[str] | None = None):
        self.data_dir = data_dir
        self._fixed: dict[tuple[Any, ...], Graph] = {}
        self._random: dict[tuple[Any, ...], Graph] = {}

    def add(self, run: Run, graph: Graph) -> None:
        """Use this graph for the run, instead of loading one."""
        self._fixed[self._source(run)] = graph

    def prepare(self, runs: Sequence[Run]) -> None:
        """Load what several runs will need."""
        for run in runs:
            if run.split != "random":
                self.of(run)

    def of(self, run: Run) -> Graph:
        """The graph of a run."""
        source = self._source(run)
        kept = self._random if run.split == "random" else self._fixed
        if source not in self._fixed and source not in kept:
            if kept is self._random:
                while len(kept) >= KEPT:
                    kept.pop(next(iter(kept)))
            drawn = {} if run.per_class is None or run.split_seed is None else {"per_class": run.per_class, "seed": run.split_seed}
            kept[source] = load(run.dataset, run.split, data_dir=self.data_dir, directed=run.directed, **drawn)
        return self._fixed.get(source) or kept[source]

    @staticmethod
    def _source(run: Run) -> tuple[Any, ...]:
        return run.dataset, run.split, run.per_class, run.split_seed, run.directed, run.graph_digest


def do_runs(
    runs: Sequence[Run],
    graphs: Graphs,
    store: Store,
    *,
    workers: int | None = None,
    on_record: OnRecord = lambda run, record, fresh: None,
) -> list[dict[str, Any]]:
    """The records of the runs, in their order: from the store where they are, else carried out and stored one by one.

    Another process may work on the same store: what it is doing is waited for, and taken over if it dies.
    """
    found: dict[str, dict[str, Any]] = {}
    left = list({run.key: run for run in runs}.values())

    def look() -> None:
        """Take what the store has."""
        nonlocal left
        known = store.keys()
        left = [run for run in left if run.key not in found]
        for run in left:
            if run.key in known:
                found[run.key] = store.get(run.key) or {}
                on_record(run, found[run.key], False)
        left = [run for run in left if run.key not in found]

    def ours() -> Iterator[Run]:
        """Claim as late as possible, so that several processes share what is left."""
        for run in left:
            if store.claim(run.key):
                yield run

    look()
    graphs.prepare(left)
    try:
        while left:
            fresh = False
            for run, result in run_many(_work, ours(), graphs, workers=workers, at_most=len(left)):
                store.put(run.specification, result.record, result.cost, result.curve)
                found[run.key] = store.get(run.key) or {}
                on_record(run, found[run.key], True)
                fresh = True
            look()
            if left and not fresh:
                time.sleep(POLL)
    finally:
        store.close()
    return [found[run.key] for run in runs]


def _work(run: Run, graphs: Graphs) -> Result:
    return carry_out(run, graphs.of(run))
