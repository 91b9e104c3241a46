"""What does a step cost per edge, node and channel?

Full batch, GCN with 2 layers, cross-entropy and ENC, one thread, on a grid of generated graphs. Every point runs in its own process, so
that peak memory is its own. Times are processor seconds, so that other work on the machine matters little.
``python benchmarks/cost_model.py`` measures (points in results/ are kept) and fits a small model; ``--fit`` only fits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import scipy.optimize
import torch

from common import ROOT, write

#: Nodes, edges, channels. Edges per node and channels vary independently, so that a model can
#: tell them apart.
GRID = [
    *(
        (nodes, per_node * nodes, hidden_channels)
        for nodes in (60_000, 200_000)
        for per_node in (3, 10)
        for hidden_channels in (16, 64, 256)
    ),
    (600_000, 1_800_000, 64),
    (600_000, 6_000_000, 16),
]
OBJECTIVES = ("ce", "enc")
FEATURES, CLASSES, LAYERS = 128, 40, 2
#: Minimum seconds per point. The quickest step counts; slower ones may have been disturbed.
SECONDS = 4.0
#: Minimum nodes of a graph whose times are fitted: smaller ones partly fit in the caches.
LEAST = 200_000
#: The features of the linear models. Arcs: both directions of an edge, and the self-loops.
TIME = {
    "arc x channel x layer": lambda n, arcs, c: arcs * c * LAYERS,
    "node x channel x (feature + class + channel x layer)": lambda n, arcs, c: (
        n * c * (FEATURES + CLASSES + c * LAYERS)
    ),
    "node x (feature + class + channel x layer)": lambda n, arcs, c: (
        n * (FEATURES + CLASSES + c * LAYERS)
    ),
}
MEMORY = {
    "process": lambda n, arcs, c: 1.0,
    "node x channel": lambda n, arcs, c: n * c,
    "node x (feature + class)": lambda n, arcs, c: n * (FEATURES + CLASSES),
    "arc": lambda n, arcs, c: arcs,
}


def measure(nodes: int, edges: int, hidden_channels: int, objective: str) -> None:
    """Measure one point, in its own process."""
    from everynode.benchmarks.sides import Ours, settings_for
    from everynode.datasets import generate
    from everynode.training.memory import forget_peak, peak_mb, reused_memory

    torch.set_num_threads(1)
    graph = generate(nodes, edges, FEATURES, CLASSES)
    forget_peak()  # of generating the graph
    side = Ours(graph, settings_for("gcn", objective, hidden_channels, LAYERS))
    taken = []
    with reused_memory(side.layer_bytes):  # as in everynode's own loop
        while len(taken) < 3 or sum(taken) < SECONDS:
            start = time.process_time()
            side.step()
            taken.append(time.process_time() - start)
    print(json.dumps({"edges": graph.num_edges, "seconds": min(taken[1:]), "peak_mb": peak_mb()}))


def fit(
    rows: list[dict[str, Any]], terms: dict[str, Any], key: str, least: int = 0
) -> dict[str, Any]:
    """Fit non-negative coefficients by least squares of the relative errors, from ``least`` nodes on."""
    smaller = [row for row in rows if row["nodes"] < least]
    rows = [row for row in rows if row["nodes"] >= least]
    found = np.array([row[key] for row in rows])
    design = np.array(
        [
            [
                term(row["nodes"], 2 * row["edges"] + row["nodes"], row["hidden_channels"])
                for term in terms.values()
            ]
            for row in rows
        ]
    )
    scale = (design / found[:, None]).max(0)
    coefficients = (
        scipy.optimize.nnls(design / found[:, None] / scale, np.ones(len(rows)))[0] / scale
    )
    errors = design @ coefficients / found - 1.0
    model = {
        "coefficients": dict(zip(terms, coefficients.tolist(), strict=True)),
        "points": len(rows),
        "relative_errors": {
            "median": float(np.median(np.abs(errors))),
            "worst": float(np.abs(errors).max()),
        },
    }
    over = [
        predict(model, terms, row["nodes"], row["edges"], row["hidden_channels"]) / row[key]
        for row in smaller
    ]
    return model | ({"over_measured_on_smaller": float(np.median(over))} if over else {})


def predict(
    model: dict[str, Any], terms: dict[str, Any], nodes: float, edges: float, hidden_channels: int
) -> float:
    """Return the value of a model at a size."""
    arcs = 2 * edges + nodes
    return float(
        sum(
            model["coefficients"][name] * term(nodes, arcs, hidden_channels)
            for name, term in terms.items()
        )
    )


def prediction(model: dict[str, Any], edges: int, hidden_channels: int) -> dict[str, float]:
    """Predict a full step, and an epoch of mini-batches over a hundredth of the nodes.

    The graph has ten edges per node. A seed with fan-out 10, 5 has 66 nodes and as many arcs (1 + 10, and 5 for each of these); it
    counts as a separate graph, and sampling as free. Every training node comes with another node.
    """
    nodes = edges // 10
    seeds = 2 * nodes // 100
    return {
        "edges": edges,
        "nodes": nodes,
        "hidden_channels": hidden_channels,
        "step_seconds": predict(model["seconds"], TIME, nodes, edges, hidden_channels),
        "peak_gb": predict(model["peak_mb"], MEMORY, nodes, edges, hidden_channels) / 1024,
        "seeds": seeds,
        "epoch_of_batches_seconds": seeds * predict(model["seconds"], TIME, 66, 0, hidden_channels),
    }


def main() -> None:
    if len(sys.argv) == 5:
        measure(*(int(word) for word in sys.argv[1:4]), sys.argv[4])
        return
    path = ROOT / "results/cost-model.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [
        row for row in known if (row["nodes"], row["asked_edges"], row["hidden_channels"]) in GRID
    ]
    for nodes, edges, hidden_channels in sorted(GRID, key=lambda point: point[1] * point[2]):
        for objective in OBJECTIVES:
            point = {
                "nodes": nodes,
                "asked_edges": edges,
                "hidden_channels": hidden_channels,
                "objective": objective,
            }
            if "--fit" in sys.argv or any(point.items() <= row.items() for row in rows):
                continue
            words = [
                sys.executable,
                __file__,
                *map(str, (nodes, edges, hidden_channels)),
                objective,
            ]
            rows.append(
                point
                | json.loads(
                    subprocess.run(words, capture_output=True, text=True, check=True).stdout
                )
            )
            print(rows[-1], flush=True)
            write("cost-model", {"rows": rows})  # an interrupted measurement continues
    models = {}
    for objective in OBJECTIVES:
        chosen = [row for row in rows if row["objective"] == objective]
        models[objective] = {
            "seconds": fit(chosen, TIME, "seconds", LEAST),
            "peak_mb": fit(chosen, MEMORY, "peak_mb"),
        }
    predictions = [
        prediction(models[o], e, c) | {"objective": o}
        for e in (10**7, 10**8, 10**9)
        for c in (64, 256)
        for o in OBJECTIVES
    ]
    write("cost-model", {"rows": rows, "models": models, "predictions": predictions})
    for objective, model in models.items():
        print(objective, json.dumps(model, indent=1))
    for row in predictions:
        print(row)


if __name__ == "__main__":
    main()
