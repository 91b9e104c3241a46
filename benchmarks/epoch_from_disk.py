"""How long does an epoch take on 10 M nodes and 50 M edges with features on disk?

``python benchmarks/epoch_from_disk.py FOLDER``: seconds and resident memory of ENC-GCN (2 x 64). The graph is generated into the folder first (about
6 GB, and as much again on the way) unless it exists. One node in a hundred is a training node, one in 500 a validation node. An epoch
covers the training nodes once, with as many other nodes, drawn anew in each epoch. Training and generating run in separate processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from common import write

NODES, EDGES, FEATURES, CLASSES = 10_000_000, 50_000_000, 128, 40
SIZE, FAN_OUT = 1024, (10, 5)


def make(folder: Path) -> None:
    from everynode.datasets import generate
    from everynode.graph.disk_graph import DiskGraph

    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder / "raw.npy"
    graph = generate(NODES, EDGES, FEATURES, CLASSES, noise=4.0, features_file=raw)
    order = np.random.default_rng(0).permutation(NODES)
    split = np.split(
        order[: NODES // 100 + NODES // 250], [NODES // 100, NODES // 100 + NODES // 500]
    )
    DiskGraph.write(
        folder,
        graph.features.numpy(),
        graph.edges.numpy(),
        graph.labels.numpy(),
        split=split,
        classes=range(CLASSES),
        name=graph.name,
    )
    raw.unlink()
    print(f"made in {time.perf_counter() - start:.0f} s", file=sys.stderr)


def measure(folder: Path) -> None:
    from everynode.batches import Batches
    from everynode.graph.disk_graph import DiskGraph
    from everynode.settings import Settings
    from everynode.training.distributed import Ranks
    from everynode.training.memory import peak_mb, reused_memory
    from everynode.training.mini_batch.work import Batched

    torch.set_num_threads(1)
    start = time.perf_counter()
    graph = DiskGraph.open(folder)
    work = Batched(
        graph,
        Settings(num_layers=2, hidden_channels=64),
        Batches(SIZE, FAN_OUT),
        fold=0,
        seed=0,
        ranks=Ranks(),
    )
    opened, cpu_opened = time.perf_counter(), time.process_time()
    with reused_memory():
        while work.step < work.steps:
            work.advance(0)
            if work.step % 20 == 0:
                print(
                    f"{work.step}/{work.steps} {time.perf_counter() - opened:.0f} s, {peak_mb():.0f} MB",
                    file=sys.stderr,
                    flush=True,
                )
        trained, cpu_trained, training_gb = (
            time.perf_counter(),
            time.process_time(),
            peak_mb() / 1024,
        )
        row = work.validate()
    found = {
        "nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features, "train": len(work.plan.train),
        "val": len(work.val), "steps": work.steps, "seeds": len(work.plan.train) + work.plan.used, "size": SIZE, "fan_out": FAN_OUT,
        "num_layers": 2, "hidden_channels": 64, "opening_seconds": opened - start, "epoch_seconds": trained - opened,
        "epoch_cpu_seconds": cpu_trained - cpu_opened, "validation_seconds": time.perf_counter() - trained,
        "validation_cpu_seconds": time.process_time() - cpu_trained, "peak_gb_training": training_gb, "peak_gb": peak_mb() / 1024, **row,
    }  # fmt: skip
    print(json.dumps(found))


def main() -> None:
    if sys.argv[1:2] in (["make"], ["measure"]):
        (make if sys.argv[1] == "make" else measure)(Path(sys.argv[2]))
        return
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if not (Path(sys.argv[1]) / "graph.json").exists():
        subprocess.run([sys.executable, __file__, "make", sys.argv[1]], check=True)
    done = subprocess.run(
        [sys.executable, __file__, "measure", sys.argv[1]],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sys.argv[1] = "FOLDER"  # the folder is private
    write("disk", json.loads(done.stdout))


if __name__ == "__main__":
    main()
