"""A race: several settings start side by side, those that fall behind on the validation nodes stop, and the best is the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

#: Called after every epoch with the setting's name, the epoch and its history row.
RaceReport = Callable[[str, int, dict[str, float]], None]


@dataclass(frozen=True)
class Standing:
    """How far one setting came."""

    val_accuracy: float
    val_loss: float
    epochs: int
    #: ``won``, ``lost`` the final, ``stopped`` after the heat, or the error that ended it.
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def race(
    graph: Graph,
    entrants: Mapping[str, Settings],
    *,
    fold: int = 0,
    seed: int = 0,
    report: RaceReport | None = None,
    checkpoint: Path | None = None,
) -> tuple[Fitted, dict[str, Standing]]:
    """The best of several settings by validation, at the price of about two trainings, and how each of them came off.

    All train for ``HEAT`` epochs; the ``FINALISTS`` best go on to their end. What counts is what :func:`fit` selects the epoch by, so the
    test nodes have no part in it. On a tie the entrant named first wins: name the simplest first. An entrant that diverges is out.

    With ``checkpoint``, a folder, every entrant keeps its state in a file of its own there, and the race goes on where it stopped.
    Ctrl-C ends it after the epoch in hand with the best so far.
    """
    require(len(entrants) > 0, "entrants", "race", "at least one setting", len(entrants))
    trainings: dict[str, Training] = {}
    failed: dict[str, str] = {}
    for name, settings in entrants.items():
        state = checkpoint / f"{name}.safetensors" if checkpoint else None
        trainings[name] = Training(graph, settings, fold=fold, seed=seed, checkpoint=state)

    with deferred_interrupt() as interrupt:

        def run(names: list[str], until: int | None) -> None:
            for name in names:
                hear = None if report is None else (lambda epoch, row, name=name: report(name, epoch, row))
                try:
                    trainings[name].advance(interrupt, until, report=hear)
                except EverynodeError as error:
                    failed[name] = str(error)

        run(list(trainings), HEAT)
        running = [name for name in trainings if name not in failed]
        # By the epochs of the heat alone, also when the race was interrupted in the final and goes on.
        finalists = sorted(running, key=lambda name: trainings[name].best_within(HEAT), reverse=True)[:FINALISTS]
        run(finalists, None)

    alive = [name for name in trainings if name not in failed and trainings[name].best]
    if not alive:
        if failed:
            raise EverynodeError(next(iter(failed.values())))
        raise KeyboardInterrupt
    winner = max((name for name in finalists if name in alive), key=lambda name: trainings[name].best_key, default=alive[0])
    standings = {}
    for name, training in trainings.items():
        outcome = failed.get(name) or ("won" if name == winner else "lost" if name in finalists else "stopped")
        best = {metric: training.history.get(metric, [float("nan")])[training.best_epoch] for metric in ("val_accuracy", "val_loss")}
        standings[name] = Standing(**best, epochs=training.epoch, outcome=outcome)
    return trainings[winner].result(interrupted=interrupt.is_set()), standings
