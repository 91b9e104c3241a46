"""Independent trainings side by side: one single-threaded process per core.

The processes are forked, so they share the graph and the trainings as they stand; only the states
at the end come back. A training continues from a state bit for bit, so the results are those of
training one after the other with one thread.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from everynode.errors import Diverged
from everynode.graph import Graph
from everynode.machine import cores
from everynode.training.checkpoint import TrainingState
from everynode.training.loop import Training
from everynode.training.process_pool import SMALL, run_many


class Leg(NamedTuple):
    """The end of a training's leg: its number, its state, and the error that ended it."""

    number: int
    state: TrainingState
    error: Diverged | None


class _Shared(NamedTuple):
    """What the processes share: the trainings, their last epoch, and whether to stop."""

    trainings: Sequence[Training]
    until: int | None
    stop: Any


def pays(graph: Graph, trainings: int, workers: int | None = None) -> bool:
    """Whether to run some trainings side by side.

    Not on small graphs, where a process takes longer to start than to train, not on a GPU, and not
    where processes cannot be forked.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> pays(generate(60, 120, 8, 3), 4, workers=2)
    False
    """
    forks = sys.platform == "linux" and not multiprocessing.current_process().daemon
    large = graph.num_nodes + graph.num_edges >= SMALL and graph.labels.device.type == "cpu"
    return forks and large and min(workers or cores(), trainings) > 1


def side_by_side(
    trainings: Sequence[Training],
    interrupt: threading.Event,
    until: int | None = None,
    *,
    workers: int | None = None,
) -> Iterator[Leg]:
    """Advance copies of the trainings, and yield the end of each in the order in which they end.

    Parameters
    ----------
    trainings : sequence of Training
        The trainings. They do not change: restore the states that you want.
    interrupt : threading.Event
        Ends every training after its current step, once it is set.
    until : int, optional
        The number of epochs; None: to the end.
    workers : int, optional
        Trainings at once; None: one per core.
    """
    with _passed_on(interrupt) as stop:
        shared = _Shared(trainings, until, stop)
        for number, (content, reason) in run_many(
            _advance, range(len(trainings)), shared, workers=workers
        ):
            error = None if reason is None else Diverged(reason)
            yield Leg(number, TrainingState.from_bytes(content), error)


def _advance(number: int, shared: _Shared) -> tuple[bytes, str | None]:
    """Advance a training in this process; return its state, and why it diverged."""
    training, reason = shared.trainings[number], None
    try:
        training.advance(shared.stop, shared.until)
    except Diverged as error:
        reason = str(error)
    return training.state().to_bytes(), reason


@contextmanager
def _passed_on(interrupt: threading.Event) -> Iterator[Any]:
    """Return an event that forked processes see, and that is set soon after ``interrupt`` is."""
    stop, ended = multiprocessing.get_context("fork").Event(), threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if interrupt.wait(0.1):
                stop.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        ended.set()
        watcher.join()
