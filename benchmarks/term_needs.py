"""What does each term and option need in order to help?

    python benchmarks/term_needs.py STORE [GRAPHS [BACKBONES [COUNT [TERM]]]]

The default settings with one change at a time, over several graphs. Computes the runs that the store lacks, and writes
results/recipe.json: the validation and test accuracy of each seed (public split) or fold, selected on validation, by graph, backbone and
variant. An interrupted run continues. With TERM, only variants in which this term has a weight run; the other rows stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from common import ROOT, write
from everynode.datasets import load
from everynode.datasets.entries import CATALOG
from everynode.datasets.files import Root
from everynode.experiments.run_spec import Run
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.settings import Settings

#: A sigma from the data: the median of the squared feature differences over the graph's edges.
MEDIAN = "median"
#: By name: the objective, and the changes to the default settings.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ce": ("ce", {}),
    "ce, row-normalized input": ("ce", {"normalize_features": True}),
    "ce, no dropout inside": ("ce", {"layer_dropout": 0.0}),
    "tv 0.2": ("tv", {"tv": 0.2}),
    "tv 1": ("tv", {"tv": 1.0}),
    "tv 5": ("tv", {}),
    "mi 0.05": ("mi", {"mi": 0.05}),
    "mi 0.3": ("mi", {}),
    "cvg 0.05": ("cvg", {}),
    "mi 0.3 + tv 5": ("mi+tv", {}),
    "enc": ("enc", {}),
    "enc, tv 0.2, mi 0.05": ("enc", {"tv": 0.2, "mi": 0.05}),
    "enc, tv 1, mi 0.05": ("enc", {"tv": 1.0, "mi": 0.05}),
    "enc, gate none": ("enc", {"tv_gate": "none"}),
    "enc, gate standardized": ("enc", {"tv_gate": "standardized"}),
    "enc, sigma 3": ("enc", {"tv_sigma": 3.0}),
    "enc, sigma 30": ("enc", {"tv_sigma": 30.0}),
    "enc, sigma from the data": ("enc", {"tv_sigma": MEDIAN}),
    "enc, lambda 1": ("enc", {"mi_lambda": 1.0}),
    "enc, random halves": ("enc", {"halves": "random"}),
    "enc, CVG every 4th step": ("enc", {"cvg_every": 4}),
    "enc, row-normalized input": ("enc", {"normalize_features": True}),
    "consistency 0.5": ("consistency", {"consistency": 0.5}),
    "consistency 1": ("consistency", {"consistency": 1.0}),
    "consistency 1, temperature 0.3": (
        "consistency",
        {"consistency": 1.0, "consistency_temperature": 0.3},
    ),
    "consistency 1 + tv 1": ("tv+consistency", {"consistency": 1.0, "tv": 1.0}),
    "enc and consistency 1": ("enc", {"consistency": 1.0}),
    "prior 3": ("prior", {"prior": 3.0}),
    "consistency 1 + prior 3": ("consistency+prior", {"consistency": 1.0, "prior": 3.0}),
    "consistency 1 + prior 1": ("consistency+prior", {"consistency": 1.0, "prior": 1.0}),
}
GRAPHS = "cora,citeseer,texas,wisconsin,cornell,chameleon,actor"


def median_difference(graph: str) -> float:
    """Return the median squared feature difference of neighbors, to four digits."""
    data = load(graph, CATALOG[graph].splits[0])
    x, (one, other) = data.dense_features, data.edges
    return float(f"{(x[one] - x[other]).square().sum(1).median().item():.4g}")


def main() -> None:
    path, graphs, backbones, count, term = [
        *sys.argv[1:],
        *["", GRAPHS, "gcn", "5", ""][len(sys.argv[1:]) :],
    ]
    plan: dict[tuple[str, str, str, str], list[Run]] = {}
    root = Root.find(None)
    sigma = {graph: median_difference(graph) for graph in graphs.split(",")}
    for graph in graphs.split(","):
        split = CATALOG[graph].splits[0]
        folds = split == "geom-gcn"
        digest = CATALOG[graph].digest(split, root)
        for backbone in backbones.split(","):
            for name, (objective, changes) in VARIANTS.items():
                changes = changes | (
                    {"tv_sigma": sigma[graph]} if changes.get("tv_sigma") == MEDIAN else {}
                )
                settings = Settings.preset(
                    "default", graph=graph, split=split, backbone=backbone, **changes
                ).for_objective(objective)
                if term and not getattr(settings, term):
                    continue
                plan[graph, split, backbone, name] = [
                    Run(
                        graph,
                        digest,
                        split,
                        i if folds else 0,
                        0 if folds else i,
                        "default",
                        objective,
                        settings,
                    )
                    for i in range(int(count))
                ]
    runs = [run for group in plan.values() for run in group]
    done = iter(do_runs(runs, Graphs(), Store(Path(path)), workers=1))
    asked = {(graph, backbone, name) for graph, _, backbone, name in plan}
    before = json.loads((ROOT / "results" / "recipe.json").read_text()) if term else {"rows": []}
    rows = [
        row
        for row in before["rows"]
        if (row["graph"], row["backbone"], row["variant"]) not in asked
    ]
    for (graph, split, backbone, name), group in plan.items():
        records = [next(done) for _ in group]
        scores = {
            metric: [record.get(metric) for record in records]
            for metric in ("val_accuracy", "test_accuracy")
        }
        rows.append(
            {"graph": graph, "split": split, "backbone": backbone, "variant": name, **scores}
        )
    write(
        "recipe",
        {
            "before": [*before.get("before", []), *([before["command"]] if term else [])],
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
