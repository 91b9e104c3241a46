"""What should the members of the default learn from when labels are few and there is no validation set?

    python benchmarks/unseen_few_labels.py STORE [--graphs texas,cornell] [--regimes 5] [--splits 2]

Cells of unseen.py without a validation set, with 3 and with 5 folds of the labels. Three designs share the weights:

- "fold networks": every member averages its networks of the folds;
- "closed forms on all labels": closed-form members are solved once more on the labels of all folds;
- "all members on all labels": the others too, with two networks, trained for the mean best epoch of their folds.

Each half of the graphs chooses the folds and the design with the lowest mean log-loss on its test nodes, and the other
half reports them. STORE keeps the trainings, and results/unseen-few-labels.json every finished cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import ROOT
from unseen import Arrays, Cell, draw, read, write

GRAPHS = ("texas", "cornell", "wisconsin", "acm", "citeseer", "cora", "chameleon")
#: Every second graph: choices made on one half are reported on the other.
HALVES = (GRAPHS[::2], GRAPHS[1::2])
FOLDS = (3, 5)
#: Networks of a member that learn from all labels.
REFITS = 2


def run(cell: Cell, arrays: Arrays, folds: int, store: Path) -> list[dict[str, Any]]:
    """Return the accuracy and the log-loss of every design on a cell."""
    from everynode.graph import Graph
    from everynode.selection.portfolio_ensemble import assemble
    from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio

    train, _, test = draw(cell, arrays.labels)
    given = np.full(len(arrays.labels), -1)
    given[train] = arrays.labels[train]
    classes = list(range(arrays.labels.max() + 1))
    graph = Graph.from_arrays(arrays.features, arrays.edges, given, classes=classes)
    options = PortfolioOptions(workers=1, time_limit=1e9, cv=folds)
    jobs = store / f"jobs-{folds}-folds" / cell.name
    fitted = fit_portfolio(graph, options, seed=cell.split, checkpoint=jobs, verbose=False)
    race, closed = fitted.race, fitted.selection.ensemble
    again = tuple(refitted(member, graph, train, cell.split) for member in closed)
    race.all_labels = None
    weights = {member.candidate.name: member.weight for member in closed}
    ensembles = {
        "fold networks": assemble(race, weights, race.common_folds()[1])[0],
        "closed forms on all labels": closed,
        "all members on all labels": dataclasses.replace(closed, members=again),
    }
    rows, labels = [], arrays.labels[test]
    for design, ensemble in ensembles.items():
        log_p = ensemble.log_probabilities(graph, torch.from_numpy(test)).numpy()
        right = float((log_p.argmax(1) == labels).mean())
        loss = float(-log_p[np.arange(len(test)), labels].mean())
        scores = {"accuracy": round(right, 5), "log_loss": round(loss, 5)}
        rows.append({**cell._asdict(), "folds": folds, "design": design, **scores})
    return rows


def refitted(member: Any, graph: Any, train: np.ndarray, seed: int) -> Any:
    """Return a member with networks that learned from all labels; a closed form already did."""
    from everynode.graph import Split
    from everynode.training.closed_form import is_closed_form
    from everynode.training.loop import Training

    if is_closed_form(member.candidate.settings):
        return member
    epochs = round(statistics.mean(result.best_epoch + 1 for result in member.results))
    settings = member.candidate.settings.replace(epochs=epochs, patience=epochs)
    # A training wants a validation node. This one has a made-up label, and chooses nothing.
    labels = graph.labels.clone()
    judge = (labels < 0).nonzero()[0]
    labels[judge] = 0
    split = Split(torch.from_numpy(train), judge, judge[:0])
    bare = member.preparation.apply(graph.with_labels(labels).with_splits([split]))
    results = []
    for number in range(REFITS):
        training = Training(bare, settings, seed=seed + 100 + number)
        training.advance(threading.Event())
        training.network.eval()  # the last epoch
        results.append(dataclasses.replace(member.results[0], network=training.network, fold=0))
    return dataclasses.replace(member, results=tuple(results))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of each design by half of the graphs, and what each half chooses."""
    complete: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        complete.setdefault((row["graph"], row["regime"], row["split"]), []).append(row)
    designs = sorted({(row["folds"], row["design"]) for row in rows})
    paired = [cell for cell in complete.values() if len(cell) == len(designs)]
    means = []
    for folds, design in designs:
        halves = [
            [r for cell in paired for r in cell
             if r["graph"] in half and (r["folds"], r["design"]) == (folds, design)]
            for half in HALVES
        ]  # fmt: skip
        scores = [
            [round(statistics.mean(row[key] for row in half), 5) for key in ("log_loss", "accuracy")]
            for half in halves if half
        ]  # fmt: skip
        means.append({"folds": folds, "design": design, "halves": scores})
    count = len(means[0]["halves"]) if means else 0
    chosen = [min(means, key=lambda one, h=half: one["halves"][h][0]) for half in range(count)]
    cells = [sum(cell[0]["graph"] in half for cell in paired) for half in HALVES]
    return {"graphs": HALVES, "cells": cells, "means": means, "chosen": chosen}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    for name, default in (("graphs", GRAPHS), ("regimes", ("5",))):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=list(default))
    parser.add_argument("--splits", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = ROOT / "results" / "unseen-few-labels.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for graph in arguments.graphs:
        arrays = read(graph)
        for regime in arguments.regimes:
            for split in range(arguments.splits):
                cell = Cell(graph, regime, split, validation=False)
                for folds in FOLDS:
                    key = {**cell._asdict(), "folds": folds}
                    if any(key.items() <= row.items() for row in rows):
                        continue
                    rows += run(cell, arrays, folds, arguments.store)
                    report = {"command": "python benchmarks/unseen_few_labels.py STORE"}
                    write(path, {**report, **summary(rows), "rows": rows})
                    print(*(f"{row['design']} {row['accuracy']:.3f}" for row in rows[-3:]),
                          cell.name, folds, sep="; ", flush=True)  # fmt: skip
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
