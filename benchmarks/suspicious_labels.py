"""How many flipped labels does the list of suspicious labels find, beside logistic regression?

    python benchmarks/suspicious_labels.py STORE

Three graphs; half of the nodes have labels, and 5, 10 or 20 % of these are flipped to another class at random. The same definition
(confident learning) on out-of-fold probabilities: of the default with effort "quick" after the refit on all labels, and of scikit-learn's logistic regression on the features (three folds).
STORE keeps finished cells. Writes results/suspicious-labels.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import everynode as en
from common import write
from everynode.datasets.splits import stratified_split
from everynode.evaluation.suspicious_labels import label_issues
from everynode.graph import Graph
from unseen import read

GRAPHS, SHARES = ("wisconsin", "cora", "citeseer"), (0.05, 0.1, 0.2)


def found(issues: list[int], flipped: set[int]) -> dict[str, float]:
    """Return how many labels are listed, and precision and recall for the flipped ones."""
    right = len(flipped.intersection(issues))
    return {
        "listed": len(issues),
        "precision": right / max(len(issues), 1),
        "recall": right / len(flipped),
    }


def study(name: str, share: float) -> dict[str, Any]:
    """Flip labels of one graph, and look for them in two ways."""
    arrays = read(name)
    random = np.random.default_rng(int(1000 * share))
    labels = arrays.labels.copy()
    train = stratified_split(torch.from_numpy(labels), train=0.5, val=0.0, seed=0).train.numpy()
    flipped = random.choice(train, round(share * len(train)), replace=False)
    k = labels.max() + 1
    labels[flipped] = (labels[flipped] + random.integers(1, k, len(flipped))) % k
    given = np.full(len(labels), -1)
    given[train] = labels[train]
    graph = Graph.from_arrays(
        arrays.features, arrays.edges, given, classes=list(range(k)), name=name
    )
    model = en.NodeClassifier(effort="quick", n_jobs=1, verbose=False).fit(graph).refit(graph)
    ours = [row.node for row in model.suspicious_labels()]
    held_out = int(np.isin(flipped, model.held_out_labels_.nodes.numpy()).sum())
    regression = LogisticRegression(max_iter=300)
    p = cross_val_predict(
        regression, arrays.features[train], labels[train], cv=3, method="predict_proba"
    )
    present = np.unique(labels[train], return_inverse=True)[1]
    rows, _ = label_issues(torch.from_numpy(p), torch.from_numpy(present))
    every = set(flipped.tolist())
    return {"graph": name, "share": share, "labels": len(train), "flipped": len(flipped), "flipped_held_out": held_out,
            "folds": model.num_folds_, "everynode": found(ours, every),
            "logistic_regression": found(train[rows.numpy()].tolist(), every)}  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    store = Path(sys.argv[1])
    store.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in GRAPHS:
        for share in SHARES:
            file = store / f"suspicious-{name}-{share}.json"
            if not file.exists():
                file.write_text(json.dumps(study(name, share)))
            rows.append(json.loads(file.read_text()))
            print(rows[-1], flush=True)
    write("suspicious-labels", {"rows": rows})


if __name__ == "__main__":
    main()
