"""Graphs made to measure: planted classes, power-law degrees, noisy features; any size."""

from __future__ import annotations

import numpy as np
import torch

from everynode.data.splits import stratified_split
from everynode.errors import require
from everynode.graph import Graph


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
) -> Graph:
    """A graph of about ``edges`` undirected edges (repeats and loops fall out), by default of the size of ogbn-arxiv.

    Every node has a class, and a weight drawn from a power law with this ``exponent``; the ends of an edge are drawn by weight, and
    with probability ``homophily`` both within one class. Features are the class's own random direction plus ``noise`` times a normal
    vector. The split is stratified, 54/18/28 percent as ogbn-arxiv's. It takes memory for the edges and the features, nothing larger.

    >>> generate(1000, 3000, 8, 4).num_classes
    4
    """
    require(nodes >= classes >= 2, "classes", "generate", "between 2 and the number of nodes", classes)
    require(0 <= homophily <= 1, "homophily", "generate", "in [0, 1]", homophily)
    require(exponent > 2, "exponent", "generate", "> 2", exponent)
    rng = np.random.Generator(np.random.SFC64(seed))
    # Sorted, so that a class is a range of nodes; each class has at least one.
    labels = np.sort(np.concatenate([np.arange(classes), rng.integers(0, classes, nodes - classes)]))
    weight = rng.pareto(exponent - 1.0, nodes) + 1.0
    total = np.cumsum(weight)
    starts = np.searchsorted(labels, np.arange(classes + 1))
    before = np.concatenate([[0.0], total])[starts]

    def draw(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Nodes by weight, between these bounds of the running total."""
        return np.minimum(np.searchsorted(total, low + (high - low) * rng.random(len(low)), side="right"), nodes - 1)

    everywhere = np.zeros(edges), np.full(edges, total[-1])
    source = draw(*everywhere)
    own = labels[source]
    within = rng.random(edges) < homophily
    target = draw(np.where(within, before[own], 0.0), np.where(within, before[own + 1], total[-1]))
    centres = rng.standard_normal((classes, features), dtype=np.float32)
    x = centres[labels]
    x += np.float32(noise) * rng.standard_normal((nodes, features), dtype=np.float32)
    y = torch.from_numpy(labels)
    split = stratified_split(y, 0.54, 0.18, seed=seed)
    name = f"generated-{nodes}-{edges}"
    return Graph.from_arrays(x, np.stack([source, target]), y, splits=[split], classes=range(classes), name=name)
