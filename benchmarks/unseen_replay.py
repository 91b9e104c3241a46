"""Which constants of the ensemble does one half of the graphs choose, and what do they give on the other half?

    python benchmarks/unseen_replay.py STORE

Replays the ensemble of every finished cell of unseen.py from the stored logits: no training. Each half chooses the
constants with the lowest mean log-loss on the test nodes of its cells, and the other half reports them.
Writes results/unseen-constants.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from common import ROOT
from everynode.selection import greedy_ensemble
from everynode.selection.class_shares import class_shift, drawn_by_class
from everynode.selection.fold_result import LOGITS, FoldResult
from everynode.selection.greedy_ensemble import calibrated, combine, ensemble_weights
from everynode.selection.race import Race
from everynode.settings import Settings
from unseen import DESIGN_HALF, best_outsider

#: What the halves choose from.
GRID = {"EVIDENCE": (0.5, 0.7, 0.85, 1.0), "TRUST": (50.0, 200.0, 800.0), "START": (4, 8)}


class Replay(NamedTuple):
    """The finalists of a cell: out-of-fold and test log-probabilities, and the labels of both."""

    half: int
    log_p: torch.Tensor
    labels: torch.Tensor
    test: torch.Tensor
    test_labels: np.ndarray
    handicap: np.ndarray
    best_outsider: float

    @classmethod
    def read(cls, path: Path) -> Replay:
        """Read a cell of a store."""
        row = json.loads(path.read_text())
        with np.load(path.with_suffix(".npz")) as stored:
            arrays = {name: stored[name] for name in stored.files}
        race, test = race_of(row["systems"], arrays)
        names, folds = race.common_folds()
        labels = race.labels(folds)
        log_p, on_test = [], []
        for name in names:
            probabilities, divisor = calibrated(race.logits(name, folds), labels)
            log_p.append(probabilities)
            each = [mean(test[name, f]) / divisor for f in sorted(race.folds(name))]
            if f"all|{name}" in arrays:  # a closed form, solved on the labels of all folds
                each = [torch.from_numpy(arrays[f"all|{name}"]).double() / divisor]
            on_test.append(mean([torch.log_softmax(one, 1) for one in each]))
        half = int(row["cell"]["graph"] not in DESIGN_HALF)
        outsider = best_outsider(row["systems"])
        return cls(
            half,
            torch.stack(log_p),
            labels,
            torch.stack(on_test),
            arrays["test_labels"],
            race.handicap(names, folds),
            outsider,
        )

    def scores(self, shift: bool = True) -> tuple[float, float]:
        """Return test log-loss and regret under the current constants, with or without a shift.

        The shift of the classes is estimated from the test nodes, a sample of the unlabeled ones.
        """
        weights = ensemble_weights(self.log_p, self.labels, handicap=self.handicap)
        together, mixed = combine(self.log_p, weights), combine(self.test, weights)
        shift = shift and drawn_by_class(self.labels)
        added = class_shift(together, self.labels, mixed) if shift else 0.0
        log_p = torch.log_softmax(mixed + added, 1).numpy()
        loss = -log_p[np.arange(len(log_p)), self.test_labels].mean()
        return loss, 100 * ((log_p.argmax(1) == self.test_labels).mean() - self.best_outsider)


def race_of(
    systems: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[Race, dict[tuple[str, int], list[torch.Tensor]]]:
    """Return the race of stored logits, and the test log-probabilities by candidate and fold."""
    nodes = {int(k.split("|")[1]): v for k, v in arrays.items() if k.startswith("nodes|")}
    labels = torch.zeros(1 + max(part.max() for part in nodes.values()), dtype=torch.long)
    for fold, part in nodes.items():
        labels[torch.from_numpy(part)] = torch.from_numpy(arrays[f"labels|{fold}"])
    graph: Any = SimpleNamespace(
        labels=labels, nodes=lambda _part, fold: torch.from_numpy(nodes[fold])
    )
    candidates: Any = {
        name: SimpleNamespace(settings=Settings(backbone=name.split("-")[0]))
        for name, row in systems.items()
        if row["kind"] == "candidate"
    }
    outcomes = {k: systems[k]["outcome"] for k in candidates}
    dropped = {k: outcome for k, outcome in outcomes.items() if outcome != "finalist"}
    race = Race(graph, candidates, {}, outcomes=dropped)
    test: dict[tuple[str, int], list[torch.Tensor]] = {}
    for key in (key for key in arrays if key.startswith("oof|")):
        _, name, fold, seed = key.split("|")
        card = {"fold": int(fold), "seed": int(seed)}
        race.results.setdefault(name, []).append(
            FoldResult(card, {LOGITS: torch.from_numpy(arrays[key])})
        )
        logits = torch.from_numpy(arrays[key.replace("oof|", "test|")]).double()
        test.setdefault((name, int(fold)), []).append(torch.log_softmax(logits, 1))
    return race, test


def mean(log_p: list[torch.Tensor]) -> torch.Tensor:
    """Return the logarithm of the mean probabilities."""
    return torch.logsumexp(torch.stack(log_p), 0) - np.log(len(log_p))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    store = parser.parse_args().store
    torch.set_num_threads(1)
    replays = [Replay.read(path) for path in sorted(store.glob("*.json"))]
    shipped = {name: getattr(greedy_ensemble, name) for name in GRID}
    results = []
    for values in [tuple(shipped.values()), *itertools.product(*GRID.values())]:
        for name, value in zip(GRID, values, strict=True):
            setattr(greedy_ensemble, name, value)
        scores = np.array([replay.scores() for replay in replays])
        halves = np.array([replay.half for replay in replays])
        by_half = [
            scores[halves == half].mean(0).tolist() for half in (0, 1) if (halves == half).any()
        ]
        results.append({"constants": dict(zip(GRID, values, strict=True)), "halves": by_half})
        print(results[-1], flush=True)
    report = {
        "command": "python benchmarks/unseen_replay.py STORE",
        "cells": [int((halves == half).sum()) for half in (0, 1)],
        "shipped": results[0],
        "chosen": [
            min(results[1:], key=lambda r, h=half: r["halves"][h][0])
            for half in range(len(results[0]["halves"]))
        ],
    }
    (ROOT / "results" / "unseen-constants.json").write_text(json.dumps(report, indent=1) + "\n")
    for half, chosen in enumerate(report["chosen"]):
        print(
            f"chosen on half {half}: {chosen['constants']}; log-loss and regret {chosen['halves']}"
        )


if __name__ == "__main__":
    main()
