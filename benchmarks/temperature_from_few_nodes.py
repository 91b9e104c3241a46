"""Does a temperature from few validation nodes make probabilities better?

    python benchmarks/temperature_from_few_nodes.py

Calibration error on test nodes: as trained, with Platt's targets (the method of everynode 0.7.0), and with the method of today. The
bundled examples that have enough labels for a test part, four splits and trainings each. Writes results/calibration.json.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

import everynode as en
from common import ROOT, write
from everynode.evaluation.calibration import HIGHEST, LOWEST, temperature
from everynode.evaluation.metrics import expected_calibration_error
from everynode.io.assign_splits import assign_splits

SEEDS = 4
EXAMPLES = {
    "people": ("people.csv", "links.csv", {"id": "id", "label": "team", "weight": "messages"}),
    "accounts": ("accounts.csv", "transfers.csv", {"label": "status"}),
    "functions": ("functions.csv", "interactions.txt", {"label": "function"}),
    "papers": ("papers.parquet", "citations.jsonl", {"label": "field"}),
}


def platt(logits: Tensor, labels: Tensor) -> float:
    """Return the temperature with Platt's smoothed targets, by bisection; 1 for fewer than ten nodes."""
    x = logits.double()
    n, k = x.shape
    if n < 10:
        return 1.0
    target = (n * torch.nn.functional.one_hot(labels, k) + 1.0) / (n + k)
    pull = (target * x).sum(1).mean()
    low, high = 1 / HIGHEST, 1 / LOWEST
    while high - low > 1e-9 * low:
        middle = math.sqrt(low * high)
        slope = (torch.softmax(middle * x, dim=1) * x).sum(1).mean() - pull
        low, high = (low, middle) if slope > 0 else (middle, high)
    return 1 / low


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name, (nodes, edges, roles) in EXAMPLES.items():
        read = en.read(ROOT / "examples" / nodes, ROOT / "examples" / edges, **roles)
        found: dict[str, dict[str, list[float]]] = {
            what: {way: [] for way in ("none", "platt", "now")} for what in ("temperature", "ece")
        }
        for seed in range(SEEDS):
            graph, _ = assign_splits(
                read, test_share=0.2, val_share=0.2, seed=seed
            )  # held out once
            model = en.NodeClassifier(random_state=seed).fit(graph)
            val, test, y = graph.nodes("val"), graph.nodes("test"), graph.labels
            logits = model.log_probabilities(graph)
            for way, t in {
                "none": 1.0,
                "platt": platt(logits[val], y[val]),
                "now": temperature(logits[val], y[val]),
            }.items():
                found["temperature"][way].append(t)
                found["ece"][way].append(
                    expected_calibration_error(torch.softmax(logits[test] / t, 1), y[test])
                )
        rows.append(
            {"example": name, "validation_nodes": len(val), "test_nodes": len(test), **found}
        )
        print(rows[-1])
    write("calibration", {"rows": rows})


if __name__ == "__main__":
    main()
