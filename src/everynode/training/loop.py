"""The loop: an epoch of Adam on the objective, one look at the validation nodes, until patience runs out."""

from __future__ import annotations

import hashlib
import math
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from everynode.backbones import Network
from everynode.disk import DiskGraph
from everynode.errors import DataError, EverynodeError, UsageError
from everynode.graph import Graph
from everynode.metrics import accuracy
from everynode.settings import Batches, Settings
from everynode.training.batches.ranks import Ranks
from everynode.training.batches.work import Batched
from everynode.training.checkpoint import TrainingState
from everynode.training.memory import reused_memory
from everynode.training.whole import WholeGraph

#: Called after every epoch with the epoch and its history row (terms, validation).
Report = Callable[[int, dict[str, float]], None]


@dataclass
class Fitted:
    """A trained network with the best epoch's weights, and how it got there."""

    network: Network
    settings: Settings
    classes: tuple[Hashable, ...]
    graph_name: str
    graph_digest: str
    fold: int
    seed: int
    #: The epoch (from 0) whose weights these are.
    best_epoch: int
    #: Per epoch: each term, ``total``, ``val_loss``, ``val_accuracy`` (and ``test_accuracy``, if the test nodes were watched).
    history: dict[str, list[float]] = field(repr=False)
    #: ``val_loss`` and ``val_accuracy`` at ``best_epoch``. No choice here has seen a test node: those are for :func:`evaluate`.
    metrics: dict[str, float]
    seconds: float
    #: Whether Ctrl-C ended the training early.
    interrupted: bool = False

    @property
    def epochs(self) -> int:
        """How many epochs were run."""
        return len(self.history["total"])


class Work(Protocol):
    """What an epoch is made of."""

    @property
    def network(self) -> Network:
        """What is trained."""
        ...

    @property
    def objective(self) -> nn.Module:
        """What it is trained on."""
        ...

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """What trains it."""
        ...

    #: How many steps an epoch has.
    steps: int
    #: How many of them are done in the epoch in hand, and the sums of the terms (and ``total``) over these.
    step: int
    sums: dict[str, float]

    def advance(self, epoch: int) -> None:
        """Do the next step."""
        ...

    def validate(self) -> dict[str, float]:
        """``val_loss`` and ``val_accuracy``, and whatever else is to be in the history."""
        ...


def fit(
    graph: Graph | DiskGraph,
    settings: Settings | None = None,
    *,
    fold: int = 0,
    seed: int = 0,
    report: Report | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_every: float = 1.0,
    watch: Tensor | None = None,
    batches: Batches | None = None,
    ranks: Ranks | None = None,
) -> Fitted:
    """Train on one fold of a graph and return the network with the weights of its best validation epoch.

    With ``checkpoint``, the state of the training is kept in that file (at most every ``checkpoint_every`` seconds, and when
    interrupted) and training goes on from it if it is there; it then ends bit for bit where it would have ended undisturbed.
    Ctrl-C ends the training after the step in hand and keeps the best so far; a second one ends it at once. ``watch``: test nodes,
    whose accuracy after each epoch is kept in the history and decides nothing. ``batches``: train on a part of the graph at a time.
    ``ranks``: the processes that share the work of each step, all of which call this with the same arguments; the first writes.
    """
    settings, ranks = settings or Settings(), ranks or Ranks()
    checkpoint = None if checkpoint is None else Path(checkpoint)
    work: Work
    if batches:
        work = Batched(graph, settings, batches, fold=fold, seed=seed, ranks=ranks)
    elif isinstance(graph, DiskGraph):
        raise UsageError(f"Graph {graph.name!r} is on disk: it is trained in batches (batches=Batches(...), or --batch-size).")
    else:
        work = WholeGraph(graph, settings, fold=fold, seed=seed, watch=watch)
    network = work.network
    what = (settings, fold, seed, graph.digest, *([batches, ranks.size] if batches else []))
    identity = hashlib.sha256(repr(what).encode()).hexdigest()
    history: dict[str, list[float]] = {}
    best: dict[str, Tensor] = {}
    best_key, best_epoch, epoch = (-math.inf, -math.inf), -1, 0
    before = 0.0
    with torch.random.fork_rng(devices=[]), reused_memory(), deferred_interrupt() as interrupt:
        torch.manual_seed(seed)
        state = TrainingState.load(checkpoint, identity) if checkpoint else None
        if state:
            try:
                best = state.restore(network, work.objective, work.optimiser)
            except (RuntimeError, KeyError, ValueError, TypeError) as error:
                raise DataError(f"{checkpoint} is the training state of another model: --no-resume starts over.") from error
            history, best_epoch, best_key = state.history, state.best_epoch, state.best_key
            epoch, before = state.epoch, state.seconds
            work.step, work.sums = state.step, state.sums
        ranks.agree_on("graph, settings and state", int(identity[:8], 16) + epoch * work.steps + work.step)
        start = saved = time.perf_counter()

        def keep(path: Path) -> None:
            seconds = before + time.perf_counter() - start
            TrainingState.capture(
                network, work.objective, work.optimiser, best, identity, history, best_epoch, best_key, epoch, seconds, work.step, work.sums
            ).save(path)

        while epoch < settings.epochs and epoch - best_epoch <= settings.patience and not ranks.any(interrupt.is_set()):
            work.advance(epoch)
            if not math.isfinite(work.sums["total"]):
                why = f"The loss became {work.sums['total']} in epoch {epoch}: lower the learning rates or the terms' weights."
                raise EverynodeError(why)
            if work.step == work.steps:
                row = {name: total / work.steps for name, total in work.sums.items()} | work.validate()
                if not math.isfinite(row["val_loss"]):
                    why = f"The validation loss became {row['val_loss']} in epoch {epoch}: lower the learning rates or the terms' weights."
                    raise EverynodeError(why)
                for name, value in row.items():
                    history.setdefault(name, []).append(value)
                # Higher is better, ties by loss; with select="loss" the loss alone counts.
                key = (row["val_accuracy"] if settings.select == "accuracy" else 0.0, -row["val_loss"])
                if key > best_key:
                    best_key, best_epoch = key, epoch
                    best = {name: value.detach().clone() for name, value in network.state_dict().items()}
                epoch += 1
                work.step, work.sums = 0, {}
                if report:
                    report(epoch - 1, row)
            if checkpoint and ranks.first and time.perf_counter() - saved >= checkpoint_every:
                keep(checkpoint)
                saved = time.perf_counter()
        seconds = before + time.perf_counter() - start
        if checkpoint and ranks.first:
            keep(checkpoint)
        stopped = ranks.any(interrupt.is_set())
    if not best:
        raise KeyboardInterrupt
    network.load_state_dict(best)
    network.eval()
    metrics = {name: history[name][best_epoch] for name in ("val_loss", "val_accuracy")}
    return Fitted(network, settings, graph.classes, graph.name, graph.digest, fold, seed, best_epoch, history, metrics, seconds, stopped)


def evaluate(network: nn.Module, graph: Graph, part: str = "test", fold: int = 0) -> float | None:
    """The accuracy on the labelled nodes of 'train', 'val' or 'test' of a fold; None if there are none."""
    nodes = graph.nodes(part, fold)
    if not len(nodes):
        return None
    network.eval()
    with torch.no_grad():
        return accuracy(network(graph)[nodes], graph.labels[nodes])


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Within this block the first Ctrl-C only sets the event, so that a step is never torn; the second one interrupts as usual."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set a handler, or gets Ctrl-C
        yield event
        return
    before: Any = signal.getsignal(signal.SIGINT)

    def first(signum: int, frame: FrameType | None) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, first)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
