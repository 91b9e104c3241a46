"""Successive halving: candidates train side by side, and the worse ones stop early.

Paper: `Non-stochastic Best Arm Identification and Hyperparameter Optimization
<https://arxiv.org/abs/1502.07943>`_ (Jamieson and Talwalkar 2016).
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from everynode.batches import Batches
from everynode.errors import Diverged, require
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.storage.plain_values import from_plain
from everynode.training.callbacks import replay_epochs
from everynode.training.full_batch import history_name
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training
from everynode.training.result import TrainingResult
from everynode.training.side_by_side import Leg, pays, side_by_side

#: The epochs of each round and the candidates left after it (docs/archive/accuracy.md, "Safe by
#: default").
ROUNDS = ((20, 3), (40, 2), (80, 1))
#: Where folds share the epochs, there is one round. Its epochs, and the least epochs and patience
#: of a fold.
SHARED_ROUND, SHORTEST_ROUND, LEAST_PATIENCE = 60, 10, 20

#: Called after every epoch with the candidate (and its fold), the epoch and its history row.
CandidateReport = Callable[[str, int, dict[str, float]], None]


@dataclass(frozen=True)
class Standing:
    """The result of one candidate, averaged over the folds that it started.

    Parameters
    ----------
    val_accuracy, val_loss : float
        Validation accuracy and loss at the best epoch; NaN without one.
    epochs : int
        The number of epochs trained.
    outcome : str
        ``won``, ``stopped`` after a round, ``not started``, or the error that ended it.
    val_score : float
        The monitored metric; with ``monitor="loss"`` the loss.
    """

    val_accuracy: float
    val_loss: float
    epochs: int
    outcome: str
    val_score: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with None for NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Standing:
        """Build a standing from JSON."""
        absent: dict[str, Any] = {name: math.nan for name, x in values.items() if x is None}
        standing = from_plain(cls, {**values, **dict.fromkeys(absent, 0)})
        return dataclasses.replace(standing, **absent)


def successive_halving(
    graph: Graph,
    candidates: Mapping[str, Settings],
    *,
    folds: Sequence[int] = (0,),
    share: bool = False,
    seed: int = 0,
    report: CandidateReport | None = None,
    checkpoint: Path | None = None,
    prefix: str = "",
    workers: int | None = None,
    batches: Batches | None = None,
    show: CandidateReport | None = None,
) -> tuple[list[TrainingResult], dict[str, Standing]]:
    """Return the trained networks of the best candidate, and the standing of each candidate.

    All candidates train for the first of :data:`ROUNDS`, the best of them for the next one, and the
    last one to its end. They are compared by the metric that selects the epoch, on the validation
    nodes only. On a tie the earlier candidate wins, so list the simplest first. A candidate that
    diverges is out, and the next one takes its place.

    The default candidates take about twice as long as one training of cross-entropy
    (docs/archive/accuracy.md, "Safe by default" and "Few labels").

    Parameters
    ----------
    graph : Graph
        The graph with its folds.
    candidates : mapping of str to Settings
        The candidates by name.
    folds : sequence of int
        The folds of cross-validation. A candidate trains on each of them, with consecutive seeds,
        and its mean over the validation nodes counts. The result has one network per fold.
    share : bool
        Run one round, and divide its epochs and the patience among the folds.
    seed : int
        The seed of the first fold.
    report : callable, optional
        Called after every epoch; see :data:`CandidateReport`.
    checkpoint : Path, optional
        A folder for the state of every candidate. The same call continues from there. Ctrl-C ends
        training after the current epoch with the best result so far.
    prefix : str
        The start of the names of the files in ``checkpoint``.
    workers : int, optional
        Trainings at once; None: one per core. Those in other processes are reported when they end.
    batches : Batches, optional
        The mini-batches; None: the full graph.
    show : callable, optional
        Shows the progress of those in other processes.
    """
    owner = "successive_halving"
    require(len(candidates) > 0, "candidates", owner, "at least one candidate", len(candidates))
    require(len(folds) > 0, "folds", owner, "at least one fold", len(folds))
    sharing = len(folds) if share else 1
    rounds = ((max(SHARED_ROUND // sharing, SHORTEST_ROUND), 1),) if sharing > 1 else ROUNDS
    field = _Field(graph, folds, report, workers, show)
    for name, settings in candidates.items():
        patience = min(settings.patience, max(settings.patience // sharing, LEAST_PATIENCE))
        patient = dataclasses.replace(settings, patience=patience)
        states = checkpoint / f"{prefix}{name}" if checkpoint else None
        field.add(name, patient, seed=seed, states=states, batches=batches)

    with deferred_interrupt() as interrupt:
        winner, networks = field.race(rounds, interrupt)
    standings = {
        name: field.standing(name, settings.monitor, won=name == winner)
        for name, settings in candidates.items()
    }
    return [t.result(interrupted=interrupt.is_set()) for t in networks], standings


class _Field:
    """The trainings of all candidates, one per fold."""

    def __init__(
        self,
        graph: Graph,
        folds: Sequence[int],
        report: CandidateReport | None,
        workers: int | None,
        show: CandidateReport | None,
    ):
        self.folds = folds
        #: The number of validation nodes of each fold.
        self.sizes = [float(len(graph.nodes("val", fold))) for fold in folds]
        self.graph, self.report, self.workers, self.show = graph, report, workers, show
        self.trainings: dict[str, list[Training]] = {}
        self.failed: dict[str, Diverged] = {}

    def add(
        self, name: str, settings: Settings, *, seed: int, states: Path | None,
        batches: Batches | None,
    ) -> None:  # fmt: skip
        """Add a candidate: a training on each fold, with consecutive seeds."""
        self.trainings[name] = []
        for number, fold in enumerate(self.folds):
            suffix = "" if len(self.folds) == 1 else f"-fold-{number + 1}"
            state = states and states.with_name(f"{states.name}{suffix}.safetensors")
            training = Training(
                self.graph,
                settings,
                fold=fold,
                seed=seed + number,
                checkpoint=state,
                batches=batches,
            )
            self.trainings[name].append(training)

    def alive(self, names: Iterable[str]) -> list[str]:
        """Return the candidates that have not diverged."""
        return [name for name in names if name not in self.failed]

    def race(
        self, rounds: Sequence[tuple[int, int]], interrupt: threading.Event
    ) -> tuple[str, list[Training]]:
        """Train in rounds, and return the winner with those of its trainings that started."""
        # `order`: the best first. The first `places` of them train in the next round.
        order, places = list(self.trainings), len(self.trainings)
        for epochs, left in rounds:
            self.train(order[:places], epochs, interrupt)
            order = [*self.ranked(order[:places], epochs), *self.alive(order[places:])]
            places = left
        for name in order:  # the next one only if the best diverges
            self.train([name], None, interrupt)
            if name not in self.failed:
                break
        for name in self.alive(order):
            started = [training for training in self.trainings[name] if training.best]
            if started:
                return name, started
        if self.failed:
            raise next(iter(self.failed.values()))
        raise KeyboardInterrupt

    def train(self, names: Iterable[str], until: int | None, interrupt: threading.Event) -> None:
        """Train candidates up to an epoch; None: to their end."""
        names = list(names)
        if pays(self.graph, sum(len(self.trainings[name]) for name in names), self.workers):
            self._train_side_by_side(names, until, interrupt)
            return
        for name in names:
            try:
                for number, training in enumerate(self.trainings[name], start=1):
                    reporter = self._reporter(self._title(name, number))
                    training.advance(interrupt, until, report=reporter)
            except Diverged as error:
                self.failed[name] = error

    def _train_side_by_side(
        self, names: Sequence[str], until: int | None, interrupt: threading.Event
    ) -> None:
        places = [(name, i) for name in names for i in range(len(self.trainings[name]))]
        trainings = [self.trainings[name][i] for name, i in places]
        titles = [self._title(name, i + 1) for name, i in places]
        legs: dict[tuple[str, int], Leg] = {}

        def show(number: int, epoch: int, row: dict[str, float]) -> None:
            assert self.show is not None
            self.show(titles[number], epoch, row)

        for leg in side_by_side(
            trainings, interrupt, until, workers=self.workers, show=self.show and show
        ):
            legs[places[leg.number]] = leg
            reporter = self._reporter(titles[leg.number])
            if reporter is not None:
                replay_epochs(reporter, leg.state.history, trainings[leg.number].epoch)
        for (name, i), training in zip(places, trainings, strict=True):
            if name not in self.failed:  # after a fold that diverged, the next ones do not count
                leg = legs[name, i]
                training.restore(leg.state)
                if leg.error is not None:
                    self.failed[name] = leg.error

    def _title(self, name: str, number: int) -> str:
        """Return the name of a candidate, with its fold if there are several."""
        count = len(self.trainings[name])
        return name if count == 1 else f"{name} fold {number}/{count}"

    def _reporter(self, title: str) -> Callable[[int, dict[str, float]], None] | None:
        report = self.report
        return None if report is None else lambda epoch, row: report(title, epoch, row)

    def ranked(self, names: Sequence[str], epochs: int) -> list[str]:
        """Return candidates, the best first, by their first epochs: a resumed run may have more."""
        keys = {
            name: self._mean([t.best_within(epochs) for t in self.trainings[name]])
            for name in self.alive(names)
        }
        in_order = [name for name in self.trainings if name in keys]  # for ties
        return sorted(in_order, key=lambda name: keys[name], reverse=True)

    def _mean(self, keys: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Return the mean over all validation nodes of the metric, then of the loss."""
        return tuple(
            sum(size * key for size, key in zip(self.sizes, part, strict=True)) / sum(self.sizes)
            for part in zip(*keys, strict=True)
        )

    def standing(self, name: str, monitor: str, *, won: bool) -> Standing:
        """Return the result of a candidate."""
        trainings = self.trainings[name]
        epochs = max(training.epoch for training in trainings)
        if name in self.failed:
            outcome = str(self.failed[name])
        else:
            outcome = "won" if won else "stopped" if epochs else "not started"
        best = [(size, t) for size, t in zip(self.sizes, trainings, strict=True) if t.best]

        def mean(metric: str) -> float:
            if not best:
                return math.nan
            total = sum(size * t.history[metric][t.best_epoch] for size, t in best)
            return total / sum(size for size, _ in best)

        accuracy, loss, score = map(mean, ("val_accuracy", "val_loss", history_name(monitor)))
        return Standing(accuracy, loss, epochs, outcome, score)
