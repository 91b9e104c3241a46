"""The loop: an epoch of Adam on the objective, one look at the validation nodes, until patience runs out."""

from __future__ import annotations

import hashlib
import math
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from everynode.errors import Diverged, UsageError
from everynode.evaluation.metrics import accuracy
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.models.model import Model
from everynode.numerics import subnormals_flushed
from everynode.settings import Batches, Settings
from everynode.training.checkpoint import TrainingState, UnusableState
from everynode.training.distributed import Ranks
from everynode.training.full_batch import WholeGraph, history_name
from everynode.training.memory import reused_memory
from everynode.training.mini_batch.work import Batched
from everynode.training.random_state import (
    own_random_numbers,
    random_state,
    seed_random,
    set_random_state,
)

#: The share of the time that keeping states may take, but for the first and the last: that of a large network takes half a second to write.
KEEPING = 0.02
#: Called after every epoch with the epoch and its history row (terms, validation).
Report = Callable[[int, dict[str, float]], None]


@dataclass
class Fitted:
    """A trained network with the best epoch's weights, and how it got there."""

    network: Model
    settings: Settings
    classes: tuple[Hashable, ...]
    graph_name: str
    graph_digest: str
    fold: int
    seed: int
    #: The epoch (from 0) whose weights these are.
    best_epoch: int
    #: Per epoch: each term, ``total``, ``val_loss``, ``val_accuracy``, the metric that selects if it is another, such as
    #: ``val_macro_f1`` (and ``test_accuracy``, if the test nodes were watched).
    history: dict[str, list[float]] = field(repr=False)
    #: What history has of validation at ``best_epoch``. No choice here has seen a test node: those are for :func:`evaluate`.
    metrics: dict[str, float]
    seconds: float
    #: Whether Ctrl-C ended the training early.
    interrupted: bool = False

    @property
    def epochs(self) -> int:
        """How many epochs were run."""
        return len(self.history["total"])

    @classmethod
    def from_card(cls, network: Model, card: Mapping[str, Any]) -> Fitted:
        """What a model folder holds (:func:`~everynode.training.load_model`), as it came out of the training."""
        return cls(
            network, Settings(**card["settings"]), tuple(card["classes"]), card["graph"]["name"], card["graph"]["digest"], card["fold"],
            card["seed"], card["best_epoch"], card["history"], card["metrics"], card["seconds"], card["interrupted"],
        )  # fmt: skip


class Work(Protocol):
    """What an epoch is made of."""

    @property
    def network(self) -> Model:
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
    #: How large one layer's values are in a step, as :func:`~everynode.training.memory.reused_memory` wants to know.
    layer_bytes: int
    #: How many of them are done in the epoch in hand, and the sums of the terms (and ``total``) over these.
    step: int
    sums: dict[str, float]

    def advance(self, epoch: int) -> None:
        """Do the next step."""
        ...

    def validate(self) -> dict[str, float]:
        """``val_loss`` and ``val_accuracy``, and whatever else is to be in the history."""
        ...


def train(
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

    With ``checkpoint``, the state of the training is kept in that file (at most every ``checkpoint_every`` seconds, more rarely if it takes
    long to write, and at the end) and training goes on from it if it is there; it then ends bit for bit where it would have ended
    undisturbed.
    Ctrl-C ends the training after the step in hand and keeps the best so far; a second one ends it at once. ``watch``: test nodes,
    whose accuracy after each epoch is kept in the history and decides nothing. ``batches``: train on a part of the graph at a time,
    watching nothing.
    ``ranks``: the processes that share the work of each step, all of which call this with the same arguments; the first writes.
    """
    checkpoint = None if checkpoint is None else Path(checkpoint)
    settings, ranks = settings or Settings(), ranks or Ranks()
    training = Training(
        graph,
        settings,
        fold=fold,
        seed=seed,
        checkpoint=checkpoint,
        watch=watch,
        batches=batches,
        ranks=ranks,
    )
    with deferred_interrupt() as interrupt:
        training.advance(interrupt, report=report, checkpoint_every=checkpoint_every)
        interrupted = ranks.any(interrupt.is_set())
    return training.result(interrupted=interrupted)


class Training:
    """A training that may pause after any epoch and go on: :func:`fit` runs one to its end, a race several side by side.

    It has its own random numbers, so what happens in a pause changes nothing.
    """

    def __init__(
        self,
        graph: Graph | DiskGraph,
        settings: Settings,
        *,
        fold: int = 0,
        seed: int = 0,
        checkpoint: Path | None = None,
        watch: Tensor | None = None,
        batches: Batches | None = None,
        ranks: Ranks | None = None,
    ):
        self.graph, self.settings, self.fold, self.seed, self.ranks = (
            graph,
            settings,
            fold,
            seed,
            ranks or Ranks(),
        )
        self.checkpoint = checkpoint
        self.work: Work
        if batches and watch is not None:
            raise UsageError(
                "Training in batches watches no test nodes: that would cost more than the epochs. Leave out watch."
            )
        if batches:
            self.work = Batched(graph, settings, batches, fold=fold, seed=seed, ranks=self.ranks)
        elif isinstance(graph, DiskGraph):
            raise UsageError(
                f"Graph {graph.name!r} is on disk: it is trained in batches (batches=Batches(...), or --batch-size)."
            )
        else:
            self.work = WholeGraph(graph, settings, fold=fold, seed=seed, watch=watch)
        self.network = self.work.network
        what = (settings.identity(), fold, seed, graph.digest)
        sampling = (batches, self.ranks.size) if batches else ()
        self.identity = hashlib.sha256(repr((*what, *sampling)).encode()).hexdigest()
        self.history: dict[str, list[float]] = {}
        self.best: dict[str, Tensor] = {}
        self.best_key, self.best_epoch, self.epoch, self.seconds = (
            (-math.inf, -math.inf),
            -1,
            0,
            0.0,
        )
        self._device = next(self.network.parameters()).device
        with own_random_numbers(self._device):
            seed_random(seed, self._device)
            state = TrainingState.load(checkpoint, self.identity) if checkpoint else None
            if state:
                try:
                    self.best = state.restore(
                        self.network, self.work.objective, self.work.optimiser
                    )
                except (RuntimeError, KeyError, ValueError, TypeError) as error:
                    raise UnusableState(
                        f"{checkpoint} is the training state of another model"
                    ) from error
                self.history, self.best_epoch, self.best_key = (
                    state.history,
                    state.best_epoch,
                    state.best_key,
                )
                self.epoch, self.seconds = state.epoch, state.seconds
                self.work.step, self.work.sums = state.step, state.sums
                if self.epoch and ("test_accuracy" in self.history) != (
                    watch is not None and len(watch) > 0
                ):
                    raise UnusableState(
                        f"{checkpoint} is the state of a training that watched {'no ' if watch is not None else ''}test nodes"
                    )
            self._random = random_state(self._device)
        self.ranks.agree_on(
            "graph, settings and state",
            int(self.identity[:8], 16) + self.epoch * self.work.steps + self.work.step,
        )

    @property
    def ended(self) -> bool:
        """Whether patience or epochs have run out."""
        return (
            self.epoch >= self.settings.epochs
            or self.epoch - self.best_epoch > self.settings.patience
        )

    def advance(
        self,
        interrupt: threading.Event,
        until: int | None = None,
        *,
        report: Report | None = None,
        checkpoint_every: float = 1.0,
    ) -> None:
        """Train until so many epochs are done, or to the end; or until it is interrupted."""
        with (
            own_random_numbers(self._device),
            reused_memory(self.work.layer_bytes),
            subnormals_flushed(),
        ):
            set_random_state(self._random, self._device)
            before, start = self.seconds, time.perf_counter()
            due, keeping = start + checkpoint_every, 0.0
            while (
                not self.ended
                and (until is None or self.epoch < until)
                and not self.ranks.any(interrupt.is_set())
            ):
                self.work.advance(self.epoch)
                self._require_finite("loss", self.work.sums["total"])
                row = self._end_epoch() if self.work.step == self.work.steps else None
                self.seconds = before + time.perf_counter() - start - keeping
                if report and row:
                    report(self.epoch - 1, row)
                if self.checkpoint and (begun := time.perf_counter()) >= due:
                    self._keep(self.checkpoint)
                    took = time.perf_counter() - begun
                    due, keeping = begun + max(checkpoint_every, took / KEEPING), keeping + took
            self.seconds = before + time.perf_counter() - start - keeping
            if self.checkpoint:
                self._keep(self.checkpoint)
            self._random = random_state(self._device)

    def _end_epoch(self) -> dict[str, float]:
        """One look at the validation nodes, and the best weights kept."""
        row = {
            name: total / self.work.steps for name, total in self.work.sums.items()
        } | self.work.validate()
        self._require_finite("validation loss", row["val_loss"])
        for name, value in row.items():
            self.history.setdefault(name, []).append(value)
        key = self.key(self.epoch)
        if key > self.best_key:
            self.best_key, self.best_epoch = key, self.epoch
            self.best = {
                name: value.detach().clone() for name, value in self.network.state_dict().items()
            }
        self.epoch += 1
        self.work.step, self.work.sums = 0, {}
        return row

    def key(self, epoch: int) -> tuple[float, float]:
        """What makes an epoch better than another: higher is better, ties by loss; with monitor="loss" the loss alone counts."""
        monitor = self.settings.monitor
        return 0.0 if monitor == "loss" else self.history[history_name(monitor)][
            epoch
        ], -self.history["val_loss"][epoch]

    def best_within(self, epochs: int) -> tuple[float, float]:
        """The best key among the first so many epochs."""
        return max(
            (self.key(epoch) for epoch in range(min(epochs, self.epoch))),
            default=(-math.inf, -math.inf),
        )

    def _require_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            raise Diverged(
                f"The {what} became {value} in epoch {self.epoch}: lower the learning rates or the terms' weights."
            )

    def _keep(self, path: Path) -> None:
        if self.ranks.first:
            TrainingState.capture(self).save(path)

    def result(self, *, interrupted: bool = False) -> Fitted:
        """The network with the weights of the best epoch so far."""
        if not self.best:
            raise KeyboardInterrupt
        self.network.load_state_dict(self.best)
        self.network.eval()
        self.network.clear_cache()
        metrics = {
            name: values[self.best_epoch]
            for name, values in self.history.items()
            if name.startswith("val_")
        }
        graph = self.graph
        return Fitted(
            self.network, self.settings, graph.classes, graph.name, graph.digest, self.fold, self.seed, self.best_epoch, self.history,
            metrics, self.seconds, interrupted,
        )  # fmt: skip


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
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # only the main thread may set a handler, or gets Ctrl-C
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
