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

from everynode.evaluation.metrics import LOSSES
from everynode.models.closed_form import ClosedFormModel
from everynode.objectives.cross_entropy import class_weights
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
