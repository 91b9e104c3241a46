"""How long does a full ENC step take on a graph of ogbn-arxiv's size, and how much memory?

GCN with 3 layers of 256 channels on a generated graph, everynode and stock PyG. Each side runs in its own process, so that peak memory
is its own. Stock PyG may use at most 20 GB, and either side ten minutes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from contextlib import nullcontext

import torch

from common import ROOT, write

LIMIT = 20 * 1024**3


def measure(side: str, objective: str) -> None:
    from everynode.benchmarks.sides import Ours, Stock, settings_for
    from everynode.datasets import generate
    from everynode.training.memory import peak_mb, reused_memory

    torch.set_num_threads(1)
    graph = generate()
    settings = settings_for("gcn", objective, hidden_channels=256, num_layers=3)
    stepper = (
        Ours(graph, settings)
        if side == "everynode"
        else Stock(graph.to_pyg(), graph.num_classes, settings)
    )
    times = []
    # As in everynode's own loop; a PyG loop has no such thing.
    with reused_memory(stepper.layer_bytes) if isinstance(stepper, Ours) else nullcontext():
        for _ in range(3):
            start = time.perf_counter()
            stepper.step()
            times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times[1:]), "peak_gb": peak_mb() / 1024}))


def main() -> None:
    """All four, or with ``--only everynode enc`` that one again, the others staying as they are in results/."""
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
        return
    only = sys.argv[2:]
    found = json.loads((ROOT / "results/arxiv-size.json").read_text())["rows"] if only else {}
    for objective in ("ce", "enc"):
        for side in ("everynode", "stock"):
            if only and only != [side, objective]:
                continue
            limits = (
                (lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))
                if side == "stock"
                else None
            )
            words = [sys.executable, __file__, side, objective]
            try:
                done = subprocess.run(
                    words, capture_output=True, text=True, preexec_fn=limits, timeout=600
                )
                failed = {"failed": (done.stderr.strip().splitlines() or ["killed"])[-1][:200]}
                found[f"{side} {objective}"] = (
                    json.loads(done.stdout) if done.returncode == 0 else failed
                )
            except subprocess.TimeoutExpired:
                found[f"{side} {objective}"] = {"failed": "three steps took more than ten minutes"}
            print(side, objective, found[f"{side} {objective}"], flush=True)
    write("arxiv-size", {"rows": found})


if __name__ == "__main__":
    main()
