"""Do mini-batches reach the accuracy of the full graph, when, and with how much memory?

ENC on a generated graph of ogbn-arxiv's size. Each side runs in its own process, so that peak memory is its own. Both have the same
settings, with CVG at every fourth step. The full graph is validated after every step, mini-batches after every ``EVERY``; validation is
not in the seconds. Seconds are CPU time, so that a busy machine changes them little.
``python benchmarks/batches_or_full_graph.py [whole|batches]``: both sides, or one; the other keeps its result.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import torch

from common import ROOT, write

NOISE = 2.0
WHOLE_STEPS, BATCH_STEPS, EVERY = 60, 180, 12
SIZE, FAN_OUT = 1024, (10, 5, 5)
OPTIONS = {
    "num_layers": 3,
    "hidden_channels": 256,
    "cvg_every": 4,
    "dropout": 0.2,
    "layer_dropout": 0.2,
    "lr": 0.01,
    "lr_gnn": 2e-3,
}


def measure(side: str) -> None:
    from everynode.batches import Batches
    from everynode.datasets import generate
    from everynode.settings import Settings
    from everynode.training.distributed import Ranks
    from everynode.training.full_batch import WholeGraph
    from everynode.training.memory import peak_mb, reused_memory
    from everynode.training.mini_batch.work import Batched

    torch.set_num_threads(1)
    torch.manual_seed(0)
    graph = generate(noise=NOISE)
    settings = Settings(**OPTIONS)
    if side == "whole":
        work = WholeGraph(graph, settings, fold=0, seed=0, watch=None)
    else:
        work = Batched(graph, settings, Batches(SIZE, FAN_OUT), fold=0, seed=0, ranks=Ranks())
    curve = []
    seconds = 0.0
    with reused_memory(work.layer_bytes):
        for step in range(1, (WHOLE_STEPS if side == "whole" else BATCH_STEPS) + 1):
            epoch, work.step = divmod(step - 1, work.steps)
            start = time.process_time()
            work.advance(epoch)
            seconds += time.process_time() - start
            if side == "whole" or step % EVERY == 0:
                curve.append(
                    {
                        "steps": step,
                        "seconds": round(seconds, 2),
                        "val_accuracy": work.validate()["val_accuracy"],
                    }
                )
                print(curve[-1], file=sys.stderr, flush=True)
    print(
        json.dumps(
            {
                "curve": curve,
                "seconds_per_step": seconds / step,
                "steps_per_epoch": work.steps,
                "peak_gb": peak_mb() / 1024,
            }
        )
    )


def main() -> None:
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2])
        return
    path = ROOT / "results/minibatch.json"
    found = json.loads(path.read_text())["sides"] if sys.argv[1:] and path.exists() else {}
    for side in sys.argv[1:] or ["whole", "batches"]:
        done = subprocess.run(
            [sys.executable, __file__, "measure", side],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found[side] = json.loads(done.stdout)
    summary = {}
    if len(found) == 2:
        best = {side: max(row["val_accuracy"] for row in found[side]["curve"]) for side in found}
        goal = best["whole"] - 0.005
        reached = {
            side: next(
                (row["seconds"] for row in found[side]["curve"] if row["val_accuracy"] >= goal),
                None,
            )
            for side in found
        }
        summary = {"best_val_accuracy": best, "goal": goal, "seconds_to_goal": reached}
        print(summary)
    setting = {"noise": NOISE, "size": SIZE, "fan_out": FAN_OUT, **OPTIONS}
    write("minibatch", {"setting": setting, **summary, "sides": found})


if __name__ == "__main__":
    main()
