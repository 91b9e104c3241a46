"""Peak memory of one side, measured in its own process.

Run as ``python -m everynode.benchmarks.memory SIDE GRAPH BACKBONE OBJECTIVE``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def peak(
    side: str, graph: str, backbone: str, objective: str, data_dir: Any = None
) -> dict[str, float]:
    """Return ``before_mb`` (imports and graph loaded) and ``peak_mb`` (after a few steps)."""
    command = [
        sys.executable,
        "-m",
        "everynode.benchmarks.memory",
        side,
        graph,
        backbone,
        objective,
        *([str(data_dir)] if data_dir else []),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    memory: dict[str, float] = json.loads(process.stdout)
    return memory


def main(side: str, name: str, backbone: str, objective: str, data_dir: str | None = None) -> None:
    """Measure one side and print the result as JSON."""
    import torch

    from everynode.benchmarks.sides import Ours, Stock, one_fold, settings_for
    from everynode.datasets import load
    from everynode.training.memory import peak_mb

    torch.set_num_threads(1)
    graph = one_fold(load(name, data_dir=data_dir))
    settings = settings_for(backbone, objective)
    before = peak_mb()
    stepper = (
        Ours(graph, settings)
        if side == "everynode"
        else Stock(graph.to_pyg(), graph.num_classes, settings)
    )
    for _ in range(3):
        stepper.step()
    print(json.dumps({"before_mb": before, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
