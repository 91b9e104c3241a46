"""What are held-out labels worth when there are few?

    python benchmarks/few_labels_held_out.py

Without validation nodes, some labels are held out to select settings and epoch. ``cv=0.2`` (below: "cv=1") holds out a fifth once; the model never trains on
it. ``then all labels`` trains the winner again on all labels, for 1.25 times its best epoch (at least 100), and takes the last weights.
``cv=3``, the default below 100 labels, holds out every label in one of three folds and averages the three networks. Graphs of
readme_weights.py, and Citeseer and Cora with few labels per class; six draws each: test accuracy, calibration error after the temperature,
and seconds. Writes results/held-out.json.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

import everynode as en
from common import write
from everynode.datasets import random_split
from everynode.evaluation.metrics import expected_calibration_error
from everynode.experiments.statistics import compare_paired
from everynode.graph import Split
from everynode.training.loop import Training
from readme_weights import draw

DRAWS = 6


class Case(NamedTuple):
    graph: en.Graph
    labeled: Tensor
    test: Tensor


def cases() -> Iterator[tuple[str, list[Case]]]:
    for features in ("clear", "weak"):
        for labels in (15, 30, 60):
            drawn = [draw(seed, labels, features) for seed in range(DRAWS)]
            yield (
                f"generated, {features} features, {labels} labels",
                [
                    Case(
                        en.Graph.from_pyg(data),
                        data.train_mask.nonzero()[:, 0],
                        data.test_mask.nonzero()[:, 0],
                    )
                    for data in drawn
                ],
            )
    for name in ("citeseer", "cora"):
        graph = en.load(name, "public")
        for per_class in (3, 10):
            splits = [random_split(graph.labels, per_class, seed=seed) for seed in range(DRAWS)]
            yield (
                f"{name}, {per_class} labels a class",
                [Case(graph, split.train, split.test) for split in splits],
            )


def measure(case: Case, seed: int) -> dict[str, dict[str, float]]:
    graph = case.graph.with_splits([Split(case.labeled, case.test[:0], case.test)])
    truth = graph.labels[case.test]
    found: dict[str, dict[str, float]] = {}
    for name, objective, cv in (
        ("cross-entropy, cv=1", "ce", 0.2),
        ("cv=1", "auto", 0.2),
        ("cross-entropy, cv=3", "ce", 3),
        ("cv=3", "auto", 3),
    ):
        start = time.perf_counter()
        model = en.NodeClassifier(objective=objective, cv=cv, random_state=seed).fit(graph)
        seconds = time.perf_counter() - start
        told = torch.as_tensor(model.predict_proba(graph))[case.test]
        right = (told.argmax(1) == truth).double().mean().item()
        found[name] = {
            "test_accuracy": right,
            "ece": expected_calibration_error(told, truth),
            "seconds": seconds,
        }
        if name == "cv=1":
            epochs = max(100, round(1.25 * (model.best_epoch_ + 1)))
            settings = dataclasses.replace(model.fitted_.settings, epochs=epochs, patience=epochs)
            # Training needs validation nodes; these select nothing.
            again = Training(
                case.graph.with_splits([Split(case.labeled, case.test, case.test[:0])]),
                settings,
                seed=seed,
            )
            again.advance(threading.Event())
            again.network.eval()
            with torch.no_grad():
                right = (
                    (again.network(again.graph).argmax(1)[case.test] == truth)
                    .double()
                    .mean()
                    .item()
                )
            found["cv=1, then all labels"] = {"test_accuracy": right}
    return found


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name, drawn in cases():
        found = [measure(case, seed) for seed, case in enumerate(drawn)]
        ways = {
            way: {what: [one[way][what] for one in found] for what in values}
            for way, values in found[0].items()
        }
        test = {way: values["test_accuracy"] for way, values in ways.items()}
        gain = {
            f"over {other}": compare_paired(test["cv=3"], test[other]).to_dict()
            for other in ("cv=1", "cross-entropy, cv=1")
        }
        rows.append({"case": name, "ways": ways, "gain_of_cv_3": gain})
        print(
            name,
            {way: round(100 * sum(values) / DRAWS, 1) for way, values in test.items()},
            flush=True,
        )
    write("held-out", {"rows": rows})


if __name__ == "__main__":
    main()
