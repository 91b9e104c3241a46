"""Generated graphs: planted classes, power-law degrees, noisy features, any size."""

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

#: The number of edges, or of feature values, that are generated at once.
CHUNK = 2**20
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
    """Generate a graph, by default of the size of ogbn-arxiv.

    Every node has a class, and a weight from a power law. The ends of an edge are drawn by weight;
    with probability ``homophily``, both come from one class. The features are a random direction
    per class plus noise. The split is stratified, 54/18/28 percent as in ogbn-arxiv. The same
    arguments give the same graph.

    Parameters
    ----------
    nodes, features, classes : int
        The numbers of nodes, features and classes.
    edges : int
        The number of undirected edges to draw; repetitions and self-loops are dropped.
    homophily : float
        The probability that both ends of an edge come from one class.
    noise : float
        The standard deviation of the noise in the features.
    exponent : float
        The exponent of the power law.
    seed : int
        The seed of all random choices.
    features_file : path, optional
        Write the features to this .npy file in chunks, and memory-map it. The features may then be
        larger than memory; the edges must fit (about 40 bytes each).

    Returns
    -------
    Graph
        The graph with one split.

    Examples
    --------
    >>> generate(1000, 3000, 8, 4)  # doctest: +NORMALIZE_WHITESPACE
    Graph 'generated-1000x3000x8x4': 1000 nodes, 2687 edges, 8 features (dense), 4 classes,
    1000 labeled, 1 splits
    """
    between = "between 2 and the number of nodes"
    require(nodes >= classes >= 2, "classes", "generate", between, classes)
    least = {"features": (features, 1), "edges": (edges, 0), "noise": (noise, 0), "seed": (seed, 0)}
    for name, (value, low) in least.items():
        require(value >= low, name, "generate", f">= {low}", value)
    require(0 <= homophily <= 1, "homophily", "generate", "in [0, 1]", homophily)
    require(exponent > 2, "exponent", "generate", "> 2", exponent)
    rng = np.random.Generator(np.random.SFC64(seed))
    labels = rng.integers(0, classes, nodes)
    labels[rng.choice(nodes, classes, replace=False)] = np.arange(classes)  # no class is empty
    pairs = _draw_edges(labels, classes, edges, homophily, exponent, rng)
    rows = _feature_chunks(labels, classes, features, noise, rng)
    shape = (nodes, features)
    x = _write_features(Path(features_file), shape, rows) if features_file else _filled(shape, rows)
    y = torch.from_numpy(labels)
    split = stratified_split(y, 0.54, 0.18, seed=seed)
    return Graph(
        torch.from_numpy(x), torch.from_numpy(pairs), y, tuple(range(classes)), (split,),
        name=f"generated-{nodes}x{edges}x{features}x{classes}",
        repairs={"self_loops": 0, "repeated_edges": 0, "one_way_edges": 0},
    )  # fmt: skip


def _draw_edges(
    labels: Ints,
    classes: int,
    edges: int,
    homophily: float,
    exponent: float,
    rng: np.random.Generator,
) -> Ints:
    """Draw the edges, 2 x m: each once, the smaller node first, sorted."""
    nodes = len(labels)
    by_class = np.argsort(labels, kind="stable")  # each class is a range of positions
    ends = np.cumsum(np.bincount(labels, minlength=classes))
    # Weights are capped at their expected maximum: an outlier could take a third of all edges.
    weight = np.minimum(rng.pareto(exponent - 1.0, nodes) + 1.0, nodes ** (1.0 / (exponent - 1.0)))
    total = np.concatenate([[0.0], np.cumsum(weight)])
    below, above = total[np.concatenate([[0], ends[:-1]])], total[ends]
    # An index of n steps of equal width into the running total. Few weights lie within a step, so a
    # draw takes constant time; a binary search would miss the cache at every probe.
    width, last = total[-1] / nodes, np.nextafter(total[-1], 0.0)
    index = np.searchsorted(total, width * np.arange(nodes + 1), side="right") - 1

    def draw(low: Floats | float, high: Floats | float, count: int) -> Ints:
        """Draw nodes by weight, between these bounds of the running total."""
        sums = np.minimum(low + (high - low) * rng.random(count), last)
        place = index[(sums / width).astype(np.int64)]
        while (is_before := total[place + 1] <= sums).any():
            place += is_before
        return by_class[place]

    keys = np.empty(edges, np.int64)
    for start in range(0, edges, CHUNK):
        count = min(CHUNK, edges - start)
        source = draw(0.0, total[-1], count)
        own = labels[source]
        within = rng.random(count) < homophily
        low, high = np.where(within, below[own], 0.0), np.where(within, above[own], total[-1])
        target = draw(low, high, count)
        smaller, larger = np.minimum(source, target), np.maximum(source, target)
        keys[start : start + count] = smaller * nodes + larger
    keys = np.unique(keys)
    pairs = np.stack(np.divmod(keys, nodes))
    return pairs[:, pairs[0] != pairs[1]]


def _feature_chunks(
    labels: Ints, classes: int, features: int, noise: float, rng: np.random.Generator
) -> Iterator[tuple[int, Floats]]:
    """Yield the features chunk by chunk, each with the number of its first node."""
    centers = rng.standard_normal((classes, features), dtype=np.float32)
    step = max(1, CHUNK // features)
    for start in range(0, len(labels), step):
        chunk = centers[labels[start : start + step]]
        yield start, chunk + np.float32(noise) * rng.standard_normal(chunk.shape, dtype=np.float32)


def _filled(shape: tuple[int, int], rows: Iterator[tuple[int, Floats]]) -> Floats:
    """Return the rows as an array in memory."""
    x = np.empty(shape, np.float32)
    for start, chunk in rows:
        x[start : start + len(chunk)] = chunk
    return x


def _write_features(
    path: Path, shape: tuple[int, int], rows: Iterator[tuple[int, Floats]]
) -> Floats:
    """Write the rows to a .npy file, atomically, and map it copy-on-write."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for _, chunk in rows:
                file.write(np.ascontiguousarray(chunk).data)
        partial.replace(path)
        mapped: Floats = np.load(path, mmap_mode="c")
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DataError(
            f"Cannot write the features to {path} ({error.strerror or error}): name another "
            "features_file."
        ) from error
    return mapped
