"""How long runs will take on this machine: arithmetic and small operations counted, their speed taken from runs that were done here.

Nothing here needs PyTorch. The estimate orders the runs (cheapest first) and tells how long they take within a factor of about two; how
many epochs a run needs until its patience ends is known only afterwards.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterable
from typing import Any

from everynode.data.entries import find
from everynode.experiments.run import Run

#: Nodes, edges, non-zero features and classes of the named graphs.
SIZES = {
    "cora": (2708, 5278, 49216, 7),
    "citeseer": (3327, 4552, 105165, 6),
    "pubmed": (19717, 44324, 988031, 3),
    "chameleon": (2277, 31371, 29157, 5),
    "squirrel": (5201, 198353, 93477, 5),
    "actor": (7600, 26659, 40977, 5),
    "cornell": (183, 277, 17240, 5),
    "cornell-legacy": (183, 277, 15266, 5),
    "texas": (183, 279, 15266, 5),
    "wisconsin": (251, 450, 24057, 5),
    "ogbn-arxiv": (169343, 1157799, 21675904, 40),
}
#: Seconds per multiplication and addition, and per small operation, on the machine on which the model was made (one thread).
PER_FLOP, PER_OPERATION = 4e-11, 1.2e-5
#: How long :func:`machine_factor`'s loop took there.
LOOP = 2.3e-3
#: Epochs until patience ends, where no run of the kind has been seen.
EPOCHS = 350


def seconds_per_epoch(run: Run) -> float:
    """By the model, on the machine on which it was made."""
    n, m, nonzeros, k = SIZES.get(run.dataset) or _size_of_generated(run.dataset)
    s = run.settings
    c, layers = s.channels, s.layers
    product = n * c * c * (2 if s.backbone == "gat" else 1) + 2 * (2 * m + n) * c * (2 if s.backbone == "gat" else 1)
    forward = 2.0 * (nonzeros * c + layers * product + n * c * k)
    sweeps = 4.0  # forward, twice as much back, and the evaluation
    operations = 60 + 25 * layers
    if s.con:  # a second pass
        sweeps += 3.0
        operations += 25 * layers
    if s.cvg:
        few = run.split in ("public", "random")  # then only the labelled nodes' neighbourhood takes part, unless the network is deep
        share = min(1.0, 0.1 * 2**layers) if few else 1.0
        sweeps += 10.0 * share / s.cvg_every
        operations += (120 + 40 * layers) // s.cvg_every
    return PER_FLOP * forward * sweeps + PER_OPERATION * operations


def _size_of_generated(name: str) -> tuple[int, int, int, int]:
    size = find(name).size
    assert size is not None  # every other graph of the catalogue is in the table
    nodes, edges, features, classes = size
    return nodes, edges, nodes * features, classes


def machine_factor() -> float:
    """How much slower than that machine this one is, by a moment of counting in Python."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        sum(i * i for i in range(50_000))
        taken.append(time.perf_counter() - start)
    return min(taken) / LOOP


class Speed:
    """What the records of a store say about this machine; where they say nothing, the model and a measured factor."""

    def __init__(self, records: Iterable[dict[str, Any]] = ()):
        self._taken: dict[tuple[Any, ...], list[float]] = {}
        self._epochs: dict[tuple[Any, ...], list[float]] = {}
        self._factor = machine_factor()
        for record in records:
            if "seconds_per_epoch" in record:
                for kind in _kinds(record, record["settings"]):
                    self._taken.setdefault(kind, []).append(record["seconds_per_epoch"])
                    self._epochs.setdefault(kind, []).append(record["epochs"])

    def seconds(self, run: Run) -> float:
        """How long a run will probably take."""
        if run.task not in ("train", "tsne"):
            return 5.0
        for kind in _kinds(run.describe(), dataclasses.asdict(run.settings)):
            if kind in self._taken and len(kind) > 2:  # the same kind of run was done here
                return statistics.median(self._taken[kind]) * statistics.mean(self._epochs[kind])
        epochs = min(run.settings.epochs, statistics.mean(self._epochs.get(("any", run.settings.epochs), [EPOCHS])))
        return self._factor * seconds_per_epoch(run) * epochs


def _kinds(what: dict[str, Any], settings: dict[str, Any]) -> list[tuple[Any, ...]]:
    """From the most to the least particular."""
    exact = tuple(what[name] for name in ("dataset", "split", "per_class", "backbone", "layers", "objective"))
    rough = tuple(what[name] for name in ("dataset", "split", "backbone", "layers", "objective"))
    width = (settings["channels"], settings["epochs"], bool(settings.get("con")))  # which means a second pass
    return [(*exact, *width), (*rough, *width, "any labels"), ("any", settings["epochs"])]
