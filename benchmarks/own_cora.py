"""A public graph as two CSV files through ``everynode fit``, beside ``everynode train`` on the same split: the same accuracy.

    python benchmarks/own_cora.py [SEEDS]
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import write

from everynode import Graph, load
from everynode.experiments.statistics import compare_paired, summarise


def export(graph: Graph, folder: Path) -> tuple[Path, Path]:
    """The graph as nodes.csv (id, one column per word, label, split) and edges.csv."""
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    part = dict.fromkeys(range(graph.num_nodes), "")
    for name, members in graph.splits[0]._asdict().items():
        part |= dict.fromkeys(members.tolist(), name)
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"word{i}" for i in range(graph.num_features)), "label", "split"])
        for i, (row, label) in enumerate(zip(graph.dense_features.int().tolist(), graph.labels.tolist(), strict=True)):
            writer.writerow([f"paper{i}", *row, f"topic{label}", part[i]])
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"paper{a}", f"paper{b}"] for a, b in graph.edge_index.T.tolist())
    return nodes, edges


def run(*words: object) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "everynode", *map(str, words), "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main() -> None:
    seeds = int(sys.argv[1]) if sys.argv[1:] else 10
    found: dict[str, list[float]] = {"train": [], "fit": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes, edges = export(load("cora", "public"), folder)
        for seed in range(seeds):
            trained = run("train", "cora", "--seed", seed, "--out", folder / f"train-{seed}")
            fitted = run("fit", "--nodes", nodes, "--edges", edges, "--seed", seed, "--out", folder / f"fit-{seed}")
            found["train"].append(trained["test_accuracy"])
            found["fit"].append(fitted["quality"]["test"]["accuracy"][0])
            print(seed, *(f"{values[-1]:.4f}" for values in found.values()), flush=True)
    difference = compare_paired(found["fit"], found["train"]).to_dict() if seeds > 1 else None
    summary = {name: summarise(values).to_dict() for name, values in found.items()}
    write("own-cora", {"seeds": seeds, "test_accuracy": found, "summary": summary, "fit_minus_train": difference})


if __name__ == "__main__":
    main()
