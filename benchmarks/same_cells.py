"""Does this machine get the results of the committed runs of the paper's tables?

    EVERYNODE_DATA=... python benchmarks/same_cells.py

Another CPU rounds differently. After a few hundred epochs this can change the best epoch and a few test nodes. The cells of the tables
should stay the same: so every run of a few whole cells is repeated, and their means are compared, paired.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from common import ROOT, write
from everynode import __version__
from everynode.datasets.files import Root
from everynode.experiments.experiment import find
from everynode.experiments.exports import Export
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.statistics import compare_paired
from everynode.experiments.store import Store
from everynode.machine import cpu

#: Experiment, graph, maximum layers: cells whose runs take seconds.
CELLS = (
    ("semi-supervised", "cora", 2),
    ("homophilic", "cora", 2),
    ("heterophilic", "texas", 16),
    ("heterophilic", "chameleon", 2),
)


def main() -> None:
    root = Root.find(None)
    with tempfile.TemporaryDirectory() as folder:
        kept = Store(Path(folder) / "kept.db")
        kept.put_all(Export.read(ROOT / "results/runs-paper.csv").rows)
        before = kept.records()
        rows: list[dict[str, Any]] = []
        for name, graph, num_layers in CELLS:
            for cell, runs in find(name).plan("paper", None, root)[0].items():
                if (
                    cell.dataset != graph
                    or not runs
                    or runs[0].settings.num_layers > num_layers
                    or not all(run.key in before for run in runs)
                ):
                    continue
                after = do_runs(runs, Graphs(), Store(Path(folder) / "again.db"), workers=1)
                old = [100 * before[run.key]["test_accuracy"] for run in runs]
                new = [100 * record["test_accuracy"] for record in after]
                gap = compare_paired(new, old)
                row = {
                    "experiment": name, "graph": graph, "row": cell.row, "runs": len(runs), "before": sum(old) / len(old),
                    "differ": sum(a != b for a, b in zip(new, old, strict=True)),
                    "largest": max(abs(a - b) for a, b in zip(new, old, strict=True)), "gap": gap.to_dict(),
                }  # fmt: skip
                rows.append(row)
                print(f"{name} {graph} {cell.row}: {row['before']:.2f}, now {gap.mean:+.2f}; {row['differ']} of {len(runs)} runs differ, "
                      f"by {row['largest']:.1f} at most", flush=True)  # fmt: skip
    write("redo", {"cpu": cpu(), "version": __version__, "rows": rows})


if __name__ == "__main__":
    main()
