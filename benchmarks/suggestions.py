"""What are suggested nodes worth, beside labels for random nodes and other ways to choose?

    python benchmarks/suggestions.py run STORE [--graphs cora,citeseer] [--seeds 10] [--quick]
    python benchmarks/suggestions.py write STORE

Each seed draws test nodes (1,000, or a third); the other labeled nodes are the pool to choose from. All strategies see the same graph, pool and
test nodes, and there is no validation set. A budget of 2, 5 or 20 labels a class is the number of labels in all: nothing is known of
the classes before. The judge is the same for all: SGC (Wu et al. 2019: logistic regression on two-hop features, no intercept, C = 10).
--quick adds the default with effort "quick", at 2 labels a class. STORE keeps finished cells.

Strategies: "everynode" is `everynode.suggest` in one batch from nothing; "labels" and "model" take the batches of 2, 5 and 20 a class in turn, with
the labels known so far, and with the judge's probabilities too. "uncertainty" and "age" start with random nodes, one a class, and grow
in the rounds of ROUNDS. "featprop" clusters the two-hop features by k-means and takes the node nearest to each center.
Writes results/suggestions.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.stats
import torch
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

import everynode as en
from common import write
from everynode.graph import Graph
from unseen import read

GRAPHS = (
    "cora", "citeseer", "acm", "pubmed", "twitch-es", "blogcatalog", "twitch-engb", "amazon-photo", "minesweeper", "dblp", "coauthor-cs",
)  # fmt: skip
BUDGETS = (2, 5, 20)
#: The labels a class after each round of the strategies that train a model.
ROUNDS = (1, 2, 3, 5, 7, 10, 14, 20)
STRATEGIES = ("random", "everynode", "labels", "model", "uncertainty", "degree", "age", "featprop")
#: The strategies that --quick compares.
FEW = ("random", "everynode", "uncertainty", "featprop")


class Cell:
    """A graph with its operators, and the test nodes and the pool of a seed."""

    def __init__(self, name: str):
        arrays = read(name)
        self.name, self.labels = name, arrays.labels.astype(np.int64)
        self.k = int(self.labels.max()) + 1
        self.graph = Graph.from_arrays(arrays.features, arrays.edges, np.full(len(self.labels), -1), classes=list(range(self.k)), name=name)  # fmt: skip
        self.p = sp.csr_array(self.graph.gcn_operator.to_scipy()).astype(np.float32)
        x = sp.csr_array(arrays.features).astype(np.float32)
        lengths = np.sqrt(x.multiply(x).sum(1))
        self.x = sp.csr_array(sp.diags_array((1 / np.maximum(lengths, 1e-9)).astype(np.float32)) @ x)  # fmt: skip
        self._two_hops: np.ndarray | None = None

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pool and the test nodes."""
        order = np.random.default_rng([seed, 2032]).permutation(np.flatnonzero(self.labels >= 0))
        count = min(1000, len(order) // 3)
        return np.sort(order[count:]), np.sort(order[:count])

    @property
    def two_hops(self) -> np.ndarray:
        """The two-hop features, in 128 directions."""
        if self._two_hops is None:
            if min(self.x.shape) <= 128:
                z = self.x.toarray()
            else:
                u, s, _ = randomized_svd(self.x, 128, n_iter=4, random_state=0)
                z = u * s
            self._two_hops = self.p @ (self.p @ z)
        return self._two_hops

    def known(self, nodes: np.ndarray) -> Graph:
        """Return the graph with the labels of some nodes."""
        labels = np.full(len(self.labels), -1)
        labels[nodes] = self.labels[nodes]
        return self.graph.with_labels(labels)


class Sgc(NamedTuple):
    """The judge: probabilities of all nodes, after training on some."""

    probabilities: np.ndarray
    classes_: np.ndarray

    @classmethod
    def fit(cls, cell: Cell, train: np.ndarray) -> Sgc:
        y = cell.labels[train]
        full = np.zeros((len(cell.labels), cell.k))
        present = np.unique(y)
        if len(present) == 1:
            full[:, present[0]] = 1
            return cls(full, np.arange(cell.k))
        rows = ((cell.p[train] @ cell.p) @ cell.x).toarray()
        scale = np.sqrt((rows**2).sum(1).mean())
        # In the directions of the training rows, ridge-penalized regression is the same.
        u, s, directions = np.linalg.svd(rows / scale, full_matrices=False)
        model = LogisticRegression(C=10.0, max_iter=300, fit_intercept=False).fit(u * s, y)
        logits = cell.p @ (cell.p @ (cell.x @ (model.coef_ @ directions).T)) / scale
        if logits.shape[1] == 1:
            logits = np.hstack([-logits / 2, logits / 2])
        full[:, present] = np.exp(logits - logits.max(1, keepdims=True))
        return cls(full / full.sum(1, keepdims=True), np.arange(cell.k))

    def predict_proba(self, graph: Graph) -> np.ndarray:
        return self.probabilities

    @property
    def entropy(self) -> np.ndarray:
        return -(self.probabilities * np.log(np.maximum(self.probabilities, 1e-12))).sum(1)


def suggested(
    cell: Cell, pool: np.ndarray, seed: int, *, rounds: bool, model: bool
) -> dict[int, np.ndarray]:
    """Choose by everynode, for each budget alone or in rounds."""
    taken: dict[int, np.ndarray] = {}
    chosen = np.array([], dtype=np.int64)
    for per_class in BUDGETS:
        total = min(per_class * cell.k, len(pool))
        if not rounds or not len(chosen):
            batch = en.suggest(cell.graph, total, nodes=pool)
            chosen = np.array([row.node for row in batch])
        else:
            judge: Any = Sgc.fit(cell, chosen) if model else None
            rest = np.setdiff1d(pool, chosen)
            batch = en.suggest(cell.known(chosen), total - len(chosen), nodes=rest, model=judge)
            chosen = np.concatenate([chosen, [row.node for row in batch]])
        taken[per_class] = chosen
    return taken


def in_rounds(
    cell: Cell, pool: np.ndarray, seed: int, *, age: bool = False
) -> dict[int, np.ndarray]:
    """Uncertainty sampling by entropy, or AGE: entropy, density and centrality as percentiles.

    AGE (Cai et al. 2017) shifts the weight from density and centrality to entropy as labels come in.
    """
    random = np.random.default_rng([seed, 7])
    chosen = random.choice(pool, min(cell.k, len(pool)), replace=False)
    taken = {}
    if age:
        rank = np.full(len(cell.labels), 1 / len(cell.labels))
        walk = cell.graph.mean_operator.to_scipy().T
        for _ in range(50):
            rank = 0.15 / len(rank) + 0.85 * (walk @ rank)
    for per_class in ROUNDS[1:]:
        judge = Sgc.fit(cell, chosen)
        total = min(per_class * cell.k, len(pool))
        rest = np.setdiff1d(pool, chosen)
        score = judge.entropy[rest]
        if age:
            points = cell.p @ (cell.p @ judge.probabilities)
            means = KMeans(cell.k, n_init=1, random_state=seed).fit(points)
            density = 1 / (1 + means.transform(points).min(1))
            gamma = random.beta(1, 1.005 - 0.995 * len(chosen) / (20 * cell.k))
            other = (1 - gamma) / 2
            ranks = [scipy.stats.rankdata(v) / len(rest) for v in (score, density[rest], rank[rest])]  # fmt: skip
            score = gamma * ranks[0] + other * ranks[1] + other * ranks[2]
        best = rest[np.argsort(-score, kind="stable")][: total - len(chosen)]
        chosen = np.concatenate([chosen, best])
        if per_class in BUDGETS:
            taken[per_class] = chosen
    return taken


def featprop(cell: Cell, pool: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Cluster the two-hop features; take the node of the pool that is nearest to each center."""
    means = KMeans(count, n_init=1, random_state=seed, max_iter=50).fit(cell.two_hops)
    chosen: list[int] = []
    for center in means.cluster_centers_:
        rest = np.setdiff1d(pool, chosen)
        far = ((cell.two_hops[rest] - center) ** 2).sum(1)
        chosen.append(int(rest[far.argmin()]))
    return np.array(chosen)


def choose(strategy: str, cell: Cell, pool: np.ndarray, seed: int) -> dict[int, np.ndarray]:
    """Return the chosen nodes of each budget."""
    if strategy in ("everynode", "labels", "model"):
        return suggested(
            cell, pool, seed, rounds=strategy != "everynode", model=strategy == "model"
        )
    if strategy in ("uncertainty", "age"):
        return in_rounds(cell, pool, seed, age=strategy == "age")
    sizes = {b: min(b * cell.k, len(pool)) for b in BUDGETS}
    if strategy == "featprop":
        return {b: featprop(cell, pool, size, seed) for b, size in sizes.items()}
    if strategy == "degree":
        degree = cell.graph.degree.numpy()[pool]
        order = pool[np.argsort(-degree, kind="stable")]
    else:
        order = np.random.default_rng([seed, 5]).permutation(pool)
    return {b: order[:size] for b, size in sizes.items()}


def fitted(cell: Cell, train: np.ndarray, model: en.NodeClassifier) -> np.ndarray:
    graph = cell.known(train)
    classes: np.ndarray = model.fit(graph).predict(graph)
    return classes


def study(cell: Cell, seed: int, arguments: argparse.Namespace, store: Path) -> None:
    """Measure the missing strategies of one graph and seed."""
    pool, test = cell.draw(seed)
    for strategy in STRATEGIES:
        judges = ["sgc"] + ["quick"] * (arguments.quick and strategy in FEW)
        file = store / f"suggestions-{cell.name}-{seed}-{strategy}.json"
        done = json.loads(file.read_text()) if file.exists() else {}
        if all(judge in done for judge in judges):
            continue
        start = time.process_time()
        taken = choose(strategy, cell, pool, seed)
        done.setdefault("seconds", time.process_time() - start)
        truth = cell.labels[test]
        if "sgc" not in done:
            done["sgc"] = {
                b: float((Sgc.fit(cell, nodes).probabilities[test].argmax(1) == truth).mean())
                for b, nodes in taken.items()
            }
        if "quick" in judges and "quick" not in done:
            model = en.NodeClassifier(effort="quick", n_jobs=1, random_state=seed, verbose=False)
            try:
                right = (fitted(cell, taken[2], model)[test] == truth).mean()
            except en.EverynodeError as error:  # such as a single class
                print(cell.name, seed, strategy, error)
                right = (np.bincount(cell.labels[taken[2]]).argmax() == truth).mean()
            done["quick"] = {2: float(right)}
        file.write_text(json.dumps(done))
        print(cell.name, seed, strategy, {j: done[j] for j in judges}, flush=True)


def summary(store: Path) -> list[dict[str, Any]]:
    """Return mean, standard deviation and the paired difference from random of every cell."""
    rows = []
    for name in GRAPHS:
        for judge in ("sgc", "quick"):
            for budget in map(str, BUDGETS):
                scores: dict[str, dict[int, float]] = {}
                for strategy in STRATEGIES:
                    for file in store.glob(f"suggestions-{name}-*-{strategy}.json"):
                        seed = int(file.stem.removesuffix(f"-{strategy}").rsplit("-", 1)[1])
                        value = json.loads(file.read_text()).get(judge, {}).get(budget)
                        if value is not None:
                            scores.setdefault(strategy, {})[seed] = 100 * value
                for strategy, by_seed in scores.items():
                    seeds = sorted(set(by_seed) & set(scores.get("random", {})))
                    gains = np.array([by_seed[s] - scores["random"][s] for s in seeds])
                    row = {"graph": name, "judge": judge, "per_class": int(budget), "strategy": strategy, "seeds": len(by_seed),
                           "accuracy": float(np.mean([*by_seed.values()])), "deviation": float(np.std([*by_seed.values()], ddof=1)) if len(by_seed) > 1 else None}  # fmt: skip
                    if strategy != "random" and len(gains) > 1:
                        low, high = scipy.stats.t.interval(0.95, len(gains) - 1, gains.mean(), max(scipy.stats.sem(gains), 1e-9))  # fmt: skip
                        row |= {"gain": float(gains.mean()), "low": float(low), "high": float(high)}
                    rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["run", "write"])
    parser.add_argument("store", type=Path)
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=list(GRAPHS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.store.mkdir(parents=True, exist_ok=True)
    if arguments.action == "write":
        write("suggestions", {"rows": summary(arguments.store)})
        return
    for name in arguments.graphs:
        cell = Cell(name)
        for seed in range(arguments.seeds):
            study(cell, seed, arguments, arguments.store)


if __name__ == "__main__":
    main()
