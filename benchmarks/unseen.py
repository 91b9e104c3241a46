"""How good are the labels of the default on graphs that nothing was tuned on, beside ten lines of scikit-learn or PyG?

    python benchmarks/unseen.py run STORE [--graphs acm,dblp] [--regimes 5,20,48%,folds] [--splits 3] [--validation no]
    python benchmarks/unseen.py write STORE

``run`` finishes one cell after another, the cheapest first, and keeps each in a file of STORE, so the same command
continues, and several processes can share a STORE. ``write`` makes results/unseen.csv of the finished cells.

A cell is a graph, a regime, a split, and whether the systems get a validation set. Regimes: 5 or 20 training labels a
class (and as many for validation; a class gives at most a third of its nodes to each), 48 % of the labels (and 32 % for
validation), or the ten folds that papers use ("folds"). Every other labeled node is a test node. Without a validation
set, systems see the training labels only. One process, one thread, no time limit that cuts.

The public graphs are read as ``everynode.datasets.load`` does; eight more as NPZ archives from $EVERYNODE_GRAPHS.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from filelock import FileLock, Timeout

from common import ROOT
from unseen_outsiders import MLP_OUTSIDER, OUTSIDERS, Task

#: Cheapest first. The two halves of the design: choices made on one are reported on the other.
GRAPHS = (
    "texas", "cornell", "wisconsin", "acm", "citeseer", "cora", "minesweeper", "chameleon", "twitch-engb", "twitch-es",
    "amazon-photo", "actor", "squirrel", "dblp", "pubmed", "blogcatalog", "coauthor-cs",
)  # fmt: skip
#: The graphs that the design of the portfolio looked at. The others are reported apart.
DESIGN_HALF = (
    "texas", "cornell", "wisconsin", "acm", "citeseer", "cora", "minesweeper", "twitch-engb", "twitch-es", "dblp",
    "blogcatalog",
)  # fmt: skip
TEN_FOLDS = ("texas", "cornell", "wisconsin", "actor")
REGIMES = ("5", "20", "48%")
#: The most test nodes of a cell, drawn at random. All systems are scored on the same ones.
MOST_TEST = 5000
#: The design of the portfolio that a row was measured with. Design 2 differs from 1 without a validation set only:
#: closed forms learn from the labels of all folds, and 5 labels a class are dealt into five folds, not three.
#: Design 3 estimates the class shares of the unlabeled nodes, where labels are equally many for most classes: not with 48 %.
DESIGN = 3
COLUMNS = ("graph", "half", "regime", "validation", "split", "system", "kind", "accuracy", "test_nodes", "seconds", "design")  # fmt: skip


class Cell(NamedTuple):
    """One comparison of all systems."""

    graph: str
    regime: str
    split: int
    validation: bool

    @property
    def name(self) -> str:
        return f"{self.graph}-{self.regime.replace('%', 'pc')}-{self.split}-{'val' if self.validation else 'noval'}"


class Arrays(NamedTuple):
    """A graph as arrays; every edge once."""

    features: sp.csr_matrix | np.ndarray
    edges: np.ndarray
    labels: np.ndarray


def read(name: str) -> Arrays:
    """Read a graph: an archive of $EVERYNODE_GRAPHS, or a public one."""
    path = (
        Path(os.environ.get("EVERYNODE_GRAPHS", ROOT.parent / "shared" / "graphs")) / f"{name}.npz"
    )
    if not path.exists():
        from everynode.datasets import load
        from everynode.sparse import SparseMatrix

        graph = load(name)
        x = graph.features
        if isinstance(x, SparseMatrix):
            x = sp.csr_matrix((x.values, (x.pattern.row, x.pattern.column)), shape=x.shape)
        features = x if sp.issparse(x) else x.numpy()
        return Arrays(features, graph.edges.numpy(), graph.labels.numpy())
    with np.load(path) as archive:
        if "features" in archive:
            features = archive["features"].astype(np.float32)
        else:
            indices = archive["feature_indices"]
            values = archive["feature_data"] if "feature_data" in archive else np.ones(len(indices))
            shape = tuple(archive["feature_shape"])
            features = sp.csr_matrix(
                (values.astype(np.float32), indices, archive["feature_indptr"]), shape=shape
            )
        return Arrays(
            features,
            np.ascontiguousarray(archive["edges"].T).astype(np.int64),
            archive["labels"].astype(np.int64),
        )


def draw(cell: Cell, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the training, validation and test nodes of a cell.

    A cell with a validation set and the one without share the training and test nodes.
    """
    if cell.regime == "folds":
        from everynode.datasets import load

        split = load(cell.graph, "geom-gcn").splits[cell.split]
        return split.train.numpy(), split.val.numpy(), split.test.numpy()
    random = np.random.default_rng([cell.split, 2027])
    train, val = [], []
    for c in range(labels.max() + 1):
        nodes = random.permutation(np.flatnonzero(labels == c))
        if cell.regime == "48%":
            first, second = round(0.48 * len(nodes)), round(0.8 * len(nodes))
        else:
            each = max(1, min(int(cell.regime), len(nodes) // 3))
            first, second = each, 2 * each
        train.append(nodes[:first])
        val.append(nodes[first:second])
    train, val = (np.sort(np.concatenate(part)) for part in (train, val))
    test = np.setdiff1d(np.flatnonzero(labels >= 0), np.concatenate([train, val]))
    return train, val, np.sort(random.permutation(test)[:MOST_TEST])


def cells(graphs: list[str], regimes: list[str], splits: int) -> Iterator[Cell]:
    """Yield the cells, one split of everything before the next, the cheapest graphs first."""
    for split in range(max(splits, 10 if "folds" in regimes else 0)):
        for name in graphs:
            for regime in regimes:
                if regime == "folds":
                    if name in TEN_FOLDS and split < 10:
                        yield Cell(name, regime, split, True)
                elif split < splits:
                    yield Cell(name, regime, split, True)
                    yield Cell(name, regime, split, False)


def run(cell: Cell, arrays: Arrays, store: Path) -> dict[str, Any]:
    """Run every system on a cell; return the rows of the systems."""
    torch.set_num_threads(1)
    train, val, test = draw(cell, arrays.labels)
    systems = run_outsiders(cell, Task(*arrays, train, val), test, store)
    val = val if cell.validation else val[:0]
    systems |= run_default(cell, Task(*arrays, train, val), test, store)
    return {
        "cell": cell._asdict(),
        "train": len(train),
        "val": len(val),
        "test": len(test),
        "design": DESIGN,
        "systems": systems,
    }


def run_outsiders(
    cell: Cell, task: Task, test: np.ndarray, store: Path
) -> dict[str, dict[str, Any]]:
    """Train the outsiders, and return their rows.

    One training serves the cell with a validation set and the one without. It does not depend on
    everynode, so it is kept in a file for the next version.
    """
    path = store / f"{cell.name.removesuffix('-noval').removesuffix('-val')}.outsiders"
    kept = json.loads(path.read_text()) if path.exists() else {}
    outsiders = OUTSIDERS | (MLP_OUTSIDER if cell.regime == "folds" else {})
    for name in outsiders.keys() - kept.keys():
        start = time.process_time()
        predicted = outsiders[name](task, seed=cell.split)
        seconds = time.process_time() - start
        right = [float((classes == task.labels)[test].mean()) for classes in predicted]
        kept[name] = {"accuracy": right, "seconds": seconds}
        write(path, kept)
    return {
        name: {
            "kind": "outsider",
            "accuracy": kept[name]["accuracy"][0 if cell.validation else 1],
            "seconds": kept[name]["seconds"],
        }
        for name in outsiders
    }


def write(path: Path, content: Any) -> None:
    """Write JSON, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content))
    part.rename(path)


def run_default(cell: Cell, task: Task, test: np.ndarray, store: Path) -> dict[str, dict[str, Any]]:
    """Fit the default, and return it and each of its candidates alone."""
    from everynode.graph import Graph, Split
    from everynode.selection.closed_form_refit import solve_on_all
    from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio
    from everynode.training.closed_form import is_closed_form

    start = time.process_time()
    given = np.full(len(task.labels), -1)
    known = np.concatenate([task.train, task.val])
    given[known] = task.labels[known]
    graph = Graph.from_arrays(task.features, task.edges, given, classes=list(range(task.classes)))
    if len(task.val):
        parts = (torch.from_numpy(part) for part in (task.train, task.val, task.train[:0]))
        graph = graph.with_splits([Split(*parts)])
    options = PortfolioOptions(workers=1, time_limit=1e9)
    jobs = store / "jobs" / cell.name  # a change of the portfolio trains its new candidates only
    fitted = fit_portfolio(graph, options, seed=cell.split, checkpoint=jobs, verbose=False)
    nodes = torch.from_numpy(test)
    log_p = fitted.selection.ensemble.log_probabilities(graph, nodes).numpy()
    seconds = time.process_time() - start
    labels = task.labels[test]
    rows = {"everynode": {
        "kind": "default", "accuracy": float((log_p.argmax(1) == labels).mean()), "seconds": seconds,
        "log_loss": float(-log_p[np.arange(len(test)), labels].mean()),
        "weights": {row.candidate: row.weight for row in fitted.selection.leaderboard if row.weight},
        "shift": fitted.selection.ensemble.shift,
    }}  # fmt: skip
    race = fitted.race
    arrays = {"test_labels": labels}
    for fold in race_folds(race):
        arrays[f"nodes|{fold}"] = race.nodes([fold]).numpy()
        arrays[f"labels|{fold}"] = race.labels([fold]).numpy()
    prepared = {
        name: fitted_one.apply(race.graph) for name, fitted_one in race.preparations.items()
    }
    for name, results in race.results.items():
        candidate = race.candidates[name]
        each = []
        for result in results:
            network = result.result(race.graph.classes, race.graph.name, race.graph.digest).network
            logits = predict(network, prepared[candidate.preparation], nodes)
            each.append(logits)
            place = f"{name}|{result.card['fold']}|{result.card['seed']}"
            arrays[f"oof|{place}"] = result.logits.numpy().astype(np.float32)
            arrays[f"test|{place}"] = logits.numpy().astype(np.float16)
        if race.all_labels is not None and is_closed_form(candidate.settings):
            network = solve_on_all(race, name).network
            logits = predict(network, prepared[candidate.preparation], nodes)
            each = [logits]
            arrays[f"all|{name}"] = logits.numpy().astype(np.float16)
        mean = torch.logsumexp(torch.stack(each), 0)
        folds = sorted(race.folds(name))
        rows[name] = {
            "kind": "candidate", "accuracy": float((mean.argmax(1).numpy() == labels).mean()),
            "seconds": sum(result.seconds for result in results), "networks": len(results),
            "validation_loss": float(race.losses([name], folds).mean()),
            "uses": candidate.uses, "outcome": race.outcomes.get(name, "finalist"),
        }  # fmt: skip
    np.savez_compressed(store / f"{cell.name}.npz", **arrays)
    return rows


@torch.no_grad()
def predict(network: torch.nn.Module, graph: Any, nodes: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of some nodes."""
    log_p = torch.log_softmax(network(graph, nodes).double(), dim=1)
    network.clear_cache()
    return log_p


def race_folds(race: Any) -> list[int]:
    """Return every fold that some candidate finished."""
    return sorted(set().union(*(race.folds(name) for name in race.results)))


def run_all(arguments: argparse.Namespace) -> None:
    """Run the missing cells."""
    store = arguments.store
    store.mkdir(parents=True, exist_ok=True)
    last: tuple[str, Arrays] | None = None
    for cell in cells(arguments.graphs, arguments.regimes, arguments.splits):
        if ("yes" if cell.validation else "no") not in arguments.validation:
            continue
        path = store / f"{cell.name}.json"
        lock = FileLock(store / f".{cell.name}.lock", timeout=0)
        try:
            with lock:
                if path.exists():
                    continue
                if last is None or last[0] != cell.graph:
                    last = cell.graph, read(cell.graph)
                start = time.monotonic()
                row = run(cell, last[1], store)
                row["wall"] = time.monotonic() - start
                write(path, row)
        except Timeout:
            continue  # another process has it
        systems = row["systems"]
        best = max(
            (s for s in systems if systems[s]["kind"] == "outsider"),
            key=lambda s: systems[s]["accuracy"],
        )
        print(
            f"{cell.name:28} everynode {100 * systems['everynode']['accuracy']:.1f}"
            f"  {best} {100 * systems[best]['accuracy']:.1f}  {row['wall']:.0f} s",
            flush=True,
        )


def best_outsider(systems: dict[str, dict[str, Any]]) -> float:
    """Return the accuracy of the best outsider of a cell, which is known only afterwards."""
    return max(row["accuracy"] for row in systems.values() if row["kind"] == "outsider")


def earlier_rows(path: Path) -> dict[Cell, list[list[str]]]:
    """Return the rows of the committed file by cell; those of an earlier design name it."""
    import csv

    rows: dict[Cell, list[list[str]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                split, validation = int(row["split"]), row["validation"] == "yes"
                cell = Cell(row["graph"], row["regime"], split, validation)
                rows.setdefault(cell, []).append([row[name] for name in COLUMNS])
    return rows


def write_all(arguments: argparse.Namespace) -> None:
    """Write results/unseen.csv of the finished cells."""
    import csv

    path = ROOT / "results" / "unseen.csv"
    earlier = earlier_rows(path)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for cell in cells(list(GRAPHS), [*REGIMES, "folds"], 10):
            stored = arguments.store / f"{cell.name}.json"
            if not stored.exists():
                writer.writerows(earlier.get(cell, ()))
                continue
            row = json.loads(stored.read_text())
            for name, system in row["systems"].items():
                accuracy, seconds = f"{system['accuracy']:.5f}", f"{system['seconds']:.2f}"
                half = "design" if cell.graph in DESIGN_HALF else "unseen"
                validation = "yes" if cell.validation else "no"
                which = cell.graph, half, cell.regime, validation, cell.split
                writer.writerow(
                    [*which, name, system["kind"], accuracy, row["test"], seconds, row["design"]]
                )
    print(f"written to {path.relative_to(ROOT)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("store", type=Path)
    choices = {"graphs": GRAPHS, "regimes": REGIMES, "validation": ("yes", "no")}
    for name, default in choices.items():
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=list(default))
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    (run_all if arguments.what == "run" else write_all)(arguments)


if __name__ == "__main__":
    main()
