"""Does a class prior in MI help, in place of equal classes? GCN, default settings, public splits of Cora and Citeseer, 10 seeds.

    python benchmarks/prior.py

(The term ``prior`` of everynode is another thing: it came later, with an estimate that moves along with the training.)

MI's second part, lambda * sum of m log m over the class marginal m, is least where all classes are of one size. With a prior p it
becomes lambda * sum of m log (m / p), least where m = p. These label sets are balanced and the graphs are not, so p is estimated: from
how a network trained by cross-entropy confuses the validation nodes, and from what it predicts for all nodes (Lipton et al. 2018).
The true shares of the classes, which nobody has, show how much there is to gain. Written to results/prior.json.
"""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

from common import write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training

SEEDS = 10


class WithPrior(Training):
    """A training whose MI knows how large the classes are."""

    def __init__(self, graph: Graph, settings: Settings, *, seed: int, prior: Tensor | None):
        super().__init__(graph, settings, seed=seed)
        objective, weight = self.runner.objective, settings.mi * settings.mi_lambda
        plain = objective.breakdown

        def breakdown(logits: Tensor, model: object) -> dict[str, Tensor]:
            terms = plain(logits, model)
            if prior is not None:
                terms["total"] = (
                    terms["total"] - weight * (torch.softmax(logits, 1).mean(0) * prior.log()).sum()
                )
            return terms

        objective.breakdown = breakdown


def train(graph: Graph, settings: Settings, seed: int, prior: Tensor | None = None) -> Tensor:
    training = WithPrior(graph, settings, seed=seed, prior=prior)
    with deferred_interrupt() as interrupt:
        training.advance(interrupt)
    with torch.no_grad():
        return torch.softmax(training.result().network(graph), dim=1)


def estimate(graph: Graph, y: Tensor) -> Tensor:
    """The p for which the network's confusions explain what it predicts: least squares, no class below a hundredth."""
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
        test, labelled = graph.nodes("test"), graph.labels[graph.labels >= 0]
        true = torch.bincount(labelled, minlength=graph.num_classes) / len(labelled)
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
