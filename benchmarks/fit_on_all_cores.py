"""How much sooner does ``everynode fit`` end on two cores than on one?

``python benchmarks/fit_on_all_cores.py [EPOCHS] [BEFORE=src] [GRAPHS=pages,people]``. The graph "pages" has 20,000 nodes, 170,000
edges and 4,700 sparse features, drawn like a network of pages; "people" is the bundled example. The effort is quick, without a time
limit, so that one and two cores do the same work. The commands run in turn. A graph that is not named keeps its rows.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import ROOT, write
from everynode.datasets import generate

PEOPLE, LINKS = (ROOT / "examples" / name for name in ("people.csv", "links.csv"))
NODES, EDGES, FEATURES, CLASSES, WORDS = 20_000, 170_000, 4_700, 4, 14


def page_network(path: Path) -> dict[str, int]:
    """Write a graph whose nodes have words, some of them typical of their class."""
    graph = generate(NODES, EDGES, 1, CLASSES)
    rng, labels = np.random.default_rng(1), graph.labels.numpy()
    common = rng.dirichlet(np.full(FEATURES, 0.2))
    topics = 0.35 * rng.dirichlet(np.full(FEATURES, 0.02), size=CLASSES) + 0.65 * common
    counts = np.maximum(rng.poisson(WORDS, NODES), 1)
    columns = [rng.choice(FEATURES, n, p=topics[k]) for n, k in zip(counts, labels, strict=True)]
    rows = np.repeat(np.arange(NODES), counts)
    words = np.ones(len(rows), np.float32)
    x = sp.csr_matrix((words, (rows, np.concatenate(columns))), shape=(NODES, FEATURES))
    x.data[:] = 1
    source, target = graph.undirected_edges[0].numpy()
    links = sp.csr_matrix((np.ones(len(source)), (source, target)), shape=(NODES, NODES))
    arrays = {
        f"{name}_{part}": getattr(matrix, part)
        for name, matrix in (("adj", links), ("attr", x))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez_compressed(path, labels=labels, **arrays)
    return {"nodes": NODES, "edges": len(source), "features": FEATURES, "values": int(x.nnz)}


def fit(words: str, source: Path, cores: int) -> dict[str, float]:
    """Return the seconds of a fit on so many cores, its CPU time and its results."""
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    more = "--effort quick --time-limit 1h --no-resume --quiet --json --out out"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "everynode", "fit", *words.split(), *more.split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(source)},
            check=True,
            capture_output=True,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )
        taken = round(time.perf_counter() - start, 2)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)
    result = json.loads(done.stdout)
    found = {
        "test_accuracy": result["quality"]["test"]["accuracy"][0],
        "networks": result["networks"],
    }
    return {"seconds": taken, "cpu": cpu, **found}


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    versions = {"now": ROOT / "src"}
    if len(sys.argv) > 2:
        versions["before"] = Path(sys.argv[2]).resolve()
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else ["pages", "people"]
    kept = ROOT / "results/fit-on-all-cores.json"
    rows = json.loads(kept.read_text())["rows"] if kept.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            graph: dict[str, int] = {}
            if name == "pages":
                path = Path(folder) / "pages.npz"
                graph, words = page_network(path), f"--nodes {path} --epochs {epochs}"
            else:
                words = f"--nodes {PEOPLE} --edges {LINKS} --label team --weight messages"
            row: dict[str, Any] = {"graph": graph, "epochs": epochs if graph else None}
            for cores in (2, 1):
                for version, source in versions.items():
                    row[f"{version}, {cores}"] = fit(words, source, cores)
                    print(name, version, cores, row[f"{version}, {cores}"], flush=True)
            for version in versions:
                one, two = (row[f"{version}, {cores}"]["seconds"] for cores in (1, 2))
                row[f"ratio, {version}"] = round(one / two, 2)
            rows[name] = row | {"load": os.getloadavg()}
    write("fit-on-all-cores", {"rows": rows})


if __name__ == "__main__":
    main()
