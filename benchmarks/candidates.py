"""Candidates for the recipe that need code of their own: CVG over the closing layer, weights averaged over epochs, consistency of one pass or four.

    python benchmarks/candidates.py [GRAPHS]

Default settings, GCN, ten seeds (public splits) or ten folds, each against the same objective without it. Of averaged weights, the epoch is
selected by what the averaged network gets on the validation nodes. Written to results/candidates.json, which keeps what it has of other graphs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from common import ROOT, write
from everynode.data import load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph
from everynode.objectives.consistency import Consistency
from everynode.objectives.cross_validating import CrossValidatingGradients
from everynode.settings import Settings
from everynode.training.loop import Training, deferred_interrupt, evaluate

COUNT = 10
GRAPHS = "cora,citeseer,texas,wisconsin,cornell"


class ClosingLayerCVG(CrossValidatingGradients):
    """The term over the parameters of the closing layer alone, which needs the gradient of no other layer."""

    def forward(self, logits: Tensor, model: nn.Module | Iterable[Tensor], factor: float = 1.0) -> Tensor:
        return super().forward(logits, list(model.closing.parameters()), factor)


class ClosingLayer(Training):
    """A training with CVG over the closing layer."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.work.objective.terms["cvg"] = ClosingLayerCVG(graph, fold=self.fold, halves=settings.halves, seed=self.seed)


class Averaged(Training):
    """A training whose network, wherever it is judged or kept, is the exponential average of the epochs so far."""

    decay = 0.9

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.mean: dict[str, Tensor] = {}

    def _end_epoch(self) -> dict[str, float]:
        own = {name: value.clone() for name, value in self.network.state_dict().items()}
        for name, value in own.items():
            self.mean[name] = self.mean[name].lerp(value, 1 - self.decay) if name in self.mean else value
        self.network.load_state_dict(self.mean)
        row = super()._end_epoch()
        self.network.load_state_dict(own)
        return row


class AveragedLonger(Averaged):
    """The same over about fifty epochs."""

    decay = 0.98


class OfItself(Consistency):
    """Consistency of one pass with itself, sharpened."""

    def forward(self, views: Sequence[Tensor], share: Tensor | None = None) -> Tensor:
        return super().forward([views[0], views[0].clone()], share)


class OnePass(Training):
    """A training in which a step has one pass."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.work.objective.passes, self.work.objective.terms["con"] = 1, OfItself(temperature=settings.con_temperature)


class FourPasses(Training):
    """A training in which a step has four passes."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.work.objective.passes = 4


#: By name: the objective, the training, and the name of the row that it is compared with.
VARIANTS: dict[str, tuple[str, type[Training], str]] = {
    "ce": ("ce", Training, ""),
    "ce, weights averaged, 0.9": ("ce", Averaged, "ce"),
    "ce, weights averaged, 0.98": ("ce", AveragedLonger, "ce"),
    "cvg": ("cvg", Training, ""),
    "cvg, closing layer": ("cvg", ClosingLayer, "cvg"),
    "enc": ("enc", Training, ""),
    "enc, CVG over the closing layer": ("enc", ClosingLayer, "enc"),
    "enc, weights averaged, 0.9": ("enc", Averaged, "enc"),
    "enc, weights averaged, 0.98": ("enc", AveragedLonger, "enc"),
    "con 1": ("con", Training, ""),
    "con 1, one pass": ("con", OnePass, "con 1"),
    "con 1, four passes": ("con", FourPasses, "con 1"),
}


def main() -> None:
    torch.set_num_threads(1)
    path = ROOT / "results" / "candidates.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for name in (sys.argv[1] if len(sys.argv) > 1 else GRAPHS).split(","):
        graph = load(name)
        folds = len(graph.splits) > 1
        share = len(graph.nodes("test")) / len(graph.nodes("train")) if folds else None
        rows = [row for row in rows if row["graph"] != name]
        scores: dict[str, dict[str, list[float]]] = {}
        for variant, (objective, kind, base) in VARIANTS.items():
            found: dict[str, list[float]] = {"val_accuracy": [], "test_accuracy": [], "milliseconds_per_epoch": []}
            for i in range(COUNT):
                fold = i if folds else 0
                start = time.process_time()
                training = kind(graph, Settings(con=1.0 if objective == "con" else 0.0).for_objective(objective), fold=fold, seed=i)
                with deferred_interrupt() as interrupt:
                    training.advance(interrupt)
                found["milliseconds_per_epoch"].append(1000 * (time.process_time() - start) / training.epoch)
                fitted = training.result()
                found["val_accuracy"].append(fitted.metrics["val_accuracy"])
                found["test_accuracy"].append(evaluate(fitted.network, graph, "test", fold))
            scores[variant] = found
            row = {"graph": name, "variant": variant, "base": base, **found}
            told = ""
            if base:
                gain = compare_paired(found["test_accuracy"], scores[base]["test_accuracy"], test_share=share)
                row["gain"] = gain.to_dict()
                told = f"{100 * gain.mean:+.2f} ({100 * gain.low:+.2f} to {100 * gain.high:+.2f})"
            rows.append(row)
            print(name, variant, *(f"{statistics.mean(values):.4f}" for values in found.values()), told, flush=True)
        write("candidates", {"rows": rows})


if __name__ == "__main__":
    main()
