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
#: t-SNE places this many nodes in this many iterations; the others lie between the most similar.
LANDMARKS, LANDMARK_STEPS, NEAREST = 600, 300, 3

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


def all_positions(embedding: Tensor, seed: int, before: Floats | None = None) -> Floats:
    """Return positions of all nodes (n x 2), between -1 and 1.

    t-SNE places at most ``LANDMARKS`` nodes. Every other node lies at the weighted mean of the
    landmarks with the most similar embeddings, a little apart from it. With the positions
    ``before``, t-SNE starts from these, so that a map of a similar embedding looks similar.

    >>> all_positions(torch.eye(3), seed=0).shape
    (3, 2)
    """
    from sklearn.neighbors import NearestNeighbors

    n, rng = len(embedding), np.random.default_rng(seed)
    x = embedding.double().cpu().numpy()
    chosen = np.arange(n) if n <= LANDMARKS else np.sort(rng.choice(n, LANDMARKS, replace=False))
    if len(chosen) < 5 or not (x[chosen] != x[chosen[0]]).any():
        return _to_square(np.stack([np.arange(n, dtype=np.float64), np.zeros(n)], 1))
    start = None if before is None else before[chosen]
    places = _tsne(x[chosen], seed, start, steps=LANDMARK_STEPS)
    if n == len(chosen):
        return _to_square(places)
    with threadpool_limits(1):
        search = NearestNeighbors(n_neighbors=NEAREST, n_jobs=1).fit(x[chosen])
        distances, nearest = search.kneighbors(x)
    weights = 1 / (distances + 1e-6 + 0.1 * distances[:, -1:])
    weights /= weights.sum(1, keepdims=True)
    positions = (places[nearest] * weights[:, :, None]).sum(1)
    gaps = NearestNeighbors(n_neighbors=2, n_jobs=1).fit(places).kneighbors(places)[0][:, 1]
    return _to_square(positions + rng.normal(size=(n, 2)) * 0.6 * np.median(gaps))


def _to_square(positions: Floats) -> Floats:
    """Shift and scale positions into the square from -1 to 1."""
    low, high = positions.min(0), positions.max(0)
    scaled: Floats = (positions - (low + high) / 2) / (max((high - low).max(), 1e-9) / 2)
    return scaled


def _tsne(x: Floats, seed: int, before: Floats | None = None, *, steps: int = MAP_STEPS) -> Floats:
    """Return n x 2 positions: PCA, then t-SNE from the first two components or from ``before``."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    size = min(30, *x.shape)
    with threadpool_limits(1):  # several threads would sum in another order
        x = PCA(size, svd_solver="full").fit_transform(x)
        start = x[:, :2] if before is None else before
        positions = TSNE(
            2,
            init=start / (start[:, 0].std() or 1.0) * 1e-4 if size > 1 else "random",
            perplexity=min(30.0, (len(x) - 1) / 3),
            max_iter=steps,
            random_state=seed % 2**32,
            n_jobs=1,
        ).fit_transform(x)
    return positions.astype(np.float64)
