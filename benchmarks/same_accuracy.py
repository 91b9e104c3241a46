"""Do two versions of everynode reach the same accuracy over 20 seeds?

    python benchmarks/same_accuracy.py OLD_EVERYNODE NEW_EVERYNODE

Each argument is the `everynode` command of an environment with that version. The seeds are paired.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from common import write
from everynode.experiments.statistics import compare_paired, summarize


def scores(command: str, graph: str, backbone: str) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        words = [
            command,
            "compare",
            graph,
            "--backbone",
            backbone,
            "--seeds",
            "20",
            "--out",
            folder,
            "--json",
            "--quiet",
        ]
        found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    by: dict[str, dict[int, float]] = {}
    for run in found["runs"]:
        by.setdefault(run["objective"], {})[run["seed"]] = run["test_accuracy"]
    return {
        objective: [values[seed] for seed in sorted(values)] for objective, values in by.items()
    }


def main() -> None:
    old, new = sys.argv[1:]
    rows = []
    for graph, backbone in (("citeseer", "gcn"), ("cora", "gcn"), ("cora", "gat")):
        before, after = scores(old, graph, backbone), scores(new, graph, backbone)
        for objective in before:
            gap = compare_paired(after[objective], before[objective])
            means = summarize(before[objective]).mean, summarize(after[objective]).mean
            row = {
                "graph": graph,
                "backbone": backbone,
                "objective": objective,
                "before": means[0],
                "after": means[1],
                **gap.to_dict(),
            }
            print(
                f"{graph} {backbone} {objective}: {100 * means[0]:.2f} before, {100 * means[1]:.2f} after, p = {gap.p_value:.2f}",
                flush=True,
            )
            rows.append(row)
    write("same-accuracy", {"rows": rows})


if __name__ == "__main__":
    main()
