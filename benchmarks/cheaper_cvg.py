"""Does CVG at every fourth step reach the accuracy of CVG at every step?

Cora and Citeseer, GCN, 10 seeds, paired, with two weights.
"""

from __future__ import annotations

import dataclasses

from common import write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired, summarize
from everynode.settings import Settings
from everynode.training import evaluate, train
from everynode.training.process_pool import run_many


def work(job: tuple[Settings, int], graph: object) -> float:
    settings, seed = job
    return evaluate(train(graph, settings, seed=seed).network, graph) or 0.0  # type: ignore[arg-type]


def main() -> None:
    rows = []
    for name in ("citeseer", "cora"):
        graph = load(name)
        for weight in (0.05, 0.5):
            choices = {
                every: dataclasses.replace(Settings(), cvg=weight, cvg_every=every)
                for every in (1, 4)
            }
            jobs = [(settings, seed) for seed in range(10) for settings in choices.values()]
            found = {
                (job[0].cvg_every, job[1]): score for job, score in run_many(work, jobs, graph)
            }
            always, fourth = ([found[every, seed] for seed in range(10)] for every in (1, 4))
            gap = compare_paired(fourth, always)
            rows.append(
                {
                    "graph": name,
                    "weight": weight,
                    "every": summarize(always).mean,
                    "fourth": summarize(fourth).mean,
                    **gap.to_dict(),
                }
            )
            print(rows[-1], flush=True)
    write("cheaper-cvg", {"rows": rows})


if __name__ == "__main__":
    main()
