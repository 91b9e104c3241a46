"""Do prediction sets keep the promised coverage, and how large are they beside TorchCP's APS and DAPS?

    python benchmarks/prediction_sets.py STORE

Five graphs, half of the labels for training, effort "quick" and the refit on these labels, as ``everynode fit`` does. "fit": the sets of
``predict_set``, calibrated on the model's own out-of-fold
predictions, on all test nodes, mean of 100 seeds of the random part. "splits": 100 splits of the test nodes into calibration and
evaluation, with the stored probabilities; beside APS and DAPS (weight 0.5) as TorchCP 1.2.1 writes them, the formulas repeated here.
STORE keeps finished graphs. Writes results/prediction-sets.json.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import everynode as en
from common import write
from everynode.datasets.splits import stratified_split
from everynode.evaluation.prediction_sets import calibrate_sets, neighbor_scores

GRAPHS = ("texas", "wisconsin", "cornell", "cora", "citeseer")
COVERAGE, SPLITS = 0.9, 100


def torchcp_aps(p: Tensor, generator: torch.Generator) -> Tensor:
    """Return TorchCP's randomized APS scores: a random number for each node and class."""
    ordered, order = p.sort(dim=1, descending=True)
    noise = torch.rand(p.shape, generator=generator, dtype=p.dtype)
    return torch.empty_like(p).scatter_(1, order, ordered.cumsum(1) - ordered * noise)


def torchcp_sets(scores: Tensor, labels: Tensor, calibration: Tensor) -> Tensor:
    """Return split-conformal sets with the quantile at ceil((n + 1) c)."""
    true = scores[calibration, labels[calibration]].sort().values
    return scores <= true[math.ceil((len(true) + 1) * COVERAGE) - 1]


def measured(sets: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the coverage and the mean size."""
    inside = sets.gather(1, labels[:, None]).double().mean().item()
    return inside, sets.double().sum(1).mean().item()


def study(name: str) -> dict[str, Any]:
    """Fit one graph, and measure its sets."""
    graph = en.load(name)
    split = stratified_split(graph.labels, train=0.5, val=0.0, seed=0)
    graph = graph.with_splits([split])
    model = en.NodeClassifier(effort="quick", n_jobs=1, verbose=False).fit(graph)
    model = model.refit(graph, split.train)
    test, y = graph.nodes("test"), graph.labels
    rows: dict[str, list[tuple[float, float]]] = {way: [] for way in ("fit", "ours", "aps", "daps")}
    for seed in range(SPLITS):
        sets = torch.from_numpy(model.predict_set(graph, coverage=COVERAGE, seed=seed, nodes=test))
        rows["fit"].append(measured(sets, y[test]))
    p = torch.from_numpy(model.predict_proba(graph))
    neighbors = neighbor_scores(graph, p)
    for seed in range(SPLITS):
        generator = torch.Generator().manual_seed(seed)
        order = test[torch.randperm(len(test), generator=generator)]
        calibration, rest = order.tensor_split(2)
        rule = calibrate_sets(
            p[calibration], y[calibration], COVERAGE, neighbors=neighbors[calibration], seed=seed
        )
        noise = torch.rand(len(rest), generator=generator, dtype=p.dtype)
        rows["ours"].append(measured(rule.sets(p[rest], noise, neighbors[rest]), y[rest]))
        aps = torchcp_aps(p, generator)
        means = (graph.neighbor_operator @ aps.to(graph.dtype)).to(p.dtype)
        for way, scores in (("aps", aps), ("daps", 0.5 * aps + 0.5 * means)):
            rows[way].append(measured(torchcp_sets(scores, y, calibration)[rest], y[rest]))
    ways = {
        way: dict(zip(("coverage", "size"), torch.tensor(pairs).mean(0).tolist(), strict=True))
        for way, pairs in rows.items()
    }
    accuracy = model.score(graph, "test")
    kept = model.held_out_labels_
    return {"graph": name, "labels": len(kept.labels), "folds": model.num_folds_,
            "test_nodes": len(test), "accuracy": accuracy, "ways": ways}  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    store = Path(sys.argv[1])
    store.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in GRAPHS:
        file = store / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(study(name)))
        rows.append(json.loads(file.read_text()))
        print(rows[-1], flush=True)
    write("prediction-sets", {"coverage": COVERAGE, "splits": SPLITS, "rows": rows})


if __name__ == "__main__":
    main()
