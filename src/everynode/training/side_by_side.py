"""Independent trainings side by side: one single-threaded process per core.

The processes are forked, so they share the graph and the trainings as they stand; only the states
at the end come back. A training continues from a state bit for bit, so the results are those of
training one after the other with one thread.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from everynode.errors import Diverged
from everynode.graph import Graph
from everynode.machine import cores
from everynode.training.checkpoint import TrainingState
from everynode.training.loop import Training
from everynode.training.process_pool import SMALL, run_many

#: Seconds between two looks at the interrupt, and between two rows that a training shows.
LOOK_EVERY = 0.1
#: Called with the number of a training, an epoch and its row of the history.
Show = Callable[[int, int, dict[str, float]], None]


class Leg(NamedTuple):
    """The end of a training's leg.

    Attributes
    ----------
    number : int
        The number of the training.
    state : TrainingState
        Its state at the end of the leg.
    error : Diverged or None
        The error that ended it.
    """

    number: int
    state: TrainingState
    error: Diverged | None


class _Shared(NamedTuple):
    """What the processes share: the trainings, their last epoch, the way out, and for progress."""

    trainings: Sequence[Training]
    until: int | None
    stop: Any
    rows: Any


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
    show: Show | None = None,
) -> Iterator[Leg]:
    """Advance copies of the trainings, and yield the end of each in the order of completion.

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
    show : callable, optional
        Shows the progress: called from a thread, with some of the epochs.
    """
    with _connected(interrupt, show) as (stop, rows):
        shared = _Shared(trainings, until, stop, rows)
        for number, (content, reason) in run_many(
            _advance, range(len(trainings)), shared, workers=workers
        ):
            error = None if reason is None else Diverged(reason)
            yield Leg(number, TrainingState.from_bytes(content), error)


def _advance(number: int, shared: _Shared) -> tuple[bytes, str | None]:
    """Advance a training in this process; return its state, and why it diverged."""
    training, reason = shared.trainings[number], None
    shown = 0.0

    def show(epoch: int, row: dict[str, float]) -> None:
        nonlocal shown
        if time.monotonic() >= shown + LOOK_EVERY:
            shown = time.monotonic()
            shared.rows.put((number, epoch, row))

    try:
        training.advance(shared.stop, shared.until, report=None if shared.rows is None else show)
    except Diverged as error:
        reason = str(error)
    return training.state().to_bytes(), reason


@contextmanager
def _connected(interrupt: threading.Event, show: Show | None) -> Iterator[tuple[Any, Any]]:
    """Return an event and a queue for forked processes.

    The event is set soon after ``interrupt`` is. What is put into the queue is shown.
    """
    context, ended = multiprocessing.get_context("fork"), threading.Event()
    stop, rows = context.Event(), None if show is None else context.SimpleQueue()

    def watch() -> None:
        while not ended.wait(LOOK_EVERY):
            if interrupt.is_set():
                stop.set()
            while show is not None and rows is not None and not rows.empty():
                show(*rows.get())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield stop, rows
    finally:
        ended.set()
        watcher.join()
