"""Seeds a second of ENC-GCN (3 x 256) in batches on a generated graph of ogbn-arxiv's size: one process against two that share each step.

Every process has one thread and ``SIZE`` seeds a step. ``alone``: one process by itself. ``together``: two of them under torchrun, as
``everynode train`` would be. ``apart``: two that know nothing of each other, which is all that the machine can give. One after the
other, ``ROUNDS`` times (or as many as are given); the best of each counts, and the load of the machine is in the file. So is the CPU time
of a process's step: what sharing the steps adds to it is the part of the price that a busy machine shows too.
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
    from everynode.datasets import generate
    from everynode.settings import Batches, Settings
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
        ranks.any(False)  # so that they start at the same moment
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
