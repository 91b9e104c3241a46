"""Seconds of a full ENC step (GCN-2, 64 channels) on generated graphs from 10^4 to 10^7 edges, one thread, with a plot."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

from common import ROOT, write
from everynode.benchmarks.sides import Ours, settings_for
from everynode.data import generate
from everynode.training.memory import reused_memory


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for edges in (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000):
        graph = generate(edges // 7, edges, 64, 10)
        side = Ours(graph, settings_for("gcn", "enc"))
        times = []
        with reused_memory(side.layer_bytes):  # as in everynode's own loop
            for _ in range(7 if edges < 2_000_000 else 4):
                start = time.perf_counter()
                side.step()
                times.append(time.perf_counter() - start)
        rows.append({"nodes": graph.num_nodes, "edges": graph.num_edges, "seconds": statistics.median(times[1:])})
        print(rows[-1], flush=True)
        del graph, side
    x, y = (np.log10([row[key] for row in rows]) for key in ("edges", "seconds"))
    slope = float(np.polyfit(x[2:], y[2:], 1)[0])
    write("scaling", {"rows": rows, "slope_from_1e5": slope})
    print(f"slope in log-log from 10^5 edges on: {slope:.2f} (1 is linear)")

    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "everynode"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    axis.loglog([row["edges"] for row in rows], [row["seconds"] for row in rows], "o-", color="#0f766e", label="measured")
    base = rows[-1]
    line = [base["seconds"] * row["edges"] / base["edges"] for row in rows]
    axis.loglog([row["edges"] for row in rows], line, "--", color="#9aa4b2", label="linear")
    axis.set_xlabel("edges (7 a node)")
    axis.set_ylabel("seconds a step")
    axis.set_title("ENC-GCN, 2 layers, 64 channels, one thread: step and evaluation", fontsize=9)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs/scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
