"""Do further changes to the recipe help: cheaper CVG, averaged weights, one or four passes, GCNII's depth?

    python benchmarks/further_changes.py [GRAPHS [WORD]]

Default settings, GCN (or GCNII), ten seeds (public splits) or ten folds, each variant against the same objective without the change.
With averaged weights, validation selects the epoch of the averaged network. WORD restricts the variants to names that begin with it.
Writes results/candidates.json, and keeps its rows of other graphs and variants.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from common import ROOT, write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph
from everynode.objectives.consistency import Consistency
from everynode.objectives.cross_validating_gradients import CrossValidatingGradients
from everynode.objectives.term import Step
from everynode.settings import Settings
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training, evaluate

COUNT = 10
GRAPHS = "cora,citeseer,texas,wisconsin,cornell"


class ClosingLayerCVG(CrossValidatingGradients):
    """CVG over the parameters of the closing layer only, which needs no other gradient."""

    def _value(self, step: Step, factor: float) -> Tensor:
        closing = list(step.model.closing.parameters())
        return super()._value(dataclasses.replace(step, model=closing), factor)


class ClosingLayer(Training):
    """Training with CVG over the closing layer."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.runner.objective.terms["cvg"] = ClosingLayerCVG(
            settings.cvg, halves=settings.halves
        ).bind(graph, fold=self.fold, seed=self.seed)


class Averaged(Training):
    """Training whose network is evaluated and kept as the exponential average over the epochs."""

    decay = 0.9

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.mean: dict[str, Tensor] = {}

    def _end_epoch(self) -> dict[str, float]:
        own = {name: value.clone() for name, value in self.network.state_dict().items()}
        for name, value in own.items():
            self.mean[name] = (
                self.mean[name].lerp(value, 1 - self.decay) if name in self.mean else value
            )
        self.network.load_state_dict(self.mean)
        row = super()._end_epoch()
        self.network.load_state_dict(own)
        return row


class AveragedLonger(Averaged):
    """The same, averaged over about fifty epochs."""

    decay = 0.98


class OfItself(Consistency):
    """Consistency of one pass with itself, sharpened."""

    def evaluate(self, step: Step) -> Tensor:
        only = step.passes[0]
        return super().evaluate(dataclasses.replace(step, passes=[only, only.clone()]))


class OnePass(Training):
    """Training with one pass per step."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.runner.objective.passes, self.runner.objective.terms["consistency"] = (
            1,
            OfItself(settings.consistency, temperature=settings.consistency_temperature),
        )


class FourPasses(Training):
    """Training with four passes per step."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.runner.objective.passes = 4


class Variant(NamedTuple):
    """A way to train, and the name of the variant it is compared with."""

    objective: str
    training: type[Training] = Training
    base: str = ""
    changes: Mapping[str, Any] = {}


VARIANTS = {
    "ce": Variant("ce"),
    "ce, weights averaged, 0.9": Variant("ce", Averaged, "ce"),
    "ce, weights averaged, 0.98": Variant("ce", AveragedLonger, "ce"),
    "cvg": Variant("cvg"),
    "cvg, closing layer": Variant("cvg", ClosingLayer, "cvg"),
    "enc": Variant("enc"),
    "enc, closing layer": Variant("enc", ClosingLayer, "enc"),
    "enc, every 4th step": Variant("enc", Training, "enc", {"cvg_every": 4}),
    "enc, weights averaged, 0.9": Variant("enc", Averaged, "enc"),
    "enc, weights averaged, 0.98": Variant("enc", AveragedLonger, "enc"),
    "consistency 1": Variant("consistency", changes={"consistency": 1.0}),
    "consistency 1, one pass": Variant(
        "consistency", OnePass, "consistency 1", {"consistency": 1.0}
    ),
    "consistency 1, four passes": Variant(
        "consistency", FourPasses, "consistency 1", {"consistency": 1.0}
    ),
}


def gcnii(num_layers: int, objective: str, base: str = "") -> Variant:
    return Variant(objective, base=base, changes={"backbone": "gcnii", "num_layers": num_layers})


VARIANTS |= {
    "GCNII, 8 layers, ce": gcnii(8, "ce"),
    "GCNII, 4 layers, ce": gcnii(4, "ce", "GCNII, 8 layers, ce"),
    "GCNII, 16 layers, ce": gcnii(16, "ce", "GCNII, 8 layers, ce"),
    "GCNII, 8 layers, enc": gcnii(8, "enc"),
    "GCNII, 4 layers, enc": gcnii(4, "enc", "GCNII, 8 layers, enc"),
    "GCNII, 16 layers, enc": gcnii(16, "enc", "GCNII, 8 layers, enc"),
}


def main() -> None:
    torch.set_num_threads(1)
    path = ROOT / "results" / "candidates.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    graphs = sys.argv[1] if len(sys.argv) > 1 else GRAPHS
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    for name in graphs.split(","):
        graph = load(name)
        folds = len(graph.splits) > 1
        share = len(graph.nodes("test")) / len(graph.nodes("train")) if folds else None
        rows = [row for row in rows if row["graph"] != name or not row["variant"].startswith(word)]
        for variant, (objective, kind, base, changes) in VARIANTS.items():
            if not variant.startswith(word):
                continue
            settings = Settings.preset("default", **changes).for_objective(objective)
            found: dict[str, list[float]] = {"val_accuracy": [], "test_accuracy": []}
            for i in range(COUNT):
                fold = i if folds else 0
                training = kind(graph, settings, fold=fold, seed=i)
                with deferred_interrupt() as interrupt:
                    training.advance(interrupt)
                fitted = training.result()
                found["val_accuracy"].append(fitted.metrics["val_accuracy"])
                found["test_accuracy"].append(evaluate(fitted.network, graph, "test", fold))
            row = {"graph": name, "variant": variant, "base": base, **found}
            told = ""
            if base:
                plain = next(
                    row["test_accuracy"]
                    for row in rows
                    if (row["graph"], row["variant"]) == (name, base)
                )
                gain = compare_paired(found["test_accuracy"], plain, test_share=share)
                row["gain"] = gain.to_dict()
                told = f"{100 * gain.mean:+.2f} ({100 * gain.low:+.2f} to {100 * gain.high:+.2f})"
            rows.append(row)
            print(
                name,
                variant,
                *(f"{statistics.mean(values):.4f}" for values in found.values()),
                told,
                flush=True,
            )
        write("candidates", {"rows": rows})


if __name__ == "__main__":
    main()
