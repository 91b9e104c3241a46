"""Does the queue of `everynode app` teach more than random labels?

A person answers with the truth. Half of the nodes are offered, the other half measures the accuracy. The queue gives 20 nodes before the first
training (a batch of `everynode suggest`, from features and links), then 20 and 40 more by the model; random labels are drawn from the same half.
The arm "unsure" begins with the nodes with most neighbors and goes on with the lowest certainty. Every
training is that of the application, the quick portfolio. Three seeds.

    EVERYNODE_DATA=../shared/datasets python benchmarks/app_queue.py --graphs ../shared/graphs

Finished rows of results/app_queue.json are not computed again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch

import everynode as en
from common import ROOT, write
from everynode.estimator import NodeClassifier
from everynode.graph import Graph

SIZES, SEEDS, GRAPHS = (20, 40, 80), 3, ("cora", "acm", "amazon-photo")
ARMS = ("queue", "unsure", "random")


def load(name: str, folder: Path) -> Graph:
    if name == "cora":
        return en.load("cora").with_splits([])
    with np.load(folder / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    features = arrays.get("features")
    if features is None:
        data = arrays.get("feature_data", np.ones(len(arrays["feature_indices"]), np.float32))
        shape = tuple(arrays["feature_shape"])
        features = scipy.sparse.csr_array(
            (data, arrays["feature_indices"], arrays["feature_indptr"]), shape
        )
    return Graph.from_arrays(features, arrays["edges"].T, arrays["labels"], name=name)


def next_nodes(
    arm: str, graph: Graph, model: Any, offered: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """The nodes to label next, all without a label."""
    free = offered[graph.labels.numpy()[offered] < 0]
    if arm == "random":
        return np.random.default_rng(seed + 1000 * count).choice(free, count, replace=False)
    if arm == "unsure":
        if model is None:
            return free[np.argsort(-graph.degree.numpy()[free], kind="stable")[:count]]
        return free[np.argsort(model.predict_proba(graph)[free].max(1), kind="stable")[:count]]
    from everynode.evaluation.suggestions import suggestions

    probabilities, classes = None, ()
    if model is not None:
        probabilities, classes = model.predict_proba(graph), model.classes_.tolist()
    rows = suggestions(graph, count, probabilities, classes, nodes=free, seed=seed)
    return np.array([row.node for row in rows])


def train(graph: Graph, seed: int) -> NodeClassifier:
    """Train the quick portfolio, as a round of the application does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NodeClassifier(effort="quick", random_state=seed, verbose=False, n_jobs=1).fit(graph)


def one(graph: Graph, arm: str, seed: int) -> list[dict[str, Any]]:
    truth = graph.labels.numpy()
    known = np.random.default_rng(seed).permutation(np.flatnonzero(truth >= 0))
    offered, test = np.sort(known[: len(known) // 2]), known[len(known) // 2 :]
    labels, model, rows, before = np.full(len(truth), -1), None, [], 0
    for size in SIZES:
        current = graph.with_labels(labels)
        chosen = next_nodes(arm, current, model, offered, size - before, seed)
        labels[chosen] = truth[chosen]
        names = np.array([None if label < 0 else int(label) for label in labels], dtype=object)
        taught = graph.with_labels(names)
        model, before = train(taught, seed), size
        right = float((model.predict(taught)[test].astype(int) == truth[test]).mean())
        rows.append({
            "graph": graph.name, "arm": arm, "seed": seed, "labels": size, "accuracy": round(right, 4),
            "classes_seen": len(set(labels[labels >= 0].tolist())),
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean accuracy of each arm, and its difference to random labels by seed."""
    cells = []
    for name in GRAPHS:
        for size in SIZES:
            arms = {
                arm: {
                    r["seed"]: r["accuracy"]
                    for r in rows
                    if (r["graph"], r["arm"], r["labels"]) == (name, arm, size)
                }
                for arm in ARMS
            }
            for arm in ARMS[:-1]:
                both = sorted(arms[arm].keys() & arms["random"].keys())
                if both:
                    gains = [round(arms[arm][seed] - arms["random"][seed], 4) for seed in both]
                    means = {
                        one: round(float(np.mean([arms[one][seed] for seed in both])), 4)
                        for one in (arm, "random")
                    }
                    cells.append({"graph": name, "labels": size, "means": means, "gains": gains})
    return cells


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", type=Path, default=ROOT.parent / "shared" / "graphs")
    parser.add_argument("--arms", nargs="+", default=ARMS, choices=ARMS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = ROOT / "results" / "app_queue.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    for seed in range(SEEDS):
        for name in GRAPHS:
            graph = load(name, options.graphs)
            for arm in options.arms:
                if not any(
                    (r["graph"], r["arm"], r["seed"]) == (graph.name, arm, seed) for r in rows
                ):
                    rows += one(graph, arm, seed)
                    write("app_queue", {"cells": summary(rows), "rows": rows})


if __name__ == "__main__":
    main()
