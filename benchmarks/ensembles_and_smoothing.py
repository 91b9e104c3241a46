"""What gives the last point: a warm-up of MI and CVG, an ensemble of seeds, or Correct-and-Smooth?

    python benchmarks/ensembles_and_smoothing.py

Default settings, GCN, public splits of Cora and Citeseer, 20 seeds. An ensemble averages the probabilities of five seeds. Correct-and-
Smooth (Huang et al. 2021) chooses its parameters on the validation nodes. Writes results/last-point.json.
"""

from __future__ import annotations

import itertools
import statistics

import torch
from torch import Tensor

from common import write
from everynode.datasets import load
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training

SEEDS, TOGETHER, WARM_UP = 20, 5, 50


class WarmedUp(Training):
    """Training in which the weights of MI and CVG grow over the first epochs."""

    def __init__(self, graph: Graph, settings: Settings, *, seed: int):
        super().__init__(graph, settings, seed=seed)
        self._warm_up()

    def _warm_up(self) -> None:
        share = min(1.0, self.epoch / WARM_UP)
        self.runner.objective.weights |= {
            "mi": share * self.settings.mi,
            "cvg": share * self.settings.cvg,
        }

    def _end_epoch(self) -> dict[str, float]:
        row = super()._end_epoch()
        self._warm_up()
        return row


def probabilities(graph: Graph, settings: Settings, seed: int, kind: type[Training]) -> Tensor:
    training = kind(graph, settings, seed=seed)
    with deferred_interrupt() as interrupt:
        training.advance(interrupt)
    with torch.no_grad():
        return torch.softmax(training.result().network(graph), dim=1)


def accuracy(graph: Graph, y: Tensor, part: str) -> float:
    nodes = graph.nodes(part)
    return float((y[nodes].argmax(1) == graph.labels[nodes]).double().mean())


def smooth(graph: Graph, start: Tensor, alpha: float, steps: int = 50) -> Tensor:
    x = start
    for _ in range(steps):
        x = alpha * (graph.gcn_operator @ x) + (1 - alpha) * start
    return x


def correct_and_smooth(graph: Graph, y: Tensor) -> Tensor:
    train = graph.nodes("train")
    truth = torch.nn.functional.one_hot(graph.labels[train], graph.num_classes).to(y.dtype)
    error = torch.zeros_like(y)
    error[train] = truth - y[train]
    found = {}
    for first, second, scale in itertools.product(
        (0.5, 0.9), (0.5, 0.8, 0.95), (0.0, 0.5, 1.0, 2.0)
    ):
        corrected = y + scale * smooth(graph, error, first)
        corrected[train] = truth
        found[first, second, scale] = smooth(graph, corrected, second)
    return max([y, *found.values()], key=lambda z: accuracy(graph, z, "val"))


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name in ("cora", "citeseer"):
        graph = load(name, "public")
        for objective, kind in (("ce", Training), ("enc", Training), ("enc", WarmedUp)):
            settings = Settings().for_objective(objective)
            each = [probabilities(graph, settings, seed, kind) for seed in range(SEEDS)]
            groups = [
                torch.stack(each[i : i + TOGETHER]).mean(0) for i in range(0, SEEDS, TOGETHER)
            ]
            ways = {
                "alone": each,
                "correct and smooth": [correct_and_smooth(graph, y) for y in each],
                f"ensembles of {TOGETHER}": groups,
                f"ensembles of {TOGETHER}, correct and smooth": [
                    correct_and_smooth(graph, y) for y in groups
                ],
            }
            for way, found in ways.items():
                scores = {
                    part: [accuracy(graph, y, part) for y in found] for part in ("val", "test")
                }
                label = (
                    objective if kind is Training else f"{objective}, warm-up of {WARM_UP} epochs"
                )
                rows.append({"graph": name, "objective": label, "way": way, **scores})
                print(
                    name,
                    label,
                    way,
                    *(
                        f"{part} {100 * statistics.mean(values):.2f}"
                        for part, values in scores.items()
                    ),
                    flush=True,
                )
    write("last-point", {"rows": rows})


if __name__ == "__main__":
    main()
