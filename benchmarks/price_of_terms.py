"""What do the terms cost, against plain cross-entropy?

A step and an evaluation of everynode, Cora, one thread. Two layers, as in the paper's table of run-times (whose ratios on a GPU were 1.84,
2.13 and 1.89), and GCNII with 8; on the public split (140 labels) and on the ten folds (48% labeled); CVG at every step and at every
fourth.
"""

from __future__ import annotations

import dataclasses
import statistics
import time

import torch

from common import write
from everynode.benchmarks.sides import Ours, one_fold, settings_for
from everynode.datasets import load
from everynode.training.memory import reused_memory


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for split in ("public", "geom-gcn"):
        graph = one_fold(load("cora", split))
        for backbone, num_layers in (("gcn", 2), ("gat", 2), ("gcnii", 2), ("gcnii", 8)):
            settings = {
                name: settings_for(backbone, name, num_layers=num_layers)
                for name in ("ce", "mi+tv", "enc")
            }
            settings["enc, CVG every 4th step"] = dataclasses.replace(settings["enc"], cvg_every=4)
            settings["consistency"] = dataclasses.replace(settings["ce"], consistency=1.0)
            sides = {name: Ours(graph, choice) for name, choice in settings.items()}
            times: dict[str, list[float]] = {name: [] for name in sides}
            with reused_memory():  # as in the training loop
                for turn in range(100):
                    for name, side in sides.items():
                        start = time.perf_counter()
                        for _ in range(4):
                            side.step()
                        if turn >= 10:
                            times[name].append((time.perf_counter() - start) / 4)
            ms = {name: 1000 * statistics.median(values) for name, values in times.items()}
            # Paired within a turn, because the speed of the machine drifts over minutes.
            price = {
                name: statistics.median(a / b for a, b in zip(values, times["ce"], strict=True))
                for name, values in times.items()
            }
            row = {"split": split, "network": f"{backbone}-{num_layers}", "ms": ms, "price": price}
            print(
                split, row["network"], *(f"{name}: {price[name]:.2f}x" for name in ms), flush=True
            )
            rows.append(row)
    write("price", {"rows": rows})


if __name__ == "__main__":
    main()
