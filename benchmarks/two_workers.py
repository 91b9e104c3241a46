"""How many runs per second do two worker processes complete, against one?

One thread each, on two free cores.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from common import write
from everynode.datasets import load
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.settings import Settings


def main() -> None:
    graph = load("citeseer")
    settings = Settings(epochs=100, patience=100)
    runs = [
        Run("citeseer", graph.digest, "public", 0, seed, "default", "enc", settings)
        for seed in range(16)
    ]
    graphs = Graphs()
    graphs.add(runs[0], graph)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                do_runs(runs, graphs, Store(Path(folder) / "runs.db"), workers=workers)
                seconds[workers].append(time.perf_counter() - start)
            print(workers, "workers:", f"{seconds[workers][-1]:.1f} s", flush=True)
    ratio = min(seconds[1]) / min(seconds[2])
    print(f"two workers do {ratio:.2f} times as much as one")
    write("throughput", {"seconds": seconds, "runs": len(runs), "ratio": ratio})


if __name__ == "__main__":
    main()
