"""Does a class prior inside MI help, instead of equal classes?

    python benchmarks/prior_inside_mi.py

GCN, default settings, public splits of Cora and Citeseer, 10 seeds. (The term ``prior`` is different: it came later, with an estimate
that follows the training.)

MI's second part, lambda * sum of m log m over the class marginal m, is lowest for equal classes. With a prior p it becomes
lambda * sum of m log (m / p), which is lowest at m = p. The labels are balanced and the graphs are not, so p is estimated from how a
network trained with cross-entropy confuses the validation nodes and from its predictions for all nodes (Lipton et al. 2018). The true
class shares, which no user has, show the upper bound. Writes results/prior.json.
"""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

from common import write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.objectives import Term
from everynode.settings import Settings
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training

SEEDS = 10


class PriorInMI(Term):
    """The part of MI that a prior adds: minus the sum of m log p."""

    name = "mi_prior"

    def __init__(self, weight: float, prior: Tensor):
        super().__init__(weight)
        self.log_prior = prior.log()

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        return -(torch.softmax(logits, 1).mean(0) * self.log_prior).sum()


class WithPrior(Training):
    """Training whose MI knows the class shares."""

    def __init__(self, graph: Graph, settings: Settings, *, seed: int, prior: Tensor | None):
        super().__init__(graph, settings, seed=seed)
        objective, weight = self.runner.objective, settings.mi * settings.mi_lambda
        if prior is not None:
            objective.terms["mi_prior"] = PriorInMI(weight, prior).bind(graph)
            objective.weights["mi_prior"] = weight


def train(graph: Graph, settings: Settings, seed: int, prior: Tensor | None = None) -> Tensor:
    training = WithPrior(graph, settings, seed=seed, prior=prior)
    with deferred_interrupt() as interrupt:
        training.advance(interrupt)
    with torch.no_grad():
        return torch.softmax(training.result().network(graph), dim=1)


def estimate(graph: Graph, y: Tensor) -> Tensor:
    """Return the p that explains the predictions, by least squares; no class is below 0.01."""
    val, k = graph.nodes("val"), graph.num_classes
    truth = torch.nn.functional.one_hot(graph.labels[val], k).to(y.dtype)
    confusion = (y[val].T @ truth) / truth.sum(0).clamp_min(1.0)  # predicted x true
    p = torch.linalg.lstsq(confusion, y.mean(0)[:, None]).solution[:, 0].clamp_min(0.01)
    return p / p.sum()


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name in ("cora", "citeseer"):
        graph = load(name, "public")
        test, labeled = graph.nodes("test"), graph.labels[graph.labels >= 0]
        true = torch.bincount(labeled, minlength=graph.num_classes) / len(labeled)
        base, strong = Settings().for_objective("enc"), Settings(mi_lambda=1.0).for_objective("enc")
        found: dict[str, list[float]] = {}
        errors = []
        for seed in range(SEEDS):
            prior = estimate(graph, train(graph, Settings().for_objective("ce"), seed))
            errors.append((prior - true).abs().sum().item() / 2)
            ways = {
                "lambda 0.3": (base, None),
                "lambda 0.3, estimated prior": (base, prior),
                "lambda 1": (strong, None),
                "lambda 1, estimated prior": (strong, prior),
                "lambda 1, true prior (a diagnostic)": (strong, true.clamp_min(0.01)),
            }
            for way, (settings, p) in ways.items():
                y = train(graph, settings, seed, p)
                found.setdefault(way, []).append(
                    (y[test].argmax(1) == graph.labels[test]).double().mean().item()
                )
        for way, scores in found.items():
            gain = compare_paired(scores, found["lambda 0.3"])
            row = {
                "graph": name,
                "way": way,
                "test_accuracy": scores,
                "gain": [gain.mean, gain.low, gain.high],
            }
            rows.append(row | {"prior_error": statistics.mean(errors)})
            print(
                name,
                way,
                f"{100 * statistics.mean(scores):.2f}, {100 * gain.mean:+.2f} ({100 * gain.low:+.2f} to {100 * gain.high:+.2f})",
            )
    write("prior", {"rows": rows})


if __name__ == "__main__":
    main()
