"""Are the probabilities of the delivered average calibrated, with 500 labels?

    python benchmarks/calibration_of_average.py run STORE [--graphs cora,acm] [--labels 500] [--draws 3] [--cv 2] [--effort quick]
    python benchmarks/calibration_of_average.py write STORE

``run`` draws labels at random, fits the portfolio to them without contrast and class shift, and keeps out-of-fold and test
log-probabilities, fold by fold, in a file of STORE; the same command continues. ``write`` scores them without
training: as trained, with one temperature for all nodes, and as delivered, with contrast.
The rule of the temperature has no constant. It was preferred to another one (equal mean confidence of the average and a
fold) on the first draws of the first five graphs, with the networks of an earlier commit. The contrast was preferred
to one temperature, and to a contrast of either sign, with a look at six draws of these graphs with effort quick, and
at three of chameleon with effort standard.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

import everynode as en
from common import write
from everynode.evaluation.calibration import (
    chance_error,
    reliability,
    temperature,
    temperature_of_average,
)
from everynode.evaluation.contrast import contrast, with_contrast
from everynode.evaluation.metrics import expected_calibration_error
from everynode.graph import Graph, Split
from everynode.selection import portfolio_ensemble
from unseen import read

GRAPHS = (
    "acm", "cora", "citeseer", "twitch-engb", "chameleon", "amazon-photo", "pubmed", "dblp", "blogcatalog",
)  # fmt: skip
#: The most test nodes of a cell.
MOST_TEST = 5000


class Cell(NamedTuple):
    """A graph with some labels drawn at random, and the folds (0: the default)."""

    graph: str
    labels: int
    draw: int
    cv: int
    effort: str = "quick"

    @property
    def name(self) -> str:
        return "-".join(map(str, self))


def run(cell: Cell, store: Path) -> None:
    """Fit the portfolio without contrast, and keep its log-probabilities by fold."""
    portfolio_ensemble.contrast = lambda *_: 0.0
    arrays = read(cell.graph)
    random = np.random.default_rng([cell.draw, 500])
    order = random.permutation(np.flatnonzero(arrays.labels >= 0))
    taught, test = order[: cell.labels], order[cell.labels :][:MOST_TEST]
    given = np.full(len(arrays.labels), -1)
    given[taught] = arrays.labels[taught]
    classes = list(range(arrays.labels.max() + 1))
    graph = Graph.from_arrays(arrays.features, arrays.edges, given, classes=classes)
    empty = torch.arange(0)
    graph = graph.with_splits([Split(torch.from_numpy(taught), empty, empty)])
    start = time.process_time()
    model = en.NodeClassifier(
        effort=cell.effort, time_limit=1e6, n_jobs=1, cv=cell.cv or "auto", random_state=cell.draw,
        verbose=False,
    ).fit(graph)  # fmt: skip
    seconds = time.process_time() - start
    nodes = torch.from_numpy(test)
    np.savez_compressed(
        store / f"{cell.name}.npz",
        held_out=model.held_out_.log_probabilities.numpy(),
        held_out_nodes=model.held_out_.nodes.numpy(),
        held_out_labels=arrays.labels[model.held_out_.nodes.numpy()],
        by_fold=torch.stack(model.ensemble_.by_fold(graph, nodes)).numpy().astype(np.float32),
        average=model.ensemble_.unshifted(graph, nodes).numpy().astype(np.float32),
        test_labels=arrays.labels[test],
        seconds=seconds,
    )
    right = (model.log_probabilities(graph, nodes).argmax(1).numpy() == arrays.labels[test]).mean()
    print(f"{cell.name:30} {100 * right:.1f} {seconds:.0f} s", flush=True)


def bins_of(probabilities: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the nodes, the accuracy and the confidence of each bin that has nodes."""
    bins = reliability(torch.from_numpy(probabilities), torch.from_numpy(labels))
    rows = np.array([(one.count, one.accuracy, one.confidence) for one in bins])
    return rows[:, 0], rows[:, 1], rows[:, 2]


def debiased_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    r"""Return the calibration error less its bias (Kumar, Liang and Ma 2019).

    The accuracy of a bin is noisy, so the distance from its confidence is too large on average. The bias is that
    of \|N(gap, variance)\|, in closed form.
    """
    count, accuracy, confidence = bins_of(probabilities, labels)
    gap = np.abs(accuracy - confidence)
    noise = np.sqrt(np.maximum(accuracy * (1 - accuracy), 1e-12) / np.maximum(count - 1, 1))
    expected = noise * math.sqrt(2 / math.pi) * np.exp(-0.5 * (gap / noise) ** 2)
    expected += gap * (1 - 2 * norm.cdf(-gap / noise))
    return max(0.0, float(count @ (2 * gap - expected)) / count.sum())


def score(log_p: Tensor, divisor: float, labels: np.ndarray) -> dict[str, float]:
    """Return the errors of log-probabilities at a temperature."""
    p = torch.softmax(log_p / divisor, 1).numpy()
    right = p[np.arange(len(labels)), labels]
    return {
        "temperature": divisor,
        "confidence": float(p.max(1).mean()),
        "ece": expected_calibration_error(torch.from_numpy(p), torch.from_numpy(labels)),
        "debiased": debiased_error(p, labels),
        "by_chance": chance_error(torch.from_numpy(p)),
        "log_loss": float(-np.log(np.maximum(right, 1e-300)).mean()),
    }


def delivered(stored: dict[str, np.ndarray], amount: float) -> tuple[Tensor, float]:
    """Return the log-probabilities of the average with a contrast, and their temperature."""
    held_out, average, *folds = (
        with_contrast(torch.from_numpy(one).double(), amount)
        for one in (stored["held_out"], stored["average"], *stored["by_fold"])
    )
    of_fold = temperature(held_out, torch.from_numpy(stored["held_out_labels"]))
    return average, temperature_of_average(folds, of_fold, average)


def write_all(store: Path) -> None:
    """Write results/calibration-500.json."""
    rows = []
    for path in sorted(store.glob("*.npz")):
        name, labels, draw, cv, effort = path.stem.rsplit("-", 4)
        with np.load(path) as arrays:
            stored = dict(arrays)
        y = stored["test_labels"]
        labels_of_folds = torch.from_numpy(stored["held_out_labels"])
        found = contrast(torch.from_numpy(stored["held_out"]), labels_of_folds)
        rules = {
            "as trained": (torch.from_numpy(stored["average"]).double(), 1.0),
            "one temperature": delivered(stored, 0.0),
            "delivered": delivered(stored, found),
        }
        rows.append({
            "graph": name, "labels": int(labels), "draw": int(draw), "cv": int(cv), "effort": effort,
            "folds": len(stored["by_fold"]), "test_nodes": len(y),
            "seconds": float(stored["seconds"]),
            "held_out_accuracy": float((stored["held_out"].argmax(1) == stored["held_out_labels"]).mean()),
            "one_fold_accuracy": float(np.mean([(fold.argmax(1) == y).mean() for fold in stored["by_fold"]])),
            "accuracy": float((stored["average"].argmax(1) == y).mean()),
            "contrast": found,
            "rules": {rule: score(*of_rule, y) for rule, of_rule in rules.items()},
        })  # fmt: skip
    write("calibration-500", {"rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("store", type=Path)
    parser.add_argument("--graphs", type=lambda t: t.split(","), default=list(GRAPHS))
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--cv", type=int, default=0)
    parser.add_argument("--effort", default="quick")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    store = arguments.store
    if arguments.what == "write":
        write_all(store)
        return
    store.mkdir(parents=True, exist_ok=True)
    for draw in range(arguments.draws):
        for name in arguments.graphs:
            cell = Cell(name, arguments.labels, draw, arguments.cv, arguments.effort)
            if not (store / f"{cell.name}.npz").exists():
                run(cell, store)


if __name__ == "__main__":
    main()
