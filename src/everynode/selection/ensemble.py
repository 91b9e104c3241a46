"""Ensembles: the mean probabilities of several networks, one or more per fold."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from everynode.errors import Diverged
from everynode.evaluation.calibration import HeldOut
from everynode.graph import Graph
from everynode.training import TrainingResult, train

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
) -> list[TrainingResult]:
    """Train more networks with the settings of the first, fold by fold, up to ``total``.

    The first result carries the seconds of all, and whether Ctrl-C ended one of them: then there
    are fewer. A network that diverges is left out with a warning, if its fold has another one.
    ``prefix``: the start of the names of the files in ``checkpoint``.
    """
    first, *more = trained
    first = dataclasses.replace(first, seconds=sum(one.seconds for one in trained))
    for number in range(len(trained) + 1, total + 1):
        if first.interrupted:
            break
        fold = folds[(number - 1) % len(folds)]
        state = None if checkpoint is None else checkpoint / f"{prefix}network-{number}.safetensors"
        try:
            fitted = train(
                graph, first.settings, fold=fold, seed=first.seed + number - 1, checkpoint=state,
                report=partial(report, number),
            )  # fmt: skip
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
    return [
        mean_log_probabilities([one.network for one in trained if one.fold == fold], graph, nodes)
        for fold in sorted({one.fold for one in trained})
    ]


@torch.no_grad()
def mean_log_probabilities(
    networks: Sequence[nn.Module], graph: Graph, nodes: Tensor | None
) -> Tensor:
    """Return the logarithm of the mean probabilities (n x k, float64), for all nodes or some."""
    each = [torch.log_softmax(network(graph, nodes).double(), dim=1) for network in networks]
    return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))
