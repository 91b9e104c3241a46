"""How long does it take to read a million nodes and ten million edges, and how much memory?

Reading, checking and structural features, from CSV and Parquet. The files are generated (seeded) into a temporary folder, with the
defects of real ones: text ids in random order, missing labels and cells, self-loops, repeated edges. Each format is read in its own
process, so that peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import write

NODES, EDGES, SEED = 1_000_000, 10_000_000, 0
FORMATS = ("csv", "parquet")


def make(folder: Path, nodes: int = NODES, edges: int = EDGES) -> None:
    """Write nodes and edges, each as CSV and as Parquet."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    random = np.random.default_rng(SEED)
    team = random.integers(0, 10, nodes)
    ids = pa.array([f"u{number}" for number in random.permutation(nodes)])
    income = np.exp(random.normal(10, 1, nodes)).round(2)
    age = np.where(random.random(nodes) < 0.05, np.nan, random.integers(18, 90, nodes) + team)
    columns = {
        "id": ids,
        "age": pa.array(age, mask=np.isnan(age)),
        "income": pa.array(income),
        "score": pa.array(random.normal(team, 1).round(4)),
        "city": pa.array(np.char.add("city ", random.integers(0, 50, nodes).astype(str))),
        "member": pa.array(np.where(random.random(nodes) < 0.4, "yes", "no")),
        "joined": pa.array(np.datetime64("2010-01-01") + random.integers(0, 5000, nodes)),
        "team": pa.array(np.char.add("team ", team.astype(str)), mask=random.random(nodes) < 0.7),
    }
    ends = [ids.take(pa.array(random.integers(0, nodes, edges))) for _ in range(2)]
    for name, table in (
        ("nodes", pa.table(columns)),
        ("edges", pa.table({"source": ends[0], "target": ends[1]})),
    ):
        pa.csv.write_csv(table, folder / f"{name}.csv")
        pa.parquet.write_table(table, folder / f"{name}.parquet")


def measure(folder: Path, kind: str) -> None:
    """Read, check and print, in a separate process."""
    import torch

    import everynode as en
    from everynode.datasets import check
    from everynode.graph.structural_features import structural_features
    from everynode.training.memory import peak_mb

    torch.set_num_threads(1)
    found: dict[str, float] = {}

    def done(what: str, start: tuple[float, float]) -> tuple[float, float]:
        now = time.perf_counter(), time.process_time()
        found.update(
            {
                f"{what}_seconds": now[0] - start[0],
                f"{what}_cpu_seconds": now[1] - start[1],
                f"{what}_peak_gb": peak_mb() / 1024,
            }
        )
        return now

    clock = time.perf_counter(), time.process_time()
    graph = en.read(folder / f"nodes.{kind}", folder / f"edges.{kind}", label="team")
    print(graph.summary, file=sys.stderr)
    clock = done("read", clock)
    check(graph)
    clock = done("check", clock)
    if kind == FORMATS[0]:  # from here on the format does not matter
        structural_features(graph.edges.numpy(), graph.num_nodes)
        done("structure", clock)
    print(
        json.dumps(
            {
                **found,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "features": graph.num_features,
            }
        )
    )


def main() -> None:
    if len(sys.argv) == 3:
        measure(Path(sys.argv[1]), sys.argv[2])
        return
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for kind in FORMATS:
            done = subprocess.run(
                [sys.executable, __file__, folder, kind], capture_output=True, text=True, check=True
            )
            size = sum(
                (Path(folder) / f"{name}.{kind}").stat().st_size for name in ("nodes", "edges")
            )
            rows[kind] = {"file_mb": size / 1e6, **json.loads(done.stdout)}
            print(done.stderr, kind, rows[kind], flush=True)
    write("read-million", {"rows": rows})


if __name__ == "__main__":
    main()
