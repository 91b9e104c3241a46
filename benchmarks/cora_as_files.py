"""Does `everynode fit` on Cora as two CSV files reach the accuracy of `everynode train cora`?

    python benchmarks/cora_as_files.py [SEEDS]

Same split, objective and seeds. One of Cora's 1,433 words occurs in no paper. ``fit`` drops such a column, so the network has one row of
weights less and the same seed draws other weights: the two differ as two seeds do. On the named graph without that word, the same seed
gives the same number: ``same_columns``.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common import write
from everynode import Graph, NodeClassifier, load
from everynode.experiments.statistics import compare_paired, summarize
from everynode.sparse import SparseMatrix

#: Number of seeds that are also trained on the named graph without the unused word.
SAME = 3


def export(graph: Graph, folder: Path) -> tuple[Path, Path]:
    """Write the graph as nodes.csv (id, one column per word, label, split) and edges.csv."""
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    part = dict.fromkeys(range(graph.num_nodes), "")
    for name, members in graph.splits[0]._asdict().items():
        part |= dict.fromkeys(members.tolist(), name)
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"word{i}" for i in range(graph.num_features)), "label", "split"])
        for i, (row, label) in enumerate(
            zip(graph.dense_features.int().tolist(), graph.labels.tolist(), strict=True)
        ):
            writer.writerow([f"paper{i}", *row, f"topic{label}", part[i]])
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"paper{a}", f"paper{b}"] for a, b in graph.edges.T.tolist())
    return nodes, edges


def run(*words: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "everynode", *map(str, words), "--json", "--quiet"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if sys.argv[1:] else 10
    found: dict[str, list[float]] = {"train": [], "fit": []}
    same: list[float | None] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = load("cora", "public")
        nodes, edges = export(graph, folder)
        there = (graph.dense_features != 0).any(0).nonzero()[:, 0]
        words = SparseMatrix.from_scipy(
            graph.features.to_scipy().tocsc()[:, there.numpy()].tocsr(), torch.float32
        )
        without = replace(graph, features=words)
        for seed in range(seeds):
            trained = run("train", "cora", "--seed", seed, "--out", folder / f"train-{seed}")
            fitted = run(
                "fit",
                "--nodes",
                nodes,
                "--edges",
                edges,
                "--objective",
                "enc",
                "--seed",
                seed,
                "--out",
                folder / f"fit-{seed}",
            )
            found["train"].append(trained["test_accuracy"])
            found["fit"].append(fitted["quality"]["test"]["accuracy"][0])
            same.append(
                NodeClassifier(objective="enc", random_state=seed, verbose=False)
                .fit(without)
                .score(without)
                if seed < SAME
                else None
            )
            print(seed, same[-1], *(f"{values[-1]:.4f}" for values in found.values()), flush=True)
    difference = compare_paired(found["fit"], found["train"]).to_dict() if seeds > 1 else None
    summary = {name: summarize(values).to_dict() for name, values in found.items()}
    write(
        "own-cora",
        {
            "seeds": seeds,
            "test_accuracy": {**found, "same_columns": same},
            "summary": summary,
            "fit_minus_train": difference,
        },
    )


if __name__ == "__main__":
    main()
