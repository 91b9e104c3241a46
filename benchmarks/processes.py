"""Seeds a second of ENC-GCN (3 x 256) in batches on a generated graph of ogbn-arxiv's size: one process against two that share each step.

Every process has one thread and ``SIZE`` seeds a step. ``alone``: one process by itself. ``together``: two of them under torchrun, as
``everynode train`` would be. ``apart``: two that know nothing of each other, which is all that the machine can give. One after the
other, ``ROUNDS`` times; the best of each counts, and the load of the machine is in the file.
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
    from everynode.data import generate
    from everynode.settings import Batches, Settings
    from everynode.training.batches.ranks import joined
    from everynode.training.batches.work import Batched
    from everynode.training.memory import reused_memory

    torch.set_num_threads(1)
    graph = generate()
    with joined() as ranks, reused_memory():
        work = Batched(graph, Settings(layers=3, channels=256), Batches(SIZE, FAN_OUT), fold=0, seed=0, ranks=ranks)
        for _ in range(WARM_UP):
            work.advance(0)
        ranks.any(False)  # so that they start at the same moment
        start = time.perf_counter()
        for _ in range(STEPS):
            work.advance(0)
        seconds = time.perf_counter() - start
        if ranks.first:
            print(json.dumps({"seconds_per_step": seconds / STEPS, "seeds_per_second": ranks.size * SIZE * STEPS / seconds}))


def main() -> None:
    if sys.argv[1:] == ["measure"]:
        measure()
        return
    own = [sys.executable, __file__, "measure"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__, "measure"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found: dict[str, list[float]] = {"alone": [], "together": [], "apart": []}
    for _ in range(ROUNDS):
        for side, commands in (("alone", [own]), ("together", [torchrun]), ("apart", [own, own])):
            running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) for words in commands]
            said = [process.communicate()[0] for process in running]
            if any(process.returncode for process in running):
                raise SystemExit(f"{side} failed")
            found[side].append(sum(json.loads(text)["seeds_per_second"] for text in said))
            print(side, found[side][-1], flush=True)
    best = {side: max(rates) for side, rates in found.items()}
    ratios = {"together_to_alone": best["together"] / best["alone"], "apart_to_alone": best["apart"] / best["alone"]}
    write("processes", {"size": SIZE, "fan_out": FAN_OUT, "seeds_per_second": found, **ratios})
    print(ratios)


if __name__ == "__main__":
    main()
