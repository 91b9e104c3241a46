"""More candidates for the recipe: CVG over the closing layer, weights averaged over epochs, one pass or four of consistency, GCNII's depth.

    python benchmarks/candidates.py [GRAPHS [WORD]]

Default settings, GCN (or GCNII), ten seeds (public splits) or ten folds, each against the same objective without it. Of averaged weights,
the epoch is selected by what the averaged network gets on the validation nodes. With WORD, only the variants whose name begins with it.
Written to results/candidates.json, which keeps what it has of other graphs and variants.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from common import ROOT, write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph
from everynode.objectives.consistency import Consistency
from everynode.objectives.cross_validating_gradients import CrossValidatingGradients
from everynode.settings import Settings
from everynode.training.loop import Training, deferred_interrupt, evaluate

COUNT = 10
GRAPHS = "cora,citeseer,texas,wisconsin,cornell"


class ClosingLayerCVG(CrossValidatingGradients):
    """The term over the parameters of the closing layer alone, which needs the gradient of no other layer."""

    def forward(
        self, logits: Tensor, model: nn.Module | Iterable[Tensor], factor: float = 1.0
    ) -> Tensor:
        return super().forward(logits, list(model.closing.parameters()), factor)


class ClosingLayer(Training):
    """A training with CVG over the closing layer."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.work.objective.terms["cvg"] = ClosingLayerCVG(
            graph, fold=self.fold, halves=settings.halves, seed=self.seed
        )


class Averaged(Training):
    """A training whose network, wherever it is judged or kept, is the exponential average of the epochs so far."""

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
        self.work.objective.passes, self.work.objective.terms["consistency"] = (
            1,
            OfItself(temperature=settings.consistency_temperature),
        )


class FourPasses(Training):
    """A training in which a step has four passes."""

    def __init__(self, graph: Graph, settings: Settings, **which: Any):
        super().__init__(graph, settings, **which)
        self.work.objective.passes = 4


class Variant(NamedTuple):
    """A way to train, and the name of the variant that it is compared with."""

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
