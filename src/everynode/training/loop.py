"""The training loop: epochs of gradient steps, early stopping on the validation nodes."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from everynode import plugins
from everynode.batches import Batches
from everynode.errors import Diverged, UsageError
from everynode.evaluation.metrics import LOSSES, accuracy
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.machine import usable_device
from everynode.numerics import subnormals_flushed
from everynode.settings import Settings
from everynode.training.checkpoint import TrainingState, UnusableState
from everynode.training.closed_form import Solved, is_closed_form
from everynode.training.distributed import CPU, Ranks
from everynode.training.full_batch import WholeGraph, history_name
from everynode.training.interrupt import deferred_interrupt
from everynode.training.memory import reused_memory
from everynode.training.mini_batch.work import Batched
from everynode.training.random_state import (
    own_random_numbers,
    random_state,
    seed_random,
    set_random_state,
)
from everynode.training.result import TrainingResult
from everynode.training.step_runner import StepRunner

#: Largest share of the time that goes into writing checkpoints.
SAVING_SHARE = 0.02
#: Least number of seconds between two checkpoints.
CHECKPOINT_EVERY = 1.0
#: Called after every epoch with its number and its row of the history.
Report = Callable[[int, dict[str, float]], None]


def train(
    graph: Graph | DiskGraph,
    settings: Settings | None = None,
    *,
    fold: int = 0,
    seed: int = 0,
    device: torch.device | str | None = None,
    report: Report | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
    test_nodes: Tensor | None = None,
    batches: Batches | None = None,
    ranks: Ranks | None = None,
) -> TrainingResult:
    """Train on one fold of a graph; return the model of the best validation epoch.

    The first Ctrl-C ends the training after the current step and keeps the best model so far; the
    second one ends it at once.

    Parameters
    ----------
    graph
        The graph. A graph on disk needs ``batches``.
    settings
        Model, objective and optimization; None takes the defaults.
    fold, seed
        Fold of the graph's splits, and seed of all random numbers.
    device
        Device to train on; None: the graph's. With ``batches`` the graph stays where it is, and
        only the batches are moved. With ``ranks``, their device counts.
    report
        Function called after every epoch.
    checkpoint
        File for the state of the training. If it exists, the training continues from it and ends
        bit for bit as an undisturbed training would.
    checkpoint_every
        Least number of seconds between two checkpoints. A state that takes long to write is
        written less often.
    test_nodes
        Nodes whose accuracy goes into the history after every epoch. It influences nothing.
    batches
        Train on mini-batches; None: on the whole graph.
    ranks
        The processes that share each step. All of them call this function with equal arguments;
        the first one writes the checkpoints.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> result = train(generate(60, 120, 4, 2), Settings(hidden_channels=4, epochs=3))
    >>> result.epochs, sorted(result.metrics)
    (3, ['val_accuracy', 'val_loss'])
    """
    training = Training(
        graph,
        settings or Settings(),
        fold=fold,
        seed=seed,
        device=device,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        test_nodes=test_nodes,
        batches=batches,
        ranks=ranks,
    )
    with deferred_interrupt() as interrupt:
        training.advance(interrupt, report=report, checkpoint_every=checkpoint_every)
        interrupted = training.ranks.any(interrupt.is_set())
    return training.result(interrupted=interrupted)


class Training:
    """A training that may pause after any epoch and continue.

    It has its own random numbers: nothing that happens during a pause changes the result.
    Parameters are those of :func:`train`.

    Parameters
    ----------
    graph, settings, fold, seed, device, checkpoint, test_nodes, batches, ranks
        See :func:`train`.

    Attributes
    ----------
    epoch : int
        Completed epochs.
    history : dict of lists
        One value per completed epoch.
    best_epoch : int
        The epoch with the highest :meth:`key` so far.
    identity : str
        Digest of everything that decides the result; a checkpoint continues only its own training.
    network : Model
        The model in training.
    runner : StepRunner
        Takes the steps and validates.
    best : dict of str to Tensor
        The parameters of the best epoch.
    best_key : tuple of float
        Its :meth:`key`.
    seconds : float
        Time spent on the completed epochs.
    """

    def __init__(
        self,
        graph: Graph | DiskGraph,
        settings: Settings,
        *,
        fold: int = 0,
        seed: int = 0,
        device: torch.device | str | None = None,
        checkpoint: Path | None = None,
        test_nodes: Tensor | None = None,
        batches: Batches | None = None,
        ranks: Ranks | None = None,
    ):
        if batches and test_nodes is not None:
            raise UsageError(
                "Mini-batch training cannot score test nodes in every epoch: leave out test_nodes."
            )
        if not batches and isinstance(graph, DiskGraph):
            raise UsageError(
                f"Graph {graph.name!r} is on disk, so it needs mini-batches: "
                "pass batches=Batches(...), or --batch-size."
            )
        target = None if device is None else usable_device(device)
        self.ranks = ranks or Ranks(device=target or CPU)
        self.runner: StepRunner
        if batches:
            self.runner = Batched(graph, settings, batches, fold=fold, seed=seed, ranks=self.ranks)
        else:
            assert isinstance(graph, Graph)
            graph = graph if target is None else graph.to(target)
            test_nodes = None if test_nodes is None else test_nodes.to(graph.labels.device)
            kind: type[Solved | WholeGraph] = Solved if is_closed_form(settings) else WholeGraph
            self.runner = kind(graph, settings, fold=fold, seed=seed, watch=test_nodes)
        self.graph, self.settings, self.fold, self.seed = graph, settings, fold, seed
        self.batches = batches
        self.checkpoint = checkpoint
        self.network = self.runner.network
        self.identity = self._identity(batches)
        self.history: dict[str, list[float]] = {}
        self.best: dict[str, Tensor] = {}
        self.best_key, self.best_epoch = (-math.inf, -math.inf), -1
        self.epoch, self.seconds = 0, 0.0
        self._device = self.network.device
        with own_random_numbers(self._device):
            seed_random(seed, self._device)
            if checkpoint and (state := TrainingState.load(checkpoint, self.identity)):
                self._resume(state, checkpoint, test_nodes)
            self._random = random_state(self._device)
        steps = self.epoch * self.runner.steps + self.runner.step
        self.ranks.agree_on("graph, settings and state", int(self.identity[:8], 16) + steps)

    def _identity(self, batches: Batches | None) -> str:
        settings = self.settings
        content: list[object] = [settings.identity(), self.fold, self.seed, self.graph.digest]
        if batches:
            content += [batches, self.ranks.size]
        if source := plugins.digest({settings.backbone, *settings.active_terms()}):
            content += [source]
        return hashlib.sha256(repr(tuple(content)).encode()).hexdigest()

    def _resume(self, state: TrainingState, path: Path, test_nodes: Tensor | None) -> None:
        try:
            self._take(state)
        except (RuntimeError, KeyError, ValueError, TypeError) as error:
            raise UnusableState(f"{path} is the training state of another model") from error
        scored = test_nodes is not None and len(test_nodes) > 0
        if self.epoch and ("test_accuracy" in self.history) != scored:
            without = "without" if scored else "with"
            raise UnusableState(f"{path} is the state of a training {without} test_nodes")

    def _take(self, state: TrainingState) -> None:
        runner = self.runner
        self.best = state.restore(self.network, runner.objective, runner.optimizer)
        self.history, self.best_epoch, self.best_key = (
            state.history,
            state.best_epoch,
            state.best_key,
        )
        self.epoch, self.seconds = state.epoch, state.seconds
        runner.step, runner.sums = state.step, state.sums

    def state(self) -> TrainingState:
        """Return the state during a pause; :meth:`restore` of an equal training continues it."""
        with own_random_numbers(self._device):
            set_random_state(self._random, self._device)
            return TrainingState.capture(self)

    def restore(self, state: TrainingState) -> None:
        """Continue from the state of an equal training."""
        with own_random_numbers(self._device):
            self._take(state)
            self._random = random_state(self._device)

    @property
    def ended(self) -> bool:
        """Whether the epochs, or the patience of early stopping, have run out."""
        waited = self.epoch - self.best_epoch
        epochs = min(self.settings.epochs, self.runner.most_epochs)
        return self.epoch >= epochs or waited > self.settings.patience

    def advance(
        self,
        interrupt: threading.Event,
        until: int | None = None,
        *,
        report: Report | None = None,
        checkpoint_every: float = CHECKPOINT_EVERY,
    ) -> None:
        """Train until ``until`` epochs are done (None: to the end), or until the interrupt."""
        runner = self.runner
        with (
            own_random_numbers(self._device),
            reused_memory(runner.layer_bytes),
            subnormals_flushed(),
        ):
            set_random_state(self._random, self._device)
            start, saving = time.perf_counter() - self.seconds, 0.0
            next_save = time.perf_counter() + checkpoint_every
            while not self.ended and (until is None or self.epoch < until):
                if self.ranks.any(interrupt.is_set()):
                    break
                row = self.step()
                self.seconds = time.perf_counter() - start - saving
                if report and row:
                    report(self.epoch - 1, row)
                now = time.perf_counter()
                if self.checkpoint and now >= next_save:
                    took = self._save(self.checkpoint)
                    next_save = now + max(checkpoint_every, took / SAVING_SHARE)
                    saving += took
            self.seconds = time.perf_counter() - start - saving
            if self.checkpoint:
                self._save(self.checkpoint)
            self._random = random_state(self._device)

    def step(self) -> dict[str, float] | None:
        """Take one step; after the last one of an epoch, validate and return the epoch's row."""
        self.runner.advance(self.epoch)
        self._require_finite("loss", self.runner.sums["total"])
        return self._end_epoch() if self.runner.step == self.runner.steps else None

    def _end_epoch(self) -> dict[str, float]:
        """Validate, add a row to the history, keep the weights if they are the best so far."""
        runner = self.runner
        row = {name: total / runner.steps for name, total in runner.sums.items()}
        row |= runner.validate()
        self._require_finite("validation loss", row["val_loss"])
        for name, value in row.items():
            self.history.setdefault(name, []).append(value)
        key = self.key(self.epoch)
        if key > self.best_key:
            self.best_key, self.best_epoch = key, self.epoch
            weights = self.network.state_dict()
            self.best = {name: value.detach().clone() for name, value in weights.items()}
        self.epoch += 1
        runner.step, runner.sums = 0, {}
        return row

    def key(self, epoch: int) -> tuple[float, float]:
        """Return the score of an epoch: the monitored metric, then minus the validation loss."""
        monitor, loss = self.settings.monitor, self.history["val_loss"][epoch]
        metric = 0.0 if monitor == "loss" else self.history[history_name(monitor)][epoch]
        return -metric if monitor in LOSSES else metric, -loss

    def best_within(self, epochs: int) -> tuple[float, float]:
        """Return the highest :meth:`key` among the first ``epochs`` epochs."""
        keys = (self.key(epoch) for epoch in range(min(epochs, self.epoch)))
        return max(keys, default=(-math.inf, -math.inf))

    def _require_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            raise Diverged(
                f"The {what} became {value} in epoch {self.epoch}: "
                "lower the learning rates or the weights of the terms."
            )

    def _save(self, path: Path) -> float:
        """Write the state; return the seconds that this took."""
        start = time.perf_counter()
        if self.ranks.first:
            TrainingState.capture(self).save(path)
        return time.perf_counter() - start

    def result(self, *, interrupted: bool = False) -> TrainingResult:
        """Return the model with the weights of the best epoch so far."""
        if not self.best:
            raise KeyboardInterrupt
        self.network.load_state_dict(self.best)
        self.network.eval()
        self.network.clear_cache()
        best = {name: values[self.best_epoch] for name, values in self.history.items()}
        return TrainingResult(
            network=self.network,
            settings=self.settings,
            classes=self.graph.classes,
            graph_name=self.graph.name,
            graph_digest=self.graph.digest,
            fold=self.fold,
            seed=self.seed,
            best_epoch=self.best_epoch,
            history=self.history,
            metrics={name: value for name, value in best.items() if name.startswith("val_")},
            seconds=self.seconds,
            interrupted=interrupted,
            batches=self.batches,
        )


def evaluate(network: nn.Module, graph: Graph, part: str = "test", fold: int = 0) -> float | None:
    """Return the accuracy on the labeled nodes of 'train', 'val' or 'test'; None without any."""
    nodes = graph.nodes(part, fold)
    if not len(nodes):
        return None
    network.eval()
    with torch.no_grad():
        return accuracy(network(graph)[nodes], graph.labels[nodes])
