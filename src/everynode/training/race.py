"""A race: several settings start side by side, those that fall behind on the validation nodes stop, and the best is the result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from everynode.errors import EverynodeError, require
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training.loop import Fitted, Training, deferred_interrupt

#: After so many epochs all but the best FINALISTS stop.
HEAT = 60
FINALISTS = 2
#: Where folds share: at least so many epochs has each of them in the heat, and so much patience.
SHORTEST_HEAT, LEAST_PATIENCE = 10, 20

#: Called after every epoch with the setting's name, the epoch and its history row.
RaceReport = Callable[[str, int, dict[str, float]], None]


@dataclass(frozen=True)
class Standing:
    """How far one setting came."""

    #: Over the folds that it began; NaN if there is none.
    val_accuracy: float
    val_loss: float
    epochs: int
    #: ``won``, ``lost`` the final, ``stopped`` after the heat, ``not begun``, or the error that ended it.
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON, in which NaN is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Standing:
        """From JSON."""
        known: dict[str, Any] = {name: math.nan if value is None else value for name, value in plain.items()}
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
) -> tuple[list[Fitted], dict[str, Standing]]:
    """The best of several settings by validation, at the price of about two trainings (on each fold), and how each of them came off.

    All train for ``HEAT`` epochs; the ``FINALISTS`` best go on to their end. What counts is what :func:`fit` selects the epoch by, so the
    test nodes have no part in it. On a tie the entrant named first wins: name the simplest first. An entrant that diverges is out.

    With several ``folds`` an entrant trains on each of them, the seeds one after the other, and the mean of what it gets on them counts, by
    their validation nodes: this is cross-validation. The result is the winner's network of every fold. With ``share`` the folds have
    together what one has otherwise: the epochs of the heat, the place in the final (one entrant goes on) and the patience are shared. With
    three folds that takes about as long as three trainings, not eight (docs/accuracy.md, "Few labels").

    With ``checkpoint``, a folder, every entrant keeps its state in files of its own there, and the race goes on where it stopped.
    Ctrl-C ends it after the epoch in hand with the best so far.
    """
    require(len(entrants) > 0, "entrants", "race", "at least one setting", len(entrants))
    require(len(folds) > 0, "folds", "race", "at least one fold", len(folds))
    sharing = len(folds) if share else 1
    heat_epochs, places = max(HEAT // sharing, SHORTEST_HEAT), max(FINALISTS // sharing, 1)
    trainings: dict[str, list[Training]] = {name: [] for name in entrants}
    failed: dict[str, str] = {}
    for name, settings in entrants.items():
        patience = min(settings.patience, max(settings.patience // sharing, LEAST_PATIENCE))
        settings = dataclasses.replace(settings, patience=patience)
        for number, fold in enumerate(folds):
            file = f"{name}.safetensors" if len(folds) == 1 else f"{name}-fold-{number + 1}.safetensors"
            state = checkpoint / file if checkpoint else None
            trainings[name].append(Training(graph, settings, fold=fold, seed=seed + number, checkpoint=state))
    shares = [float(len(graph.nodes("val", fold))) for fold in folds]

    def mean(keys: Iterable[tuple[float, float]]) -> tuple[float, ...]:
        """Over the validation nodes of all folds: what is selected by, then the loss."""
        return tuple(sum(share * key for share, key in zip(shares, part, strict=True)) / sum(shares) for part in zip(*keys, strict=True))

    with deferred_interrupt() as interrupt:

        def run(names: list[str], until: int | None) -> None:
            for name in names:
                hear = None if report is None else (lambda epoch, row, name=name: report(name, epoch, row))
                try:
                    for training in trainings[name]:
                        training.advance(interrupt, until, report=hear)
                except EverynodeError as error:
                    failed[name] = str(error)

        run(list(trainings), heat_epochs)
        running = [name for name in trainings if name not in failed]
        # By the epochs of the heat alone, also when the race was interrupted in the final and goes on.
        heat = {name: mean(training.best_within(heat_epochs) for training in trainings[name]) for name in running}
        waiting = sorted(running, key=lambda name: heat[name], reverse=True)
        finalists: list[str] = []
        while waiting and not any(name not in failed for name in finalists):  # again only if all of them diverged in the final
            finalists += waiting[:places]
            run(waiting[:places], None)
            waiting = waiting[places:]

    begun = {name: [training for training in trainings[name] if training.best] for name in trainings if name not in failed}
    alive = [name for name in begun if begun[name]]
    if not alive:
        if failed:
            raise EverynodeError(next(iter(failed.values())))
        raise KeyboardInterrupt
    best = {name: mean(training.best_key for training in trainings[name]) for name in alive}
    winner = max(
        (name for name in finalists if name in alive), key=lambda name: best[name], default=max(alive, key=lambda name: best[name])
    )
    standings = {}
    for name, of_folds in trainings.items():
        epochs = max(training.epoch for training in of_folds)
        place = "won" if name == winner else "lost" if name in finalists else "stopped"
        outcome = failed.get(name) or (place if epochs else "not begun")
        there = [(share, training) for share, training in zip(shares, of_folds, strict=True) if training.best]
        accuracy, loss = (
            sum(share * t.history[metric][t.best_epoch] for share, t in there) / sum(share for share, _ in there) if there else math.nan
            for metric in ("val_accuracy", "val_loss")
        )
        standings[name] = Standing(accuracy, loss, epochs, outcome)
    return [training.result(interrupted=interrupt.is_set()) for training in begun[winner]], standings
