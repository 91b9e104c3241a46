"""Execute runs in any number of processes, each run once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from everynode.datasets import load, random_split
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store, state_path
from everynode.experiments.tasks import Result, carry_out
from everynode.graph import Graph
from everynode.training.process_pool import Engine, run_many

#: Seconds between two checks of the runs of other processes.
POLL = 0.5
#: Random splits that are kept in memory.
KEPT = 2
#: The key that a process claims in the store while it measures times, so that others wait.
TIMING = "timing"

#: Called with every run, its record, and whether the run was executed just now.
OnRecord = Callable[[Run, dict[str, Any], bool], None]


class Graphs:
    """The graphs of runs. Worker processes share the graphs that were loaded before they started.

    Parameters
    ----------
    data_dir : path, optional
        Folder of the public graphs.
    device : torch.device or str
        The device of all runs. Runs that measure times take the CPU.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        device: torch.device | str = "cpu",
    ):
        self.data_dir, self.device = data_dir, device
        self._fixed: dict[tuple[Any, ...], Graph] = {}
        #: A graph with any random split; the other splits start from it.
        self._bases: dict[tuple[Any, ...], Graph] = {}
        self._random: dict[tuple[Any, ...], Graph] = {}

    def add(self, run: Run, graph: Graph) -> None:
        """Use this graph for the run instead of loading one."""
        self._fixed[self._source(run)] = graph

    def prepare(self, runs: Sequence[Run]) -> None:
        """Load the graphs of several runs."""
        for run in runs:
            if self._source(run) in self._fixed:
                continue
            if run.split == "random":
                self._base(run)
            else:
                self.of(run)

    def of(self, run: Run) -> Graph:
        """Return the graph of a run."""
        source = self._source(run)
        if source in self._fixed:
            return self._fixed[source]
        if run.split != "random":
            self._fixed[source] = self._load(run)
            return self._fixed[source]
        if source not in self._random:
            while len(self._random) >= KEPT:
                self._random.pop(next(iter(self._random)))
            assert run.per_class is not None
            assert run.split_seed is not None
            base = self._base(run)
            split = random_split(base.labels.cpu(), run.per_class, seed=run.split_seed)
            self._random[source] = base.with_splits(
                [tuple(part.to(base.labels.device) for part in split)]
            )
        return self._random[source]

    def _base(self, run: Run) -> Graph:
        key = run.dataset, run.directed, self._device_of(run)
        if key not in self._bases:
            self._bases[key] = self._load(run)
        return self._bases[key]

    def _load(self, run: Run) -> Graph:
        graph = load(run.dataset, run.split, data_dir=self.data_dir, directed=run.directed)
        return graph.to(self._device_of(run))

    def _device_of(self, run: Run) -> torch.device:
        return torch.device("cpu" if run.task == "time" else self.device)

    def _source(self, run: Run) -> tuple[Any, ...]:
        return (
            run.dataset, run.split, run.per_class, run.split_seed, run.directed, run.graph_digest,
            self._device_of(run),
        )  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """The objects that all runs of a call share.

    Parameters
    ----------
    graphs : Graphs
        The graphs.
    store : Path, optional
        The store's file; training states lie beside it. None: no states are kept, because runs
        are on other machines or are repeated.
    """

    graphs: Graphs
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
    """Return the records of runs in their order, after executing the missing ones.

    Other processes may work on the same store. This function waits for their runs. If such a
    process dies, its runs continue here from their last training state.

    Parameters
    ----------
    runs : sequence of Run
        The runs.
    graphs : Graphs
        Their graphs.
    store : Store
        Receives each record as soon as its run ends.
    workers : int, optional
        Number of parallel runs; None: one per core.
    engine : Engine
        Executes the runs.
    on_record : callable
        See :data:`OnRecord`.
    again : bool
        Repeat all runs; the old record of a run stays until its new one is stored.
    """
    records: dict[str, dict[str, Any]] = {}
    shared = Shared(graphs, store.path if engine is run_many and not again else None)

    def take_stored(left: list[Run]) -> list[Run]:
        """Take the records that the store has, and return the runs without a record."""
        left = [run for run in left if run.key not in records]
        found = {} if again else _stored_records(store, left)
        records.update(found)
        for run in left:
            if run.key in found:
                on_record(run, found[run.key], False)
        return [run for run in left if run.key not in found]

    def claimed() -> Iterator[Run]:
        """Claim each run as late as possible, so that several processes share the rest."""
        for run in left:
            if store.claim(run.key, again=again):
                yield run

    left = take_stored(list({run.key: run for run in runs}.values()))
    graphs.prepare(left)
    try:
        while left:
            fresh = False
            for run, result in engine(_work, claimed(), shared, workers=workers, at_most=len(left)):
                store.put(run.specification, result.record, result.cost, result.curve, again=again)
                stored = store.get(run.key)
                assert stored is not None  # it was put just now, or earlier by another process
                records[run.key] = stored
                on_record(run, stored, True)
                fresh = True
            left = take_stored(left)
            if left and not fresh:
                time.sleep(POLL)
    finally:
        store.close()
    return [records[run.key] for run in runs]


def _stored_records(store: Store, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Return the stored records of some runs, and remove the training states of these runs."""
    keys = store.keys() & {run.key for run in runs}
    stored = store.records() if keys else {}
    for key in keys:
        # A process that was killed just after its last write leaves a state.
        state_path(store.path, key).unlink(missing_ok=True)
    return {key: stored[key] for key in keys}


def do_timed_last(
    runs: Sequence[Run],
    graphs: Graphs,
    store: Store,
    *,
    workers: int | None = None,
    engine: Engine = run_many,
    on_record: OnRecord = lambda run, record, fresh: None,
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Execute runs; timed runs come last, one at a time, in one process per store.

    ``on_wait`` is called if another process measures times. For the rest see :func:`do_runs`.
    """
    untimed, timed = (
        [run for run in runs if (run.task == "time") is wanted] for wanted in (False, True)
    )
    do_runs(untimed, graphs, store, workers=workers, engine=engine, on_record=on_record)
    if {run.key for run in timed} - store.keys():
        _wait_to_measure(store, on_wait)
    do_runs(timed, graphs, store, workers=1, on_record=on_record)


def _wait_to_measure(store: Store, on_wait: Callable[[], None]) -> None:
    """Claim the measuring of times as soon as no other process has it."""
    try:
        if store.claim(TIMING):
            return
        on_wait()
        while not store.claim(TIMING):
            time.sleep(POLL)
    except BaseException:
        store.close()
        raise


def _work(run: Run, shared: Shared) -> Result:
    return carry_out(run, shared.graphs.of(run), shared.store and state_path(shared.store, run.key))
