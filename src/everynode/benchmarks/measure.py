"""Times of both sides, interleaved in one process, and the limits of the machine."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import torch

from everynode.benchmarks.sides import DEPTH, Ours, Stock, check_same, one_fold, settings_for
from everynode.datasets import load
from everynode.datasets.entries import find
from everynode.graph import Graph
from everynode.models.receptive_field import ReceptiveField
from everynode.numerics import subnormals_flushed
from everynode.settings import Settings
from everynode.sparse import SparseMatrix
from everynode.training.memory import reused_memory

#: Split, graph, backbone, objective and number of threads.
Combination = tuple[str, str, str, str, int]


def bench(
    graphs: Sequence[str],
    backbones: Sequence[str],
    objectives: Sequence[str],
    limits: Sequence[dict[str, Any]],
    seconds: float,
    data_dir: Any = None,
    skip: Collection[Combination] = (),
    splits: Sequence[str] = ("default",),
    changes: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield one row for each combination: the medians of all sides in ms, and their ratios.

    ``limits``: the results of :func:`machine`, one for each number of threads; ``roofline_ms``: the
    time for the flops and bytes of :func:`work` at these limits; ``skip``: combinations to skip;
    ``splits``: names, or "default" for the one that papers use; a graph's others are left out;
    ``changes``: settings of everynode's side that differ.
    """
    places = dict.fromkeys((name, own) for name in graphs for own in splits_of(name, splits))
    for (name, split), backbone, objective in product(places, backbones, objectives):
        missing = [
            limit
            for limit in limits
            if (split, name, backbone, objective, limit["threads"]) not in skip
        ]
        if not missing:
            continue
        graph = one_fold(load(name, split, data_dir=data_dir))
        settings, data = settings_for(backbone, objective), graph.to_pyg()
        for sparse in (False, True):
            check_same(graph, data, settings, sparse)
        sides: dict[str, Ours | Stock] = {
            "everynode": Ours(graph, settings.replace(**(changes or {}))),
            "stock": Stock(data, graph.num_classes, settings),
            "expert": Stock(data, graph.num_classes, settings, sparse=True),
        }
        needed = work(graph, backbone, objective)
        for limit in missing:
            torch.set_num_threads(limit["threads"])
            # As in the training loop; PyG benefits too.
            with reused_memory(), subnormals_flushed():
                times = interleaved({side: one.step for side, one in sides.items()}, seconds)
            medians = {side: statistics.median(each) for side, each in times.items()}
            yield {
                "graph": name,
                "split": split,
                "labeled": len(graph.nodes("train")),
                "backbone": f"{backbone}-{DEPTH[backbone]}",
                "objective": objective,
                **(changes or {}),
                "threads": limit["threads"],
                **{f"{side}_ms": 1000 * median for side, median in medians.items()},
                "ratio": medians["stock"] / medians["everynode"],
                "ratio_expert": medians["expert"] / medians["everynode"],
                **{
                    f"{side}_quartiles_ms": [1000 * q for q in statistics.quantiles(each, n=4)[::2]]
                    for side, each in times.items()
                },
                "steps": [len(each) for each in times.values()],
                "flops": needed["flops"],
                "bytes": needed["bytes"],
                "roofline_ms": least_ms(needed, limit),
                "load": os.getloadavg()[0],
            }


def splits_of(name: str, wanted: Sequence[str]) -> list[str]:
    """Return the wanted splits that a graph has.

    >>> splits_of("cora", ["default", "geom-gcn"]), splits_of("actor", ["default", "public"])
    (['public', 'geom-gcn'], ['geom-gcn'])
    """
    available = find(name).splits
    named = [available[0] if split == "default" else split for split in wanted]
    return [split for split in named if split in available]


def interleaved(
    steps: Mapping[str, Callable[[], object]], seconds: float
) -> dict[str, list[float]]:
    """Return the times of all sides, which alternate after every two steps.

    The measurement takes at least ``seconds``, and at least five turns.
    """
    for step in [*steps.values(), *steps.values()]:
        step()
    times: dict[str, list[float]] = {side: [] for side in steps}
    gc.collect()
    gc.disable()
    try:
        end, turns = time.perf_counter() + seconds, 0
        while time.perf_counter() < end or turns < 5:
            for side, step in steps.items():
                times[side] += [_time(step) for _ in range(2)]
            turns += 1
    finally:
        gc.enable()
    return times


def _time(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def machine(threads: int = 1) -> dict[str, Any]:
    """Measure the limits of this machine: the speed of a matrix product and of a copy."""
    torch.set_num_threads(threads)
    a = torch.randn(2048, 2048)
    big = torch.randn(32 * 1024 * 1024)
    out = torch.empty_like(big)
    multiply = min(_time(lambda: torch.mm(a, a)) for _ in range(7))
    copy = min(_time(lambda: out.copy_(big)) for _ in range(7))
    return {
        "gflops": 2 * 2048**3 / multiply / 1e9,
        "gbytes_per_s": 2 * big.numel() * 4 / copy / 1e9,
        "threads": threads,
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "torch": str(torch.__version__),
        "load": os.getloadavg()[0],
    }


def least_ms(needed: dict[str, float], limit: dict[str, Any]) -> float:
    """Return the roofline time in ms: the larger of arithmetic time and memory time."""
    return max(needed["flops"] / limit["gflops"], needed["bytes"] / limit["gbytes_per_s"]) / 1e6


def work(
    graph: Graph, backbone: str, objective: str, hidden_channels: int = Settings.hidden_channels
) -> dict[str, float]:
    """Estimate a lower bound on the flops and bytes of a training step and an evaluation.

    The estimate counts the product of the features, one dense product and one propagation per
    layer, and the closing product. Each counts once forward, once in evaluation (over the receptive
    field of the validation nodes), and once backward per operand that needs a gradient. CVG adds
    passes over the receptive field of the labeled nodes: a backward and a forward-mode pass for
    each half, and one backward pass with two more products per layer.

    Every product reads or writes each of its arrays once, at the speed of memory (4 bytes per
    number, 8 per sparse entry). Caches make it faster. Attention, dropout, ReLU and the other terms
    are not counted.
    """
    n, c, k, num_layers = graph.num_nodes, hidden_channels, graph.num_classes, DEPTH[backbone]
    nnz_x = (
        graph.features.pattern.nnz
        if isinstance(graph.features, SparseMatrix)
        else n * graph.num_features
    )
    nnz_p = graph.looped_adjacency.pattern.nnz
    opening = (2.0 * nnz_x * c, 8.0 * nnz_x + 4.0 * (graph.num_features * c + n * c))
    dense = (2.0 * n * c * c, 4.0 * (2 * n * c + c * c))
    spread = (2.0 * nnz_p * c, 8.0 * nnz_p + 8.0 * n * c)
    closing = (2.0 * n * c * k, 4.0 * (n * c + n * k))
    forward = _add(opening, *[dense] * num_layers, *[spread] * num_layers, closing)
    backward = _add(opening, *[dense] * (2 * num_layers), *[spread] * num_layers, closing, closing)
    seen = ReceptiveField.of(graph, graph.nodes("val"), num_layers).cost
    flops, moved = _add(forward, backward, [seen * x for x in forward])
    if objective == "enc":
        labeled = ReceptiveField.of(graph, graph.nodes("train"), num_layers).cost
        sweeps = _add(backward, backward, forward, forward, backward, *[dense] * (2 * num_layers))
        flops, moved = _add((flops, moved), [labeled * x for x in sweeps])
    return {"flops": flops, "bytes": moved}


def _add(*costs: Sequence[float]) -> list[float]:
    """Add up flops and bytes."""
    return [sum(part) for part in zip(*costs, strict=True)]
