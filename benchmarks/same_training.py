"""Does the engine train as another version of it does, step by step?

    python benchmarks/same_training.py OTHER_SOURCE

OTHER_SOURCE is the `src` folder of a checkout of another version with the same module names. Both versions start from the same weights
and draw the same dropout and the same halves, in float64, so that differences are not rounding: Cora, public split, 150 steps. The
result is the largest relative difference of the training and the validation loss over the first step, over 50 and over all.
(results/same-training.json compares the engine with commit 687ed1c, the last one before it.)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from common import write
from everynode.datasets import load
from everynode.settings import Settings
from everynode.training.full_batch import build

STEPS = 150
CASES = [
    (backbone, objective) for backbone in ("gcn", "gat", "gcnii") for objective in ("ce", "enc")
]


def train(
    backbone: str, objective: str, start: dict[str, torch.Tensor] | None
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return the initial weights, and the training and validation loss of each step."""
    graph = load("cora", "public").to(torch.float64)
    settings = Settings.preset(
        "default", graph="cora", split="public", backbone=backbone
    ).for_objective(objective)
    network, terms, optimizer = build(graph, settings, fold=0, seed=0)
    if start is None:
        start = {name: value.clone() for name, value in network.state_dict().items()}
    else:
        network.load_state_dict(start)
    val = graph.nodes("val")
    torch.manual_seed(0)
    rows = []
    for _ in range(STEPS):
        network.train()
        loss = terms(network(graph), network)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            seen = torch.nn.functional.cross_entropy(network(graph)[val], graph.labels[val])
        rows.append([loss.item(), seen.item()])
    return start, torch.tensor(rows, dtype=torch.float64)


def other(folder: Path) -> None:
    """Train with the other version, and keep its curves in the folder."""
    for case in CASES:
        start, curve = train(*case, None)
        save_file({"curve": curve, **start}, folder / f"{'-'.join(case)}.safetensors")


def main() -> None:
    torch.set_num_threads(1)
    if len(sys.argv) == 3:  # in the process of the other version
        other(Path(sys.argv[2]))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, sys.argv[1], folder]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": sys.argv[1]}, check=True)
        for case in CASES:
            start = load_file(Path(folder) / f"{'-'.join(case)}.safetensors")
            before = start.pop("curve")
            _, after = train(*case, start)
            difference = (after / before - 1).abs()
            # Rounding grows wherever a ReLU or the sign in TV turns a last digit into another gradient.
            largest = {
                str(steps): difference[:steps].max(0).values.tolist() for steps in (1, 50, STEPS)
            }
            row = {
                "backbone": case[0],
                "objective": case[1],
                "largest_relative_difference": largest,
            }
            print(
                *case,
                {steps: [f"{x:.1e}" for x in both] for steps, both in largest.items()},
                flush=True,
            )
            rows.append(row)
    write("same-training", {"rows": rows})


if __name__ == "__main__":
    main()
