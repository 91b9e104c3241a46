"""Several networks whose probabilities are averaged: one of every fold, once or several times."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from everynode.errors import Diverged
from everynode.evaluation.calibration import HeldOut
from everynode.graph import Graph
from everynode.models import Network
from everynode.training.loop import train
from everynode.training.result import TrainingResult

#: Called after every epoch with the network's number (from 1), the epoch and its history row.
Report = Callable[[int, int, dict[str, float]], None]


def train_more(
    trained: Sequence[TrainingResult],
    graph: Graph,
    folds: Sequence[int],
    whole: int,
    *,
    checkpoint: Path | None,
    report: Report,
) -> list[TrainingResult]:
    """These networks and, with the settings of the first, others until there are ``whole``: one of every fold, then the next one.

    The first has the seconds of all of them, and says whether Ctrl-C ended any: then there are fewer. One that diverges is left out with a
    warning, if its fold has another.
    """
    first, *more = trained
    first = dataclasses.replace(first, seconds=sum(one.seconds for one in trained))
    for number in range(len(trained) + 1, whole + 1):
        if first.interrupted:
            break
        fold = folds[(number - 1) % len(folds)]
        state = None if checkpoint is None else checkpoint / f"network-{number}.safetensors"
        try:
            made = train(
                graph, first.settings, fold=fold, seed=first.seed + number - 1, checkpoint=state, report=partial(report, number)
            )  # fmt: skip
        except KeyboardInterrupt:  # before it had a best epoch: those before it are kept
            first = dataclasses.replace(first, interrupted=True)
        except Diverged as error:
            if all(one.fold != fold for one in (first, *more)):
                raise  # or nobody would have learned without this fold's nodes
            warnings.warn(f"Network {number} of {whole} is left out: {error}", stacklevel=3)
        else:
            more.append(made)
            first = dataclasses.replace(
                first, seconds=first.seconds + made.seconds, interrupted=made.interrupted
            )
    return [first, *more]


def held_out(trained: Sequence[TrainingResult], graph: Graph) -> HeldOut:
    """Every fold's validation nodes, and what the networks of that fold say of them."""
    by_fold: dict[int, list[Network]] = {}
    for one in trained:
        by_fold.setdefault(one.fold, []).append(one.network)
    nodes = [graph.nodes("val", fold) for fold in by_fold]
    said = [
        mean_log_probabilities(networks, graph, val)
        for networks, val in zip(by_fold.values(), nodes, strict=True)
    ]
    return HeldOut(torch.cat(nodes), torch.cat(said))


@torch.no_grad()
def mean_log_probabilities(
    networks: Sequence[Network], graph: Graph, nodes: Tensor | None
) -> Tensor:
    """The logarithm of each class's mean probability (n x k, float64), for all nodes or some."""
    each = [torch.log_softmax(network(graph, nodes).double(), dim=1) for network in networks]
    return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))
