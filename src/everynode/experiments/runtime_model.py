"""How long runs will take: arithmetic and small operations counted, their speed taken from the runs in the store. (Runs that were merged
into it count as they took where they were done: no record tells how fast that was beside this machine.)

Nothing here needs PyTorch. The estimate orders the runs (cheapest first) and tells how long they take, mostly within a factor of two (of
``results/runs-paper.csv``, by the model alone, three runs of four); how many epochs a run needs until its patience ends is known only
afterwards.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from everynode.datasets.entries import SIZES, find, is_generated
from everynode.experiments.run_spec import Run
from everynode.settings import Settings

#: Seconds per multiplication or addition in a product of dense matrices and in one with a sparse matrix, and per small operation, on the
#: machine on which the model was made (one thread); fitted to the times in results/runs-paper.csv.
DENSE, SPARSE, OPERATION = 8e-12, 4.5e-11, 1.3e-5
#: How long :func:`machine_factor`'s loop took there.
LOOP = 2.3e-3
#: Epochs until patience ends, where no run of the kind has been seen.
EPOCHS = 250
#: The settings that there are.
NAMES = {field.name for field in fields(Settings)}
#: What runs have in common.
Kind = tuple[Any, ...]


def seconds_per_epoch(dataset: str, split: str, s: Settings) -> float:
    """By the model, on the machine on which it was made."""
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
        few = split in (
            "public",
            "random",
        )  # then only the labelled nodes' neighbourhood takes part, unless the network is deep
        share = min(1.0, 0.1 * 2**num_layers) if few else 1.0
        sweeps += 10.0 * share / s.cvg_every
        operations += (120 + 40 * num_layers) // s.cvg_every
    return forward * sweeps + OPERATION * twice * operations


def _size_of_generated(name: str) -> tuple[int, int, int, int]:
    size = find(name).size
    assert size is not None  # every other graph of the catalogue is in the table
    nodes, edges, features, classes = size
    return nodes, edges, nodes * features, classes


def machine_factor() -> float:
    """How much slower than that machine this one is, by a moment of counting in Python; what else runs here does not count."""
    taken = []
    for _ in range(5):
        start = time.thread_time()
        sum(i * i for i in range(50_000))
        taken.append(time.thread_time() - start)
    return min(taken) / LOOP


class Speed:
    """What the records of a store say of how long runs take; where they say nothing, the model and a factor measured here."""

    def __init__(self, records: Iterable[dict[str, Any]] = ()):
        #: Seconds per epoch, times the model's, and epochs, by kind.
        self._taken: dict[Kind, list[float]] = {}
        self._slower: dict[Kind, list[float]] = {}
        self._epochs: dict[Kind, list[float]] = {}
        self._factor = machine_factor()
        for record in records:
            known = {"settings", "seconds_per_epoch", "epochs"} <= record.keys() and record[
                "settings"
            ].keys() <= NAMES
            if known and (
                record["dataset"] in SIZES or is_generated(record["dataset"])
            ):  # else it is of a younger everynode
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
        """How long a run will probably take."""
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
    """How long those of the runs that have no record yet (or all, if they are done ``again``) will probably take, by key."""
    speed = Speed(records.values())
    return {run.key: speed.seconds(run) for run in runs if again or run.key not in records}


def _same(what: dict[str, Any], settings: Settings) -> list[Kind]:
    """Runs that take as long as this one, from the most to the least particular."""
    place = tuple(
        what[name] for name in ("dataset", "split", "backbone", "num_layers", "objective")
    )
    width = (
        settings.hidden_channels,
        settings.epochs,
        bool(settings.consistency),
    )  # which means a second pass
    return [(*place, *width, what["per_class"]), (*place, *width, "any labels")]


def _alike(settings: Settings) -> list[Kind]:
    """Runs of which the model is wrong by about as much."""
    return [
        (settings.backbone, bool(settings.cvg), settings.hidden_channels),
        (bool(settings.cvg), settings.hidden_channels),
        (bool(settings.cvg),),
        (),
    ]


def _as_patient(what: dict[str, Any], settings: Settings) -> list[Kind]:
    """Runs that end after about as many epochs."""
    most = ("at most", settings.epochs)
    return [
        (*(what[name] for name in ("dataset", "split", "backbone", "objective")), *most),
        (what["split"], what["objective"], *most),
        most,
    ]
