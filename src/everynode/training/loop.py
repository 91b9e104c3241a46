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
    settings = settings or Settings()
    checkpoint = None if checkpoint is None else Path(checkpoint)
    val = graph.nodes("val", fold)
    if not len(val):
        raise DataError(f"Fold {fold} of graph {graph.name!r} has no labelled validation node to select the epoch by: set some apart.")
    val_labels = graph.labels[val]
    if settings.select == "auc" and len(val_labels.unique()) < 2:
        raise DataError(f"The validation nodes of graph {graph.name!r} are of one class, which has no AUC: select by another metric.")
    looked_at = val if watch is None else torch.cat([val, watch])
    network, objective, optimiser = build(graph, settings, fold=fold, seed=seed)
    identity = hashlib.sha256(repr((settings, fold, seed, graph.digest)).encode()).hexdigest()
    history: dict[str, list[float]] = {}
    best: dict[str, Tensor] = {}
    best_key, best_epoch, epoch = (-math.inf, -math.inf), -1, 0
    before = 0.0
    with torch.random.fork_rng(devices=[]), reused_memory(), deferred_interrupt() as interrupt:
        torch.manual_seed(seed)
        state = TrainingState.load(checkpoint, identity) if checkpoint else None
        if state:
            try:
                best = state.restore(network, objective, optimiser)
            except (RuntimeError, KeyError, ValueError, TypeError) as error:
                raise DataError(f"{checkpoint} is the training state of another model: --no-resume starts over.") from error
            history, best_epoch, best_key = state.history, state.best_epoch, state.best_key
            epoch, before = state.epoch, state.seconds
        start = saved = time.perf_counter()

        def keep(path: Path) -> None:
            seconds = before + time.perf_counter() - start
            TrainingState.capture(network, objective, optimiser, best, identity, history, best_epoch, best_key, epoch, seconds).save(path)

        while epoch < settings.epochs and epoch - best_epoch <= settings.patience and not interrupt.is_set():
            row = step(network, objective, optimiser, graph)
            if not math.isfinite(row["total"]):
                raise EverynodeError(f"The loss became {row['total']} in epoch {epoch}: lower the learning rates or the terms' weights.")
            row |= validate(network, graph, looked_at, val_labels, watch, settings.select)
            if not math.isfinite(row["val_loss"]):
                why = f"The validation loss became {row['val_loss']} in epoch {epoch}: lower the learning rates or the terms' weights."
                raise EverynodeError(why)
            for name, value in row.items():
                history.setdefault(name, []).append(value)
            # Higher is better, ties by loss; with select="loss" the loss alone counts.
            key = (0.0 if settings.select == "loss" else row[history_name(settings.select)], -row["val_loss"])
            if key > best_key:
                best_key, best_epoch = key, epoch
                best = {name: value.detach().clone() for name, value in network.state_dict().items()}
            epoch += 1
            if report:
                report(epoch - 1, row)
            if checkpoint and time.perf_counter() - saved >= checkpoint_every:
                keep(checkpoint)
                saved = time.perf_counter()
        seconds = before + time.perf_counter() - start
        if checkpoint:
            keep(checkpoint)
    if not best:
        raise KeyboardInterrupt
    network.load_state_dict(best)
    network.eval()
    metrics = {name: values[best_epoch] for name, values in history.items() if name.startswith("val_")}
    stopped = interrupt.is_set()
    return Fitted(network, settings, graph.classes, graph.name, graph.digest, fold, seed, best_epoch, history, metrics, seconds, stopped)


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
