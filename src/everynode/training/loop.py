"""The loop: one step of Adam on the objective, one look at the validation nodes, until patience runs out."""

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
from typing import Any

import torch
from torch import Tensor, nn

from everynode.backbones import Network
from everynode.errors import DataError, EverynodeError
from everynode.graph import Graph
from everynode.metrics import METRICS, accuracy
from everynode.objectives import ENC
from everynode.settings import Settings
from everynode.training.checkpoint import TrainingState
from everynode.training.memory import reused_memory

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


def build(graph: Graph, settings: Settings, *, fold: int, seed: int) -> tuple[Network, ENC, torch.optim.Adam]:
    """Network, objective and optimiser for a run; one seed, but each draws from a generator of its own."""
    if graph.num_classes < 2:
        raise DataError(f"Graph {graph.name!r} has {graph.num_classes} class(es), nothing to tell apart: label nodes of two classes.")
    network = Network(graph.num_features, graph.num_classes, seed=seed, **settings.network_options())
    network.to(device=graph.labels.device, dtype=graph.dtype)
    objective = ENC(graph, fold=fold, seed=seed, **settings.objective_options()).to(graph.labels.device)
    groups = network.parameter_groups()
    optimiser = torch.optim.Adam(
        [
            {"params": groups["gnn"], "lr": settings.lr_gnn, "weight_decay": settings.wd_gnn},
            {"params": groups["oc"], "lr": settings.lr_oc, "weight_decay": settings.wd_oc},
        ],
        fused=True,
    )
    return network, objective, optimiser


def fit(
    graph: Graph,
    settings: Settings | None = None,
    *,
    fold: int = 0,
    seed: int = 0,
    report: Report | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_every: float = 1.0,
    watch: Tensor | None = None,
) -> Fitted:
    """Train on one fold of a graph and return the network with the weights of its best validation epoch.

    With ``checkpoint``, the state of the training is kept in that file (at most every ``checkpoint_every`` seconds, and when
    interrupted) and training goes on from it if it is there; it then ends bit for bit where it would have ended undisturbed.
    Ctrl-C ends the training after the epoch in hand and keeps the best so far; a second one ends it at once. ``watch``: test nodes,
    whose accuracy after each epoch is kept in the history and decides nothing.
    """
    checkpoint = None if checkpoint is None else Path(checkpoint)
    training = Training(graph, settings or Settings(), fold=fold, seed=seed, checkpoint=checkpoint, watch=watch)
    with deferred_interrupt() as interrupt:
        training.advance(interrupt, report=report, checkpoint_every=checkpoint_every)
    return training.result(interrupted=interrupt.is_set())


class Training:
    """A training that may pause after any epoch and go on: :func:`fit` runs one to its end, a race several side by side.

    It has its own random numbers, so what happens in a pause changes nothing.
    """

    def __init__(
        self, graph: Graph, settings: Settings, *, fold: int = 0, seed: int = 0, checkpoint: Path | None = None, watch: Tensor | None = None
    ):
        self.graph, self.settings, self.fold, self.seed, self.checkpoint, self.watch = graph, settings, fold, seed, checkpoint, watch
        val = graph.nodes("val", fold)
        if not len(val):
            raise DataError(f"Fold {fold} of graph {graph.name!r} has no labelled validation node to select the epoch by: set some apart.")
        self.val_labels = graph.labels[val]
        if settings.select == "auc" and len(self.val_labels.unique()) < 2:
            raise DataError(f"The validation nodes of graph {graph.name!r} are of one class, which has no AUC: select by another metric.")
        self.looked_at = val if watch is None else torch.cat([val, watch])
        self.network, self.objective, self.optimiser = build(graph, settings, fold=fold, seed=seed)
        self.identity = hashlib.sha256(repr((settings, fold, seed, graph.digest)).encode()).hexdigest()
        self.history: dict[str, list[float]] = {}
        self.best: dict[str, Tensor] = {}
        self.best_key, self.best_epoch, self.epoch, self.seconds = (-math.inf, -math.inf), -1, 0, 0.0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            state = TrainingState.load(checkpoint, self.identity) if checkpoint else None
            if state:
                try:
                    self.best = state.restore(self.network, self.objective, self.optimiser)
                except (RuntimeError, KeyError, ValueError, TypeError) as error:
                    raise DataError(f"{checkpoint} is the training state of another model: --no-resume starts over.") from error
                self.history, self.best_epoch, self.best_key = state.history, state.best_epoch, state.best_key
                self.epoch, self.seconds = state.epoch, state.seconds
            self._random = torch.get_rng_state()

    @property
    def ended(self) -> bool:
        """Whether patience or epochs have run out."""
        return self.epoch >= self.settings.epochs or self.epoch - self.best_epoch > self.settings.patience

    def advance(
        self, interrupt: threading.Event, until: int | None = None, *, report: Report | None = None, checkpoint_every: float = 1.0
    ) -> None:
        """Train until so many epochs are done, or to the end; or until it is interrupted."""
        with torch.random.fork_rng(devices=[]), reused_memory():
            torch.set_rng_state(self._random)
            before, start = self.seconds, time.perf_counter()
            saved = start
            while not self.ended and (until is None or self.epoch < until) and not interrupt.is_set():
                row = self._epoch()
                self.seconds = before + time.perf_counter() - start
                if report:
                    report(self.epoch - 1, row)
                if self.checkpoint and time.perf_counter() - saved >= checkpoint_every:
                    self._keep(self.checkpoint)
                    saved = time.perf_counter()
            self.seconds = before + time.perf_counter() - start
            if self.checkpoint:
                self._keep(self.checkpoint)
            self._random = torch.get_rng_state()

    def _epoch(self) -> dict[str, float]:
        """One step, one look at the validation nodes, and the best weights kept."""
        row = step(self.network, self.objective, self.optimiser, self.graph)
        self._require_finite("loss", row["total"])
        row |= validate(self.network, self.graph, self.looked_at, self.val_labels, self.watch, self.settings.select)
        self._require_finite("validation loss", row["val_loss"])
        for name, value in row.items():
            self.history.setdefault(name, []).append(value)
        key = self.key(self.epoch)
        if key > self.best_key:
            self.best_key, self.best_epoch = key, self.epoch
            self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        self.epoch += 1
        return row

    def key(self, epoch: int) -> tuple[float, float]:
        """What makes an epoch better than another: higher is better, ties by loss; with select="loss" the loss alone counts."""
        select = self.settings.select
        return 0.0 if select == "loss" else self.history[history_name(select)][epoch], -self.history["val_loss"][epoch]

    def best_within(self, epochs: int) -> tuple[float, float]:
        """The best key among the first so many epochs."""
        return max((self.key(epoch) for epoch in range(min(epochs, self.epoch))), default=(-math.inf, -math.inf))

    def _require_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            raise EverynodeError(f"The {what} became {value} in epoch {self.epoch}: lower the learning rates or the terms' weights.")

    def _keep(self, path: Path) -> None:
        TrainingState.capture(
            self.network, self.objective, self.optimiser, self.best, self.identity, self.history, self.best_epoch, self.best_key,
            self.epoch, self.seconds,
        ).save(path)  # fmt: skip

    def result(self, *, interrupted: bool = False) -> Fitted:
        """The network with the weights of the best epoch so far."""
        if not self.best:
            raise KeyboardInterrupt
        self.network.load_state_dict(self.best)
        self.network.eval()
        metrics = {name: values[self.best_epoch] for name, values in self.history.items() if name.startswith("val_")}
        graph = self.graph
        return Fitted(
            self.network, self.settings, graph.classes, graph.name, graph.digest, self.fold, self.seed, self.best_epoch, self.history,
            metrics, self.seconds, interrupted,
        )  # fmt: skip


def step(network: Network, objective: ENC, optimiser: torch.optim.Optimizer, graph: Graph) -> dict[str, float]:
    """One training step; each term before weighting, and ``total``."""
    network.train()
    terms = objective.breakdown(network(graph), network)
    optimiser.zero_grad()
    terms["total"].backward()
    optimiser.step()
    return {name: value.item() for name, value in terms.items()}


def history_name(select: str) -> str:
    """What a validation metric is called in the history.

    >>> history_name("macro-f1")
    'val_macro_f1'
    """
    return f"val_{select.replace('-', '_')}"


def validate(
    network: Network, graph: Graph, looked_at: Tensor, labels: Tensor, watch: Tensor | None = None, select: str = "accuracy"
) -> dict[str, float]:
    """``val_loss``, ``val_accuracy``, what else selects; and ``test_accuracy``, where there are test nodes to ``watch``.

    ``looked_at``: the validation nodes, which have these ``labels``, and after them the nodes to watch: all in one pass.
    """
    network.eval()
    with torch.no_grad():
        logits, watched = network(graph, looked_at).tensor_split([len(labels)])
        row = {"val_loss": nn.functional.cross_entropy(logits, labels).item(), "val_accuracy": accuracy(logits, labels)}
        if select not in ("loss", "accuracy"):
            row[history_name(select)] = METRICS[select](logits, labels)
        if watch is not None and len(watch):
            row["test_accuracy"] = accuracy(watched, graph.labels[watch])
    return row


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
