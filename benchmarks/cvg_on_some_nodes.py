"""Does CVG on some labeled nodes of each half reach the accuracy of CVG on all of them?

Ten folds of each graph, one seed each, paired. A run is kept in the file of
``--out`` as soon as it ends, so that the command can be repeated until nothing is left.
``--variants all`` in two versions of everynode compares the versions: ``--compare FILE FILE``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import torch

from common import write
from everynode.datasets import load
from everynode.experiments.statistics import compare_paired, summarize
from everynode.settings import Settings
from everynode.training import evaluate, train


def key(*parts: object) -> str:
    return "/".join(map(str, parts))


def measure(options: argparse.Namespace, runs: dict[str, list[float]]) -> None:
    """Add the test accuracy and the seconds of each missing run, until the time is over."""
    end = time.monotonic() + options.minutes * 60
    for name in options.graphs.split(","):
        graph = load(name, split="geom-gcn")
        for backbone in options.backbones.split(","):
            for fold in range(10):
                for variant in options.variants.split(","):
                    where = key(name, backbone, variant, fold)
                    if where in runs or time.monotonic() > end:
                        continue
                    nodes = {} if variant == "all" else {"cvg_nodes": int(variant)}
                    settings = Settings.preset("default", backbone=backbone).replace(
                        cvg=options.weight, epochs=options.epochs, patience=50, **nodes
                    )
                    start = time.process_time()
                    result = train(graph, settings, fold=fold, seed=fold)
                    seconds = time.process_time() - start
                    runs[where] = [evaluate(result.network, graph, fold=fold) or 0.0, seconds]
                    Path(options.out).write_text(json.dumps(runs, indent=0))
        print(name, len(runs), flush=True)


def compare(one: dict[str, list[float]], other: dict[str, list[float]], name: str) -> list[dict]:  # type: ignore[type-arg]
    """Return the paired differences ``one - other`` of the variant ``name`` from all nodes."""
    folds = defaultdict(list)
    for where, (accuracy, seconds) in one.items():
        graph, backbone, variant, fold = where.split("/")
        twin = other.get(key(graph, backbone, "all", fold))
        if variant == name and twin:
            folds[graph, backbone].append((accuracy, twin[0], seconds / twin[1]))
    rows = []
    for (graph, backbone), pairs in folds.items():
        new, old, times = zip(*pairs, strict=True)
        rows.append(
            {
                "graph": graph,
                "backbone": backbone,
                "folds": len(pairs),
                "nodes": name,
                "accuracy": summarize(new).mean,
                "accuracy_all": summarize(old).mean,
                "cpu_seconds_ratio": sorted(times)[len(times) // 2],
                **compare_paired(new, old).to_dict(),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default="cora,citeseer,chameleon,squirrel,actor")
    parser.add_argument("--backbones", default="gcn")
    parser.add_argument("--variants", default="all,64,128")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--weight", type=float, default=0.05, help="of CVG")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", default="cvg-on-some-nodes.json")
    parser.add_argument("--compare", nargs=2, help="the runs of a new and of an old version")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.compare:
        new, old = (json.loads(Path(file).read_text()) for file in options.compare)
        write("same-accuracy-kernels", {"rows": compare(new, old, "all")})
        return
    out = Path(options.out)
    runs = json.loads(out.read_text()) if out.exists() else {}
    measure(options, runs)
    names = [name for name in options.variants.split(",") if name != "all"]
    rows = [row for name in names for row in compare(runs, runs, name)]
    if rows:
        write("cvg-on-some-nodes", {"rows": rows})


if __name__ == "__main__":
    main()
