"""What do two processes that share every step get done, against one?

Seeds per second of ENC-GCN (3 x 256) in mini-batches on a generated graph of ogbn-arxiv's size. Every process has one thread and ``SIZE``
seeds per step. ``alone``: one process. ``together``: two under torchrun, as with ``everynode train``. ``apart``: two independent ones, the
most that the machine can give. One after another, ``ROUNDS`` times (or the given number); the best of each counts. The file also has the
load of the machine and the CPU time of a step, which shows the price of sharing on a busy machine too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import torch

from common import write

SIZE, FAN_OUT, STEPS, WARM_UP, ROUNDS = 512, (5, 4, 3), 8, 2, 2


def measure() -> None:
    from everynode.batches import Batches
    from everynode.datasets import generate
    from everynode.settings import Settings
    from everynode.training.distributed import process_group
    from everynode.training.memory import reused_memory
    from everynode.training.mini_batch.work import Batched

    torch.set_num_threads(1)
    graph = generate()
    with process_group() as ranks, reused_memory():
        work = Batched(
            graph,
            Settings(num_layers=3, hidden_channels=256),
            Batches(SIZE, FAN_OUT),
            fold=0,
            seed=0,
            ranks=ranks,
        )
        for _ in range(WARM_UP):
            work.advance(0)
        ranks.any(False)  # they start at the same moment
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            work.advance(0)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        if ranks.first:
            print(
                json.dumps(
                    {
                        "cpu_seconds_per_step": cpu_seconds / STEPS,
                        "seeds_per_second": ranks.size * SIZE * STEPS / seconds,
                    }
                )
            )


def main() -> None:
    if sys.argv[1:] == ["measure"]:
        measure()
        return
    own = [sys.executable, __file__, "measure"]
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        __file__,
        "measure",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found: dict[str, list[float]] = {"alone": [], "together": [], "apart": []}
    cpu: dict[str, list[float]] = {side: [] for side in found}
    for _ in range(int(sys.argv[1]) if sys.argv[1:] else ROUNDS):
        for side, commands in (("alone", [own]), ("together", [torchrun]), ("apart", [own, own])):
            running = [
                subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
                for words in commands
            ]
            said = [process.communicate()[0] for process in running]
            if any(process.returncode for process in running):
                raise SystemExit(f"{side} failed")
            results = [json.loads(text) for text in said]
            found[side].append(sum(result["seeds_per_second"] for result in results))
            cpu[side].append(max(result["cpu_seconds_per_step"] for result in results))
            print(side, found[side][-1], cpu[side][-1], flush=True)
    best = {side: max(rates) for side, rates in found.items()}
    ratios = {
        "together_to_alone": best["together"] / best["alone"],
        "apart_to_alone": best["apart"] / best["alone"],
    }
    write(
        "processes",
        {
            "size": SIZE,
            "fan_out": FAN_OUT,
            "seeds_per_second": found,
            "cpu_seconds_per_step": cpu,
            **ratios,
        },
    )
    print(ratios)


if __name__ == "__main__":
    main()
