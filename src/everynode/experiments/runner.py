"""Doing runs: each once, in any number of processes, and never again after it has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everynode.datasets import load, random_split
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store, state_path
from everynode.experiments.tasks import Result, carry_out
from everynode.graph import Graph
from everynode.training.process_pool import Engine, run_many

#: Seconds between two looks at runs that another process is doing.
POLL = 0.5
#: Random splits are made at need; so many are kept.
KEPT = 2

#: Hears of every record, and whether it is fresh.
OnRecord = Callable[[Run, dict[str, Any], bool], None]


class Graphs:
    """The graphs of runs by what a run says of them. What is loaded before workers start is shared with them, and they need no files."""

    def __init__(self, data_dir: str | os.PathLike[str] | None = None):
        self.data_dir = data_dir
        self._fixed: dict[tuple[Any, ...], Graph] = {}
        #: Of each graph with random splits: one with some split, from which the others are made.
        self._bases: dict[tuple[Any, ...], Graph] = {}
        self._random: dict[tuple[Any, ...], Graph] = {}

    def add(self, run: Run, graph: Graph) -> None:
        """Use this graph for the run, instead of loading one."""
        self._fixed[self._source(run)] = graph

    def prepare(self, runs: Sequence[Run]) -> None:
        """Load what several runs will need."""
        for run in runs:
            if self._source(run) in self._fixed:
                continue
            if run.split == "random":
                self._base(run)
            else:
                self.of(run)

    def of(self, run: Run) -> Graph:
        """The graph of a run."""
        source = self._source(run)
        if source in self._fixed:
            return self._fixed[source]
        if run.split != "random":
            self._fixed[source] = load(
                run.dataset, run.split, data_dir=self.data_dir, directed=run.directed
            )
            return self._fixed[source]
        if source not in self._random:
            while len(self._random) >= KEPT:
                self._random.pop(next(iter(self._random)))
            assert run.per_class is not None  # every run with a random split says how it is drawn
            assert run.split_seed is not None
            base = self._base(run)
            self._random[source] = base.with_splits(
                [random_split(base.labels, run.per_class, seed=run.split_seed)]
            )
        return self._random[source]

    def _base(self, run: Run) -> Graph:
        key = run.dataset, run.directed
        if key not in self._bases:
            self._bases[key] = load(
                run.dataset, "random", data_dir=self.data_dir, directed=run.directed
            )
        return self._bases[key]

    @staticmethod
    def _source(run: Run) -> tuple[Any, ...]:
        return run.dataset, run.split, run.per_class, run.split_seed, run.directed, run.graph_digest


@dataclass(frozen=True)
class Shared:
    """What all runs of a call need."""

    graphs: Graphs
    #: The store's file, beside which trainings keep their states; None if they keep none: on other machines, which do not have it, or
    #: where all begin anew.
    store: Path | None


def do_runs(
    runs: Sequence[Run],
    graphs: Graphs,
    store: Store,
    *,
    workers: int | None = None,
    engine: Engine = run_many,
    on_record: OnRecord = lambda run, record, fresh: None,
    again: bool = False,
) -> list[dict[str, Any]]:
    """The records of the runs, in their order: from the store where they are, else carried out by the engine and stored one by one.

    Another process may work on the same store: what it is doing is waited for, and taken over if it dies, from the last state that it
    kept of its training. ``again``: whatever the store has of them, all are done from their beginning; until a run has ended, its old
    record stays.
    """
    found: dict[str, dict[str, Any]] = {}
    left = list({run.key: run for run in runs}.values())
    shared = Shared(graphs, store.path if engine is run_many and not again else None)

    def look() -> None:
        """Take what the store has."""
        nonlocal left
        left = [run for run in left if run.key not in found]
        known = store.records() if not again and store.keys() & {run.key for run in left} else {}
        for run in left:
            if run.key in known:
                found[run.key] = known[run.key]
                state_path(store.path, run.key).unlink(
                    missing_ok=True
                )  # of a process that was killed just after its last write
                on_record(run, found[run.key], False)
        left = [run for run in left if run.key not in found]

    def ours() -> Iterator[Run]:
        """Claim as late as possible, so that several processes share what is left."""
        for run in left:
            if store.claim(run.key, again=again):
                yield run

    look()
    graphs.prepare(left)
    try:
        while left:
            fresh = False
            for run, result in engine(_work, ours(), shared, workers=workers, at_most=len(left)):
                store.put(run.specification, result.record, result.cost, result.curve, again=again)
                kept = store.get(run.key)
                assert kept is not None  # it was put just now, or somebody else's before
                found[run.key] = kept
                on_record(run, kept, True)
                fresh = True
            look()
            if left and not fresh:
                time.sleep(POLL)
    finally:
        store.close()
    return [found[run.key] for run in runs]


def _work(run: Run, shared: Shared) -> Result:
    return carry_out(run, shared.graphs.of(run), shared.store and state_path(shared.store, run.key))
