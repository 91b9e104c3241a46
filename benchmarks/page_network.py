"""What does the default gain over 0.18.0's on a network of 22,470 pages with few labels, and how far does it depend on the seed?

    python benchmarks/page_network.py run STORE
    PYTHONPATH=FOLDER_OF_0.18.0/src:benchmarks python benchmarks/page_network.py run STORE
    python benchmarks/page_network.py write STORE

The networks are generated, alike to a public one of web pages. Study "gain": 22,470 nodes, 171,000 edges, 4 classes,
and 5 % of the nodes have a label, drawn anew for each seed. Study "seeds": a tenth of that size, where 139 nodes have
a label (111 of them for training), always the same, and the seed decides splits and trainings. Each version splits
the labels, trains and delivers as its ``everynode fit`` does by default, but this one with ``--effort quick``. Scored:
the nodes without a label. ``run`` keeps each fit in a file of STORE, and continues. ``write`` makes
results/page-network.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import everynode as en
from common import write

#: Arguments of ``generate``. Homophily was set so that 0.18.0 is right for about 89 %, as it was on the public
#: network, before this version was run.
NETWORK = {"features": 128, "classes": 4, "homophily": 0.45, "noise": 8.0}
SIZES = {"gain": (22_470, 171_000), "seeds": (2_247, 17_100)}
#: The labels of each study, and its seeds.
STUDIES = {"gain": (1124, range(5)), "seeds": (139, range(6))}
BEFORE = "0.18.0"
#: Seconds of one worker. `quick` has 18 s for two or more.
TIME_LIMIT = 600


def network(store: Path, study: str) -> dict[str, np.ndarray]:
    """Return the arrays of the network; the first call generates it."""
    path = store / f"{study}.npz"
    if not path.exists():
        from everynode.datasets import generate

        graph = generate(*SIZES[study], **NETWORK)
        np.savez(path, x=graph.features, edges=graph.edges, labels=graph.labels)
    with np.load(path) as stored:
        return dict(stored)


def fit_before(graph: Any, seed: int) -> dict[str, Any]:
    """Fit as 0.18.0 does by default."""
    from everynode.data.parts import share_out

    split, _ = share_out(graph, seed=seed)
    return {"delivered": en.NodeClassifier(random_state=seed, verbose=False).fit(split)}


def fit_now(graph: Any, seed: int) -> dict[str, Any]:
    """Fit as this version does: measured on held-out labels, then trained on all."""
    from everynode.io.assign_splits import assign_splits
    from everynode.selection.refit import labels_to_teach

    split, _ = assign_splits(graph, seed=seed, cv=2)  # with folds, no validation node is drawn
    measured = en.NodeClassifier(
        effort="quick", time_limit=TIME_LIMIT, n_jobs=1, random_state=seed, verbose=False
    ).fit(split)
    return {
        "measured": measured,
        "delivered": measured.refit(split, labels_to_teach(graph, split)),
    }


def run(store: Path) -> None:
    """Run the missing fits of this version of everynode."""
    torch.set_num_threads(1)
    store.mkdir(parents=True, exist_ok=True)
    version = BEFORE if en.__version__ == BEFORE else "now"
    for study, (count, seeds) in STUDIES.items():
        arrays = network(store, study)
        for seed in seeds:
            path = store / f"{study}-{version}-{seed}.json"
            if path.exists():
                continue
            random = np.random.default_rng([seed if study == "gain" else 0, 5])
            known = random.permutation(len(arrays["labels"]))[:count]
            given = np.full(len(arrays["labels"]), -1)
            given[known] = arrays["labels"][known]
            graph = en.Graph.from_arrays(arrays["x"], arrays["edges"], given, classes=[0, 1, 2, 3])
            start = time.process_time()
            models = (fit_before if version == BEFORE else fit_now)(graph, seed)
            row = {"version": en.__version__, "seconds": time.process_time() - start}
            for name, model in models.items():
                right = model.predict(graph) == arrays["labels"]
                row[name] = float(np.delete(right, known).mean())
            path.write_text(json.dumps(row))
            print(study, version, seed, row, flush=True)


def write_all(store: Path) -> None:
    """Write results/page-network.json: every pair of fits with the same seed."""
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for study, (_, seeds) in STUDIES.items():
        files = {
            version: {seed: store / f"{study}-{version}-{seed}.json" for seed in seeds}
            for version in (BEFORE, "now")
        }
        paired = [i for i in seeds if all(each[i].exists() for each in files.values())]
        rows[study] = {
            version: [{"seed": i} | json.loads(each[i].read_text()) for i in paired]
            for version, each in files.items()
        }
    labels = {study: count for study, (count, _) in STUDIES.items()}
    write("page-network", {"network": NETWORK, "sizes": SIZES, "labels": labels, "rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("store", type=Path)
    arguments = parser.parse_args()
    (run if arguments.what == "run" else write_all)(arguments.store)


if __name__ == "__main__":
    main()
