"""Does the cost grow linearly with the edges, from 10^4 to 10^7?

Seconds of a full ENC step (GCN-2, 64 channels) on generated graphs, one thread, with a plot. Beside it: seconds of one propagation alone
in allocated arrays, and its reading rate, which shows the part of the memory in the growth. Where arrays are large enough to be
recycled: the same step without recycling, and the peak memory of both.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from common import ROOT, write
from everynode.benchmarks.measure import machine
from everynode.benchmarks.sides import Ours, settings_for
from everynode.datasets import generate
from everynode.graph import Graph
from everynode.training.memory import KEPT, forget_peak, peak_mb, reused_memory

CHANNELS = 64


def median(work: Callable[[], object], times: int) -> float:
    """Return the median seconds after one warm-up turn."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def without_recycling(side: Ours) -> dict[str, float]:
    """Return seconds, kernel seconds and peak memory of a step without recycled arrays."""
    forget_peak()
    kernel = []

    def step() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        side.step()
        kernel.append(resource.getrusage(resource.RUSAGE_SELF).ru_stime - before)

    with reused_memory():
        seconds = median(step, 3)
    return {
        "seconds": seconds,
        "kernel_seconds": statistics.median(kernel[1:]),
        "peak_gb": peak_mb() / 1024,
    }


def propagation(graph: Graph) -> Callable[[], object]:
    """Return one propagation in allocated arrays."""
    csr, x, y = (
        graph.gcn_operator.csr,
        torch.rand(graph.num_nodes, CHANNELS),
        torch.empty(graph.num_nodes, CHANNELS),
    )
    return lambda: y.addmm_(csr, x, beta=0.0)


def slope(rows: list[dict[str, Any]], key: str) -> float:
    """Return the slope in the log-log plot from 10^5 edges on; 1 is linear."""
    x, y = (np.log10([row[name] for row in rows[2:]]) for name in ("edges", key))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    torch.set_num_threads(1)
    limit, rows = machine(), []
    for edges in (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000):
        graph = generate(edges // 7, edges, 64, 10)
        side = Ours(graph, settings_for("gcn", "enc", CHANNELS))
        anew = without_recycling(side) if side.layer_bytes > KEPT else None
        forget_peak()
        with reused_memory(side.layer_bytes):  # as in everynode's own loop
            side.step()  # the first step shows which arrays to keep
            seconds = median(side.step, 7 if edges < 2_000_000 else 4)
        peak = peak_mb() / 1024
        alone = median(propagation(graph), 7)
        read = 4.0 * CHANNELS * graph.gcn_operator.pattern.nnz
        rows.append(
            {
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "seconds": seconds,
                "peak_gb": peak,
                "without_recycling": anew,
                "propagation_seconds": alone,
                "propagation_gbytes_per_s": read / alone / 1e9,
            }
        )
        print(rows[-1], flush=True)
        del graph, side
    slopes = {
        "slope_from_1e5": slope(rows, "seconds"),
        "propagation_slope_from_1e5": slope(rows, "propagation_seconds"),
    }
    write("scaling", {"rows": rows, **slopes, "machine": limit})
    print(slopes)

    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "everynode"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    axis.loglog(
        [row["edges"] for row in rows],
        [row["seconds"] for row in rows],
        "o-",
        color="#0f766e",
        label="measured",
    )
    base = rows[-1]
    line = [base["seconds"] * row["edges"] / base["edges"] for row in rows]
    axis.loglog([row["edges"] for row in rows], line, "--", color="#9aa4b2", label="linear")
    alone = [row["propagation_seconds"] for row in rows]
    axis.loglog(
        [row["edges"] for row in rows], alone, "s-", color="#b45309", label="one propagation alone"
    )
    axis.set_xlabel("edges (7 a node)")
    axis.set_ylabel("seconds a step")
    axis.set_title("ENC-GCN, 2 layers, 64 channels, one thread: step and evaluation", fontsize=9)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs/scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
