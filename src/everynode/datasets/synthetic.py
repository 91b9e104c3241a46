"""Graphs made to measure: planted classes, power-law degrees, noisy features; any size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from everynode.datasets.splits import stratified_split
from everynode.errors import DataError, require
from everynode.graph import Graph

#: Edges and rows of features that are made at a time: memory for more is not needed.
PIECE = 2**20
Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


def generate(
    nodes: int = 169_343,
    edges: int = 1_166_243,
    features: int = 128,
    classes: int = 40,
    *,
    homophily: float = 0.65,
    noise: float = 1.0,
    exponent: float = 2.5,
    seed: int = 0,
    features_file: str | os.PathLike[str] | None = None,
) -> Graph:
    """A graph of about ``edges`` undirected edges (repeats and loops fall out), by default of the size of ogbn-arxiv.

    Every node has a class, and a weight drawn from a power law with this ``exponent``; the ends of an edge are drawn by weight, and
    with probability ``homophily`` both within one class. Features are the class's own random direction plus ``noise`` times a normal
    vector. Nodes are in no order. The split is stratified, 54/18/28 percent as ogbn-arxiv's. The same arguments, the same graph.

    ``features_file``: write the features there (.npy), piece by piece, and leave them there: the graph's features are then a map of the
    file, and a graph may be larger than memory. What has to fit is the edges (about 40 bytes each on the way).

    >>> generate(1000, 3000, 8, 4)
    Graph 'generated-1000x3000x8x4': 1000 nodes, 2687 edges, 8 features (dense), 4 classes, 1000 labelled, 1 splits
    """
    require(
        nodes >= classes >= 2, "classes", "generate", "between 2 and the number of nodes", classes
    )
    require(edges >= 0, "edges", "generate", ">= 0", edges)
    require(features >= 1, "features", "generate", ">= 1", features)
    require(0 <= homophily <= 1, "homophily", "generate", "in [0, 1]", homophily)
    require(noise >= 0, "noise", "generate", ">= 0", noise)
    require(exponent > 2, "exponent", "generate", "> 2", exponent)
    require(seed >= 0, "seed", "generate", ">= 0", seed)
    rng = np.random.Generator(np.random.SFC64(seed))
    labels = rng.integers(0, classes, nodes)
    labels[rng.choice(nodes, classes, replace=False)] = np.arange(classes)  # no class is empty
    pairs = _pairs(labels, classes, edges, homophily, exponent, rng)
    rows = _rows(labels, classes, features, noise, rng)
    if features_file is None:
        x = np.empty((nodes, features), np.float32)
        for start, piece in rows:
            x[start : start + len(piece)] = piece
    else:
        x = _on_disk(Path(features_file), (nodes, features), rows)
    y = torch.from_numpy(labels)
    return Graph(
        torch.from_numpy(x),
        torch.from_numpy(pairs),
        y,
        tuple(range(classes)),
        (stratified_split(y, 0.54, 0.18, seed=seed),),
        name=f"generated-{nodes}x{edges}x{features}x{classes}",
        repairs={"self_loops": 0, "repeated_edges": 0, "one_way_edges": 0},
    )


def _pairs(
    labels: Ints,
    classes: int,
    edges: int,
    homophily: float,
    exponent: float,
    rng: np.random.Generator,
) -> Ints:
    """2 x m: every edge once, the smaller node first, in order."""
    nodes = len(labels)
    by_class = np.argsort(labels, kind="stable")  # so that a class is a range
    ends = np.cumsum(np.bincount(labels, minlength=classes))
    # No weight is above the largest that so many draws are expected to have: now and then one alone would have a third of all edges.
    weight = np.minimum(rng.pareto(exponent - 1.0, nodes) + 1.0, nodes ** (1.0 / (exponent - 1.0)))
    total = np.concatenate([[0.0], np.cumsum(weight)])
    below, above = total[np.concatenate([[0], ends[:-1]])], total[ends]
    # Where in the running total to start looking, for as many steps of equal width as there are nodes: few weights lie within a step,
    # so that a draw takes a moment whatever the number of nodes, where a binary search waits for memory again and again.
    width, last = total[-1] / nodes, np.nextafter(total[-1], 0.0)
    first = np.searchsorted(total, width * np.arange(nodes + 1), side="right") - 1

    def draw(low: Floats | float, high: Floats | float, count: int) -> Ints:
        """Nodes by weight, between these bounds of the running total."""
        wanted = np.minimum(low + (high - low) * rng.random(count), last)
        place = first[(wanted / width).astype(np.int64)]
        while (behind := total[place + 1] <= wanted).any():
            place += behind
        return by_class[place]

    keys = np.empty(edges, np.int64)
    for start in range(0, edges, PIECE):
        count = min(PIECE, edges - start)
        source = draw(0.0, total[-1], count)
        own = labels[source]
        within = rng.random(count) < homophily
        target = draw(
            np.where(within, below[own], 0.0), np.where(within, above[own], total[-1]), count
        )
        keys[start : start + count] = np.minimum(source, target) * nodes + np.maximum(
            source, target
        )
    keys = np.unique(keys)
    pairs = np.stack(np.divmod(keys, nodes))
    return pairs[:, pairs[0] != pairs[1]]


def _rows(
    labels: Ints, classes: int, features: int, noise: float, rng: np.random.Generator
) -> Iterator[tuple[int, Floats]]:
    """The features, piece by piece, each with the number of its first node."""
    centres = rng.standard_normal((classes, features), dtype=np.float32)
    step = max(1, PIECE // features)
    for start in range(0, len(labels), step):
        piece = centres[labels[start : start + step]]
        yield start, piece + np.float32(noise) * rng.standard_normal(piece.shape, dtype=np.float32)


def _on_disk(path: Path, shape: tuple[int, int], rows: Iterator[tuple[int, Floats]]) -> Floats:
    """Write the rows to a .npy file, which is there whole or not at all, and map it: changes stay in memory, the file as it is."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": shape}
            )
            for _, piece in rows:
                file.write(np.ascontiguousarray(piece).data)
        partial.replace(path)
        mapped: Floats = np.load(path, mmap_mode="c")
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DataError(
            f"Cannot write the features to {path} ({error.strerror or error}): name another features_file."
        ) from error
    return mapped
