"""Ensembles: the mean probabilities of several networks, one or more per fold."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import Diverged
from everynode.evaluation.calibration import HeldOut
from everynode.graph import Graph
from everynode.training import TrainingResult, train
from everynode.training.callbacks import replay_epochs
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training
from everynode.training.mini_batch.inference import logits
from everynode.training.side_by_side import pays, side_by_side

#: Called after every epoch with the number of the network (from 1), the epoch and its history.
Report = Callable[[int, int, dict[str, float]], None]


def train_more(
    trained: Sequence[TrainingResult],
    graph: Graph,
    folds: Sequence[int],
    total: int,
    *,
    checkpoint: Path | None,
    report: Report,
    prefix: str = "",
    workers: int | None = None,
    show: Report | None = None,
) -> list[TrainingResult]:
    """Train more networks with the settings of the first, fold by fold, up to ``total``.

    The first result carries the seconds of all, and whether Ctrl-C ended one of them: then there
    are fewer. A network that diverges is left out with a warning, if its fold has another one.
    ``prefix``: the start of the names of the files in ``checkpoint``. ``workers``: networks at
    once; None: one per core. Those in other processes are reported when they end; ``show`` shows
    their progress.
    """
    first, *more = trained
    first = dataclasses.replace(first, seconds=sum(one.seconds for one in trained))
    numbers = range(len(trained) + 1, total + 1)
    plans: dict[int, dict[str, Any]] = {
        number: {
            "settings": first.settings,
            "fold": folds[(number - 1) % len(folds)],
            "seed": first.seed + number - 1,
            "checkpoint": checkpoint and checkpoint / f"{prefix}network-{number}.safetensors",
            "batches": first.batches,
        }
        for number in numbers
    }
    if not first.interrupted and pays(graph, len(plans), workers):
        outcomes = _train_side_by_side(graph, plans, report, workers, show)
    else:
        outcomes = {
            number: partial(train, graph, **plan, report=partial(report, number))
            for number, plan in plans.items()
        }
    for number, outcome in outcomes.items():
        if first.interrupted:
            break
        fold = plans[number]["fold"]
        try:
            fitted = outcome()
        except KeyboardInterrupt:  # before its first epoch ended: keep the others
            first = dataclasses.replace(first, interrupted=True)
        except Diverged as error:
            if all(one.fold != fold for one in (first, *more)):
                raise  # without it, no network could judge this fold's validation nodes
            warnings.warn(f"Network {number} of {total} is left out: {error}", stacklevel=3)
        else:
            more.append(fitted)
            seconds = first.seconds + fitted.seconds
            first = dataclasses.replace(first, seconds=seconds, interrupted=fitted.interrupted)
    return [first, *more]


def _train_side_by_side(
    graph: Graph,
    plans: Mapping[int, Mapping[str, Any]],
    report: Report,
    workers: int | None,
    show: Report | None,
) -> dict[int, Callable[[], TrainingResult]]:
    """Train several networks; return a function for each that gives its result, or its error."""
    trainings = {number: Training(graph, **plan) for number, plan in plans.items()}
    numbers, errors = list(trainings), dict[int, Diverged]()

    def show_place(place: int, epoch: int, row: dict[str, float]) -> None:
        assert show is not None
        show(numbers[place], epoch, row)

    with deferred_interrupt() as interrupt:
        for leg in side_by_side(
            list(trainings.values()), interrupt, workers=workers, show=show and show_place
        ):
            number = numbers[leg.number]
            start = trainings[number].epoch
            trainings[number].restore(leg.state)
            if leg.error is not None:
                errors[number] = leg.error
            replay_epochs(partial(report, number), leg.state.history, start)

    def result(number: int) -> TrainingResult:
        if number in errors:
            raise errors[number]
        return trainings[number].result(interrupted=interrupt.is_set())

    return {number: partial(result, number) for number in numbers}


def held_out(trained: Sequence[TrainingResult], graph: Graph) -> HeldOut:
    """Return the out-of-fold predictions: each fold's validation nodes by that fold's networks."""
    by_fold: dict[int, list[nn.Module]] = {}
    for one in trained:
        by_fold.setdefault(one.fold, []).append(one.network)
    nodes = [graph.nodes("val", fold) for fold in by_fold]
    predicted = [
        mean_log_probabilities(networks, graph, val)
        for networks, val in zip(by_fold.values(), nodes, strict=True)
    ]
    return HeldOut(torch.cat(nodes), torch.cat(predicted))


def log_probabilities_by_fold(
    trained: Sequence[TrainingResult], graph: Graph, nodes: Tensor | None
) -> list[Tensor]:
    """Return the log-probabilities of the networks of each fold."""
    with torch.no_grad():
        each = [logits(one.network, graph, nodes) for one in trained]
        return log_means_by_fold([one.fold for one in trained], each)


@torch.no_grad()
def mean_log_probabilities(
    networks: Sequence[nn.Module], graph: Graph, nodes: Tensor | None
) -> Tensor:
    """Return the logarithm of the mean probabilities (n x k, float64), for all nodes or some."""
    return log_mean([logits(network, graph, nodes) for network in networks])


def log_mean(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean probabilities of several networks, from their logits."""
    each = [torch.log_softmax(one.double(), dim=1) for one in logits]
    return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))


def log_means_by_fold(folds: Sequence[int], logits: Sequence[Tensor]) -> list[Tensor]:
    """Return the logarithm of the mean probabilities in each fold, from the networks' logits."""
    return [
        log_mean([one for one, other in zip(logits, folds, strict=True) if other == fold])
        for fold in sorted(set(folds))
    ]
