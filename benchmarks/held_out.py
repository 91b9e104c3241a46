"""What the labels are worth that the default holds out: `NodeClassifier()` as it is, and its choice trained once more on all labels.

    python benchmarks/held_out.py

Without validation nodes a fifth of the labels is held out to choose by, and the model never learns from it. Here what won is trained
again on all labels, for a quarter more epochs than its best one (at least 100), and its last weights are taken. Graphs of three_lines.py,
and Citeseer and Cora with few labels a class; six draws each, test accuracy. Written to results/held-out.json.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

import everynode as en
from common import write
from everynode.data import hold_out, random_split
from everynode.experiments.statistics import compare_paired
from everynode.graph import Split
from everynode.training.loop import Training
from three_lines import draw

DRAWS = 6


class Case(NamedTuple):
    graph: en.Graph
    labelled: Tensor
    test: Tensor


def cases() -> Iterator[tuple[str, list[Case]]]:
    for features in ("clear", "weak"):
        for labels in (15, 30, 60):
            drawn = [draw(seed, labels, features) for seed in range(DRAWS)]
            yield (
                f"generated, {features} features, {labels} labels",
                [Case(en.Graph.from_pyg(data), data.train_mask.nonzero()[:, 0], data.test_mask.nonzero()[:, 0]) for data in drawn],
            )
    for name in ("citeseer", "cora"):
        graph = en.load(name, "public")
        for per_class in (3, 10):
            splits = [random_split(graph.labels, per_class, seed=seed) for seed in range(DRAWS)]
            yield f"{name}, {per_class} labels a class", [Case(graph, split.train, split.test) for split in splits]


def accuracies(case: Case, seed: int) -> dict[str, float]:
    train, val = hold_out(case.labelled, case.graph.labels, 0.2, seed)
    graph = case.graph.with_splits([Split(train, val, case.test)])
    found = {}
    for name, objective in {"cross-entropy": "ce", "default": "auto"}.items():
        model = en.NodeClassifier(objective=objective, random_state=seed).fit(graph)
        found[name] = model.score(graph, "test")
    epochs = max(100, round(1.25 * (model.best_epoch_ + 1)))
    settings = dataclasses.replace(model.fitted_.settings, epochs=epochs, patience=epochs)
    # A training must have validation nodes; nothing is chosen by these.
    again = Training(case.graph.with_splits([Split(case.labelled, case.test, case.test[:0])]), settings, seed=seed)
    again.advance(threading.Event())
    again.network.eval()
    with torch.no_grad():
        right = again.network(again.graph).argmax(1) == case.graph.labels
    found["default, then all labels"] = right[case.test].double().mean().item()
    return found


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name, drawn in cases():
        found = [accuracies(case, seed) for seed, case in enumerate(drawn)]
        test = {way: [one[way] for one in found] for way in found[0]}
        gain = compare_paired(test["default, then all labels"], test["default"])
        rows.append({"case": name, "test_accuracy": test, "gain": gain.to_dict()})
        print(name, {way: round(100 * sum(values) / DRAWS, 1) for way, values in test.items()}, flush=True)
    write("held-out", {"rows": rows})


if __name__ == "__main__":
    main()
