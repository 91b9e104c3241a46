"""Estimate the times of runs: count the operations, and take their speed from stored runs.

Merged runs count with the time of the machine that did them. The estimate orders the runs and
is mostly within a factor of two (three of four runs of ``results/runs-paper.csv``, by the model
alone); the number of epochs until early stopping is known only afterwards. This module does not
import PyTorch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from typing import Any

from everynode.datasets.entries import SIZES, find, is_generated
from everynode.experiments.run_spec import Run
from everynode.settings import Settings

#: Seconds per multiplication or addition in a dense and in a sparse product, and per small
#: operation, on the reference machine (one thread); fitted to the times in results/runs-paper.csv.
DENSE, SPARSE, OPERATION = 8e-12, 4.5e-11, 1.3e-5
#: Seconds of the loop in :func:`machine_factor` on the reference machine.
LOOP = 2.3e-3
#: Epochs until early stopping, if no similar run is stored.
EPOCHS = 250
#: The key of similar runs.
Kind = tuple[Any, ...]


def seconds_per_epoch(dataset: str, split: str, s: Settings) -> float:
    """Estimate an epoch on the reference machine from the operations alone."""
    n, m, nonzeros, k = SIZES.get(dataset) or _size_of_generated(dataset)
    c, num_layers = s.hidden_channels, s.num_layers
    twice = 2 if s.backbone == "gat" else 1  # two matrices, and as much again for the attention
    forward = 2.0 * (
        DENSE * num_layers * twice * n * c * c
        + SPARSE * (nonzeros * c + num_layers * twice * 2 * (2 * m + n) * c + n * c * k)
    )
    sweeps = 4.0  # forward, twice as much back, and the evaluation
    operations = 60 + 25 * num_layers
    if s.consistency:  # a second pass
        sweeps += 3.0
        operations += 25 * num_layers
    if s.cvg:
        # With few labels, only their receptive field takes part, unless the network is deep.
        few = split in ("public", "random")
        share = min(1.0, 0.1 * 2**num_layers) if few else 1.0
        sweeps += 10.0 * share / s.cvg_every
        operations += (120 + 40 * num_layers) // s.cvg_every
    return forward * sweeps + OPERATION * twice * operations


def _size_of_generated(name: str) -> tuple[int, int, int, int]:
    if not is_generated(name):  # the user's graph is the same in all runs: only ratios count
        return SIZES["cora"]
    size = find(name).size
    assert size is not None  # SIZES has every other graph
    nodes, edges, features, classes = size
    return nodes, edges, nodes * features, classes


def machine_factor() -> float:
    """Return how much slower this machine is than the reference, by a short loop."""
    times = []
    for _ in range(5):
        start = time.thread_time()
        sum(i * i for i in range(50_000))
        times.append(time.thread_time() - start)
    return min(times) / LOOP


class Speed:
    """The speed of this machine, from similar runs of a store, else from the model.

    Parameters
    ----------
    records : iterable of dict
        Records of finished runs.
    """

    def __init__(self, records: Iterable[dict[str, Any]] = ()):
        # Seconds per epoch, their ratio to the model, and epochs, by kind.
        self._taken: dict[Kind, list[float]] = {}
        self._slower: dict[Kind, list[float]] = {}
        self._epochs: dict[Kind, list[float]] = {}
        self._factor = machine_factor()
        for record in records:
            public = record["dataset"] in SIZES or is_generated(record["dataset"])
            if public and {"seconds_per_epoch", "epochs"} <= record.keys():
                settings, taken = Settings(**record["settings"]), record["seconds_per_epoch"]
                for kind in _same(record, settings):
                    self._taken.setdefault(kind, []).append(taken)
                    self._epochs.setdefault(kind, []).append(record["epochs"])
                for kind in _as_patient(record, settings):
                    self._epochs.setdefault(kind, []).append(record["epochs"])
                for kind in _alike(settings):
                    self._slower.setdefault(kind, []).append(
                        taken / seconds_per_epoch(record["dataset"], record["split"], settings)
                    )

    def seconds(self, run: Run) -> float:
        """Estimate the seconds of a run."""
        if run.task not in ("train", "tsne"):
            return 5.0
        what, settings = run.describe(), run.settings
        for kind in _same(what, settings):
            if kind in self._taken:
                return statistics.median(self._taken[kind]) * statistics.mean(self._epochs[kind])
        slower = next(
            (self._slower[kind] for kind in _alike(settings) if kind in self._slower),
            [self._factor],
        )
        epochs = next(
            (self._epochs[kind] for kind in _as_patient(what, settings) if kind in self._epochs),
            [EPOCHS],
        )
        one = seconds_per_epoch(run.dataset, run.split, settings)
        return statistics.median(slower) * one * min(settings.epochs, statistics.mean(epochs))


def seconds_left(
    runs: Iterable[Run], records: Mapping[str, dict[str, Any]], *, again: bool = False
) -> dict[str, float]:
    """Estimate the seconds of runs without a record, or of all with ``again``, by key."""
    speed = Speed(records.values())
    return {run.key: speed.seconds(run) for run in runs if again or run.key not in records}


def _same(what: dict[str, Any], settings: Settings) -> list[Kind]:
    """Return kinds of runs with the same time per epoch, the most specific first."""
    place = tuple(
        what[name] for name in ("dataset", "split", "backbone", "num_layers", "objective")
    )
    # Consistency takes a second pass.
    width = (settings.hidden_channels, settings.epochs, bool(settings.consistency))
    return [(*place, *width, what["per_class"]), (*place, *width, "any labels")]


def _alike(settings: Settings) -> list[Kind]:
    """Return kinds of runs with a similar error of the estimate."""
    return [
        (settings.backbone, bool(settings.cvg), settings.hidden_channels),
        (bool(settings.cvg), settings.hidden_channels),
        (bool(settings.cvg),),
        (),
    ]


def _as_patient(what: dict[str, Any], settings: Settings) -> list[Kind]:
    """Return kinds of runs that stop after a similar number of epochs."""
    most = ("at most", settings.epochs)
    return [
        (*(what[name] for name in ("dataset", "split", "backbone", "objective")), *most),
        (what["split"], what["objective"], *most),
        most,
    ]
