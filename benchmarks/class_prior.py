"""Where does the gain on Pubmed come from: consistency, the class prior, or both?

    python benchmarks/class_prior.py STORE [GRAPH [BACKBONES]]

The settings that 0.11.0's tuning chose for cross-entropy on the public split, ten seeds, with the terms one at a time and together.
"Shares afterwards" is plain cross-entropy whose trained probabilities are reweighted by class until their mean equals the class shares
that the term would have estimated from the same validation nodes, so it knows what the term knows. Runs in the store are not repeated.
Writes results/class-prior.json.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from common import write
from everynode.datasets import load
from everynode.datasets.entries import CATALOG
from everynode.datasets.files import Root
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.statistics import compare_paired
from everynode.experiments.store import Store
from everynode.graph import Graph
from everynode.objectives import estimated_shares
from everynode.settings import Settings
from everynode.training import train

SEEDS = 10
PRESET = str(Path(__file__).parents[1] / "results" / "tuned-class-prior.toml")
#: By name: the objective of the tuned settings, the objective, and the changes. Tuned ENC has
#: cross-entropy's settings with consistency 1 and prior 3.
TERMS: dict[str, tuple[str, str, dict[str, float]]] = {
    "cross-entropy": ("ce", "ce", {}),
    "prior 3": ("ce", "prior", {"prior": 3.0}),
    "consistency 1": ("ce", "consistency", {"consistency": 1.0}),
    "consistency 1, prior 3": ("enc", "enc", {}),
}


def put_right(y: Tensor, graph: Graph) -> Tensor:
    """Reweight probabilities by class so that their mean equals the estimated shares."""
    val, k = graph.nodes("val"), graph.num_classes
    truth = torch.nn.functional.one_hot(graph.labels[val], k).double()
    shares = estimated_shares(y[val].T @ truth / truth.sum(0), y.mean(0), truth.sum(0))
    for _ in range(100):
        y = y * (shares / y.mean(0))
        y = y / y.sum(1, keepdim=True)
    return y


def afterwards(graph: Graph, settings: Settings, seed: int) -> dict[str, float]:
    network = train(graph, settings, seed=seed).network
    with torch.no_grad():
        y = put_right(torch.softmax(network(graph).double(), dim=1), graph)
    right = (y.argmax(1) == graph.labels).double()
    return {f"{part}_accuracy": right[graph.nodes(part)].mean().item() for part in ("val", "test")}


def main() -> None:
    torch.set_num_threads(1)
    path, name, backbones = [*sys.argv[1:], *["", "pubmed", "gcn"][len(sys.argv[1:]) :]]
    graph, digest, rows = (
        load(name, "public"),
        CATALOG[name].digest("public", Root.find(None)),
        [],
    )
    for backbone in backbones.split(","):
        tuned = {
            o: Settings.preset(PRESET, graph=name, split="public", backbone=backbone, objective=o)
            for o in ("ce", "enc")
        }
        plan = {
            way: [
                Run(
                    name,
                    digest,
                    "public",
                    0,
                    seed,
                    "tuned",
                    objective,
                    replace(tuned[whose], **changes).for_objective(objective),
                )
                for seed in range(SEEDS)
            ]
            for way, (whose, objective, changes) in TERMS.items()
        }
        done = iter(
            do_runs([run for runs in plan.values() for run in runs], Graphs(), Store(Path(path)))
        )
        found = {way: [next(done) for _ in runs] for way, runs in plan.items()}
        found["cross-entropy, shares afterwards"] = [
            afterwards(graph, tuned["ce"].for_objective("ce"), seed) for seed in range(SEEDS)
        ]
        plain = [record["test_accuracy"] for record in found["cross-entropy"]]
        for way, records in found.items():
            scores = {
                metric: [record[metric] for record in records]
                for metric in ("val_accuracy", "test_accuracy")
            }
            gain = compare_paired(scores["test_accuracy"], plain)
            rows.append(
                {
                    "graph": name,
                    "backbone": backbone,
                    "way": way,
                    **scores,
                    "gain": [gain.mean, gain.low, gain.high],
                }
            )
            print(
                backbone,
                way,
                *(f"{100 * statistics.mean(score):.2f}" for score in scores.values()),
                flush=True,
            )
    write("class-prior", {"rows": rows})


if __name__ == "__main__":
    main()
