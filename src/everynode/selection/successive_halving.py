"""A race: several settings start side by side, those that fall behind on the validation nodes stop, and the best is the result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from everynode.errors import Diverged, require
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training.full_batch import history_name
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training
from everynode.training.result import TrainingResult

#: Round by round: after so many epochs so many are left (docs/accuracy.md, "Safe by default").
ROUNDS = ((20, 3), (40, 2), (80, 1))
#: Where folds share, there is one round of so many epochs for all of them, but each has at least so many, and so much patience.
SHARED_ROUND, SHORTEST_ROUND, LEAST_PATIENCE = 60, 10, 20

#: Called after every epoch with the setting's name (and which fold, of several), the epoch and its history row.
RaceReport = Callable[[str, int, dict[str, float]], None]


@dataclass(frozen=True)
class Standing:
    """How far one setting came."""

    #: Over the folds that it began; NaN if there is none.
    val_accuracy: float
    val_loss: float
    epochs: int
    #: ``won``, ``stopped`` after a round (``lost`` the final, up to 0.12.0), ``not begun``, or the error that ended it.
    outcome: str
    #: What the settings select by, such as macro-F1; with monitor="loss" the loss. NaN up to 0.17.0.
    val_score: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON, in which NaN is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Standing:
        """From JSON."""
        known: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in plain.items()
        }
        return cls(**known)


def race(
    graph: Graph,
    entrants: Mapping[str, Settings],
    *,
    folds: Sequence[int] = (0,),
    share: bool = False,
    seed: int = 0,
    report: RaceReport | None = None,
    checkpoint: Path | None = None,
) -> tuple[list[TrainingResult], dict[str, Standing]]:
    """The best of several settings by validation, and how each came off.

    The default race takes about twice as long as a training of cross-entropy with GCN (docs/accuracy.md, "Safe by default").

    All train for the first of ``ROUNDS``, those that are left for the next; the last one goes on to its end. What counts is what
    :func:`fit` selects the epoch by, so the test nodes have no part in it. On a tie the entrant named first is ahead: name the simplest
    first. An entrant that diverges is out, and the next takes its place.

    With several ``folds`` an entrant trains on each of them, the seeds one after the other, and the mean of what it gets on them counts, by
    their validation nodes: this is cross-validation. The result is the winner's network of every fold. With ``share`` there
    is one round, whose epochs the folds share, as they share the patience. With three folds that too takes about twice as long as a
    training of cross-entropy (docs/accuracy.md, "Few labels").

    With ``checkpoint``, a folder, every entrant keeps its state in files of its own there, and the race goes on where it stopped.
    Ctrl-C ends it after the epoch in hand with the best so far.
    """
    require(len(entrants) > 0, "entrants", "race", "at least one setting", len(entrants))
    require(len(folds) > 0, "folds", "race", "at least one fold", len(folds))
    sharing = len(folds) if share else 1
    rounds = ((max(SHARED_ROUND // sharing, SHORTEST_ROUND), 1),) if sharing > 1 else ROUNDS
    trainings: dict[str, list[Training]] = {name: [] for name in entrants}
    failed: dict[str, Diverged] = {}
    for name, settings in entrants.items():
        patience = min(settings.patience, max(settings.patience // sharing, LEAST_PATIENCE))
        settings = dataclasses.replace(settings, patience=patience)
        for number, fold in enumerate(folds):
            file = (
                f"{name}.safetensors"
                if len(folds) == 1
                else f"{name}-fold-{number + 1}.safetensors"
            )
            state = checkpoint / file if checkpoint else None
            trainings[name].append(
                Training(graph, settings, fold=fold, seed=seed + number, checkpoint=state)
            )
    shares = [float(len(graph.nodes("val", fold))) for fold in folds]

    def mean(keys: Iterable[tuple[float, float]]) -> tuple[float, ...]:
        """Over the validation nodes of all folds: what is selected by, then the loss."""
        return tuple(
            sum(share * key for share, key in zip(shares, part, strict=True)) / sum(shares)
            for part in zip(*keys, strict=True)
        )

    with deferred_interrupt() as interrupt:

        def run(names: list[str], until: int | None) -> None:
            for name in names:
                try:
                    for number, training in enumerate(trainings[name], start=1):
                        called = name if len(folds) == 1 else f"{name} fold {number}/{len(folds)}"
                        hear = (
                            None
                            if report is None
                            else (lambda epoch, row, called=called: report(called, epoch, row))
                        )
                        training.advance(interrupt, until, report=hear)
                except Diverged as error:
                    failed[name] = error

        order, places = list(trainings), len(trainings)  # who is ahead, and how many of them race
        for epochs, left in rounds:
            run(order[:places], epochs)
            # By the epochs of the round alone, also when the race was interrupted later and goes on.
            keys = {
                name: mean(t.best_within(epochs) for t in trainings[name])
                for name in order[:places]
                if name not in failed
            }
            ahead = sorted(
                (name for name in trainings if name in keys),
                key=lambda name: keys[name],
                reverse=True,
            )
            order = [*ahead, *(name for name in order[places:] if name not in failed)]
            places = left
        for name in order:  # the next only if the one ahead diverges
            run([name], None)
            if name not in failed:
                break

    begun = {
        name: [training for training in trainings[name] if training.best]
        for name in trainings
        if name not in failed
    }
    winner = next((name for name in order if begun.get(name)), None)
    if winner is None:
        if failed:
            raise next(iter(failed.values()))
        raise KeyboardInterrupt
    standings = {}
    for name, of_folds in trainings.items():
        epochs = max(training.epoch for training in of_folds)
        outcome = (
            str(failed[name])
            if name in failed
            else ("won" if name == winner else "stopped" if epochs else "not begun")
        )
        there = [
            (share, training)
            for share, training in zip(shares, of_folds, strict=True)
            if training.best
        ]
        accuracy, loss, score = (
            sum(share * t.history[metric][t.best_epoch] for share, t in there)
            / sum(share for share, _ in there)
            if there
            else math.nan
            for metric in ("val_accuracy", "val_loss", history_name(entrants[name].monitor))
        )
        standings[name] = Standing(accuracy, loss, epochs, outcome, score)
    return [
        training.result(interrupted=interrupt.is_set()) for training in begun[winner]
    ], standings
