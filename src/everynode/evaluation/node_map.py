"""Positions of nodes in the plane, for the map of ``everynode fit``'s page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

#: Maximum number of nodes on the map; a larger graph is sampled.
MAP_NODES = 2000
#: Number of t-SNE iterations.
MAP_STEPS = 500

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def node_map(embedding: Tensor, seed: int) -> tuple[Ints, Floats]:
    """Return at most ``MAP_NODES`` nodes and their positions, a t-SNE of their embeddings.

    The same seed gives the same map.

    >>> nodes, positions = node_map(torch.zeros(3, 8), seed=0)
    >>> nodes.tolist(), positions.tolist()  # embeddings without differences: a row
    ([0, 1, 2], [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    """
    n = len(embedding)
    nodes = np.arange(n)
    if n > MAP_NODES:
        nodes = np.sort(np.random.default_rng(seed).choice(n, MAP_NODES, replace=False))
    x = embedding[torch.from_numpy(nodes)].double().cpu().numpy()
    if len(nodes) < 5 or not (x != x[0]).any():
        row = np.arange(len(nodes), dtype=np.float64)
        return nodes, np.stack([row, np.zeros(len(nodes))], 1)
    return nodes, _tsne(x, seed)


def _tsne(x: Floats, seed: int) -> Floats:
    """Return n x 2 positions: PCA, then t-SNE from the first two components."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    size = min(30, *x.shape)
    with threadpool_limits(1):  # several threads would sum in another order
        x = PCA(size, svd_solver="full").fit_transform(x)
        positions = TSNE(
            2,
            init=x[:, :2] / (x[:, 0].std() or 1.0) * 1e-4 if size > 1 else "random",
            perplexity=min(30.0, (len(x) - 1) / 3),
            max_iter=MAP_STEPS,
            random_state=seed % 2**32,
            n_jobs=1,
        ).fit_transform(x)
    return positions.astype(np.float64)
