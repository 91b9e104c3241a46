"""Does ``everynode fit --clean-labels`` help where labels are wrong, and does it harm where they are right?

    python benchmarks/clean_labels.py STORE [CELLS]

Three graphs, two draws; half of the nodes have labels, and none, 10 % or 30 % of these are flipped to another class at random. The default with
effort "quick" and the refit on all labels; accuracy on the other half, whose labels are as published. "always": the refit without all labels that
look wrong, whatever the held-out labels say. STORE keeps finished cells; CELLS limits the number of new ones. Writes results/clean-labels.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import everynode as en
from common import write
from everynode.datasets.splits import stratified_split
from everynode.evaluation.clean_labels import clean_labels
from everynode.graph import Graph
from unseen import read

GRAPHS, SHARES, DRAWS = ("wisconsin", "cora", "citeseer"), (0.0, 0.1, 0.3), (0, 1)


def study(name: str, share: float, draw: int) -> dict[str, Any]:
    """Fit one graph with flipped labels, with and without cleaning."""
    arrays = read(name)
    random = np.random.default_rng([int(1000 * share), draw])
    truth, k = torch.from_numpy(arrays.labels), int(arrays.labels.max()) + 1
    split = stratified_split(truth, train=0.5, val=0.0, seed=draw)
    train, test = split.train, split.test
    flipped = random.choice(train.numpy(), round(share * len(train)), replace=False)
    labels = arrays.labels.copy()
    labels[flipped] = (labels[flipped] + random.integers(1, k, len(flipped))) % k
    given = np.full(len(labels), -1)
    given[train] = labels[train]
    graph = Graph.from_arrays(
        arrays.features, arrays.edges, given, classes=list(range(k)), name=name
    )
    model = en.NodeClassifier(effort="quick", n_jobs=1, verbose=False, random_state=draw).fit(graph)
    delivered = model.refit(graph, train)
    cleaned = clean_labels(model, delivered, graph, train, seed=draw)
    suspicious = torch.tensor(
        [row.node for row in delivered.suspicious_labels()], dtype=train.dtype
    )
    kept = train[~torch.isin(train, suspicious)]
    always = cleaned.model if cleaned.dropped else model.refit(graph, kept)

    def accuracy(one: en.NodeClassifier) -> float:
        predicted = one.predict_proba(graph, nodes=test).argmax(1)
        return float(np.mean(predicted == truth[test].numpy()))

    return {"graph": name, "share": share, "draw": draw, "labels": len(train), "test_nodes": len(test),
            "flipped": len(flipped), "suspicious": len(suspicious), "dropped": cleaned.dropped,
            "judged": [cleaned.judged, cleaned.before, cleaned.after], "as_given": accuracy(delivered),
            "clean_labels": accuracy(cleaned.model), "always": accuracy(always)}  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    store, most = Path(sys.argv[1]), int((sys.argv[2:] or ["1000"])[0])
    store.mkdir(parents=True, exist_ok=True)
    rows, new = [], 0
    for name in GRAPHS:
        for share in SHARES:
            for draw in DRAWS:
                file = store / f"clean-{name}-{share}-{draw}.json"
                if not file.exists() and new < most:
                    file.write_text(json.dumps(study(name, share, draw)))
                    new += 1
                    print(file.read_text(), flush=True)
                rows += [json.loads(file.read_text())] if file.exists() else []
    write("clean-labels", {"rows": rows})


if __name__ == "__main__":
    main()
