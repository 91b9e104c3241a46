"""Is the default ever worse than the better of cross-entropy and ENC?

    python benchmarks/safe_defaults.py [GRAPHS]

`NodeClassifier()` against plain cross-entropy and ENC: test accuracy over the first folds (or seeds of a generated graph), and the ratio
of CPU times. Writes results/safe-defaults.json, and keeps its rows of other graphs. Nothing was chosen on the graphs of FRESH. The
default's settings were chosen on Cora, its light ones on Chameleon, and its rounds on all graphs that are not fresh (halving_rounds.py),
always on validation nodes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator

import torch

from common import ROOT, write
from everynode import NodeClassifier
from everynode.datasets import generate, load
from everynode.experiments.statistics import compare_paired
from everynode.graph import Graph

COUNT = 10
#: By name: homophily, and the noise of the features.
GENERATED = {
    "generated, alike": (0.8, 3.0),
    "generated, unlike": (0.1, 1.5),
    "generated, between": (0.5, 2.0),
}
FRESH = ("actor", "generated, between", "squirrel")
GRAPHS = "texas;wisconsin;cornell;chameleon;actor;generated, alike;generated, unlike;generated, between;cora;citeseer;squirrel"


def cases(name: str, first_seed: int = 0) -> Iterator[tuple[Graph, int, int]]:
    """Yield graph, fold and seed."""
    graph = None if name in GENERATED else load(name)
    for i in range(COUNT):
        if graph is None:
            homophily, noise = GENERATED[name]
            yield (
                generate(2000, 6000, 32, 5, homophily=homophily, noise=noise, seed=first_seed + i),
                0,
                first_seed + i,
            )
        else:
            yield graph, i if len(graph.splits) > 1 else 0, first_seed + i


def main() -> None:
    torch.set_num_threads(1)
    path = ROOT / "results" / "safe-defaults.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for name in (sys.argv[1] if len(sys.argv) > 1 else GRAPHS).split(";"):
        scores: dict[str, list[float]] = {"ce": [], "enc": [], "auto": []}
        seconds: dict[str, list[float]] = {way: [] for way in scores}
        winners = []
        for graph, fold, seed in cases(name):
            for way in scores:
                start = time.process_time()
                model = NodeClassifier(objective=way, random_state=seed).fit(graph, fold=fold)
                seconds[way].append(time.process_time() - start)
                scores[way].append(model.score(graph, "test"))
            winners.append(model.objective_)
        better = max(("ce", "enc"), key=lambda way: statistics.mean(scores[way]))
        share = (
            len(graph.nodes("test")) / len(graph.nodes("train")) if len(graph.splits) > 1 else None
        )
        gap, over_ce = (
            compare_paired(scores["auto"], scores[way], test_share=share).to_dict()
            for way in (better, "ce")
        )
        times = {
            f"times_{way}": [a / b for a, b in zip(seconds["auto"], seconds[way], strict=True)]
            for way in ("ce", "enc")
        }
        found = {
            "test_accuracy": scores,
            "winners": winners,
            "better": better,
            "gap": gap,
            "over_ce": over_ce,
            **times,
        }
        row = {"graph": name, "fresh": name in FRESH, **found}
        rows = [r for r in rows if r["graph"] != name] + [row]
        print(
            name,
            {way: f"{100 * statistics.mean(v):.1f}" for way, v in scores.items()},
            f"{statistics.median(times['times_ce']):.2f}x",
            winners,
            flush=True,
        )
        write("safe-defaults", {"rows": rows})


if __name__ == "__main__":
    main()
