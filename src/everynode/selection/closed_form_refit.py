"""Closed-form members of a cross-validated ensemble, solved once more on the labels of all folds.

The network of a fold learns from part of the labels. Few labels make that costly, and a closed-form
model has no epoch that needs held-out labels: the folds agree on a stage, such as a strength of
regularization, and all labels teach.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from everynode.evaluation.calibration import (
    LEAST_TO_COMPARE,
    nodes_without,
    temperature_of_average,
)
from everynode.evaluation.metrics import LOSSES
from everynode.models.closed_form import ClosedFormModel
from everynode.objectives.cross_entropy import class_weights
from everynode.selection.ensemble import log_probabilities_by_fold, mean_log_probabilities
from everynode.selection.race import Race
from everynode.training.full_batch import build_network, history_name
from everynode.training.result import TrainingResult

Floats = npt.NDArray[np.float64]


def mean_history(
    histories: Sequence[dict[str, list[float]]], sizes: Sequence[int]
) -> dict[str, list[float]]:
    """Return the weighted mean history of several folds, up to the last stage that all reached.

    >>> mean_history([{"val_loss": [1.0, 2.0]}, {"val_loss": [4.0]}], [2, 1])
    {'val_loss': [2.0]}
    """
    stages = min(len(history["val_loss"]) for history in histories)
    return {
        name: np.average([each[name][:stages] for each in histories], 0, weights=sizes).tolist()
        for name in histories[0]
    }


def best_stage(history: dict[str, list[float]], monitor: str) -> int:
    """Return the stage with the best monitored metric; equal ones are decided by the loss.

    >>> best_stage({"val_loss": [0.7, 0.5, 0.6], "val_accuracy": [0.8, 0.8, 0.7]}, "accuracy")
    1
    """
    loss = history["val_loss"]
    metric = loss if monitor == "loss" else history[history_name(monitor)]
    sign = -1.0 if monitor in LOSSES else 1.0
    return max(range(len(loss)), key=lambda stage: (sign * metric[stage], -loss[stage]))


def temperature_on_all(race: Race, name: str, solved: TrainingResult, divisor: float) -> float:
    """Return the temperature of a candidate that was solved on all labels.

    More labels make it more confident than the networks of the folds, which chose the temperature.
    At the returned one, its mean confidence equals theirs on nodes without a label.

    Parameters
    ----------
    race : Race
        The race.
    name : str
        The candidate.
    solved : TrainingResult
        The result of :func:`solve_on_all`.
    divisor : float
        The temperature of the out-of-fold predictions.
    """
    assert race.all_labels is not None
    graph = race.preparations[race.candidates[name].preparation].apply(race.graph)
    nodes = nodes_without(race.graph.nodes("train", race.all_labels), graph.num_nodes)
    if len(nodes) < LEAST_TO_COMPARE:
        return divisor
    known = race.graph.classes, race.graph.name, race.graph.digest
    folds = [result.result(*known) for result in race.results[name]]
    each = log_probabilities_by_fold(folds, graph, nodes)
    on_all = mean_log_probabilities([solved.network], graph, nodes)
    for result in (*folds, solved):
        result.network.clear_cache()
    return temperature_of_average(each, divisor, on_all)


def solve_on_all(race: Race, name: str) -> TrainingResult:
    """Return a closed-form candidate, solved on the split with all labels.

    Parameters
    ----------
    race : Race
        The race with its split of all labels.
    name : str
        A closed-form candidate with results.
    """
    assert race.all_labels is not None
    candidate, results, fold = race.candidates[name], race.results[name], race.all_labels
    sizes = [len(race.nodes([result.card["fold"]])) for result in results]
    history = mean_history([result.card["history"] for result in results], sizes)
    stage = best_stage(history, candidate.settings.monitor)
    graph = race.preparations[candidate.preparation].apply(race.graph)
    first = results[0].result(race.graph.classes, race.graph.name, race.graph.digest)
    network, _ = build_network(graph, candidate.settings, seed=first.seed)
    assert isinstance(network, ClosedFormModel)
    weight = class_weights(graph, fold, cast(Any, candidate.settings.class_weight))
    network.solve(
        graph, graph.nodes("train", fold), seed=first.seed, class_weight=weight, stage=stage
    )
    network.clear_cache()
    metrics = {key: values[stage] for key, values in history.items() if key in first.metrics}
    return dataclasses.replace(
        first, network=network.eval(), fold=fold, best_epoch=stage, history=history, metrics=metrics
    )
