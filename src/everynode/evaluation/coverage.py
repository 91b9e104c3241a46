"""Which few nodes stand for all the others: coverage of the propagated features."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from everynode.evaluation.hop_features import (
    COMPONENTS,
    HOPS,
    graph_operator,
    reduced_features,
    unit_rows,
)
from everynode.graph import Graph
from everynode.sparse import SparseMatrix

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

#: Linked nodes are alike if their similarity is above that of random pairs by this many standard
#: deviations. Of 13 graphs, two are below (minesweeper 0.03, actor 0.0), the others above 0.2.
ALIKE = 0.1
#: The random pairs that tell how alike two nodes are by chance.
PAIRS = 20_000
#: On larger graphs, a sample of nodes is covered, and a sample of candidates is tried.
MOST_TARGETS = MOST_CANDIDATES = 4000
#: The nodes whose distances are computed at once.
BLOCK = 20_000


def coverage_points(graph: Graph, *, seed: int = 0) -> tuple[Floats, int]:
    r"""Return the points whose distances tell which nodes are similar, and the hops.

    The features are reduced to at most 64 directions, :math:`Z_0`
    (:func:`everynode.evaluation.hop_features.reduced_features`). Then

    .. math:: Z = \tilde P^2 Z_0, \qquad \tilde P = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}

    and the rows of :math:`Z` are scaled to length 1, except those of a few dense columns. If linked
    nodes are no more alike than random pairs, the links say nothing about the features, and
    :math:`Z = Z_0` (0 hops).

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> points, hops = coverage_points(generate(100, 300, 8, 3))
    >>> points.shape, hops
    ((100, 8), 2)
    """
    points, encoder = reduced_features(graph, seed=seed), graph.feature_encoder
    is_dense = not isinstance(graph.features, SparseMatrix) and graph.num_features <= COMPONENTS
    from_links = encoder is not None and encoder.structural
    hops = HOPS
    if not from_links and not linked_nodes_are_alike(points, graph.edges.cpu().numpy(), seed=seed):
        hops = 0
    for _ in range(hops):
        points = graph_operator(graph) @ points
    return points if is_dense and not from_links else unit_rows(points), hops


def linked_nodes_are_alike(points: Floats, edges: Ints, *, seed: int = 0) -> bool:
    """Whether linked nodes have more similar features than random pairs; no label is needed.

    >>> x = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]]
    >>> linked_nodes_are_alike(x, np.array([[0, 2], [1, 3]]))
    True
    >>> linked_nodes_are_alike(x, np.array([[0, 1], [2, 3]]))
    False
    """
    if not edges.shape[1]:
        return False
    random = np.random.default_rng(seed)
    centered = unit_rows(points - points.mean(0))
    links = edges.T[random.permutation(edges.shape[1])[:PAIRS]].T
    pairs = random.integers(0, len(points), (2, PAIRS))
    linked, by_chance = ((centered[a] * centered[b]).sum(1) for a, b in (links, pairs))
    return bool(linked.mean() - by_chance.mean() >= ALIKE * by_chance.std())


def choose(
    points: Floats, candidates: Ints, count: int, *, labeled: Ints | None = None,
    weights: npt.NDArray[np.float64] | None = None, seed: int = 0,
) -> tuple[Ints, int]:  # fmt: skip
    r"""Return nodes that cover the others, and how many of them add coverage.

    With the distance of each node :math:`i` to the nearest labeled or chosen node, the loss is

    .. math:: L(S) = \sum_i w_i \min_{j \in S} \lVert z_i - z_j \rVert

    Each step adds the candidate that lowers the loss most (greedy facility location). Without
    labels, each chosen node then moves to the candidate that is nearest to the nodes it stands for,
    until nothing moves (k-medoids). If no candidate lowers the loss, all are alike, and the rest
    is drawn at random.

    Parameters
    ----------
    points : array of shape (n, d)
        The points.
    candidates : array
        The nodes to choose from.
    count : int
        How many to choose.
    labeled : array, optional
        Nodes that have a label and cover others already.
    weights : array of shape (n,), optional
        The weight of each node. None: 1.
    seed : int
        The seed of the samples of large graphs.

    Examples
    --------
    >>> line = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], dtype=np.float32)
    >>> choose(line, np.arange(6), 2)
    (array([4, 1]), 2)
    """
    random = np.random.default_rng(seed)
    everyone = np.arange(len(points))
    targets = _sample(everyone, MOST_TARGETS, random)
    tried = _sample(candidates, max(MOST_CANDIDATES, 2 * count), random)
    w = np.ones(len(targets)) if weights is None else weights[targets]
    w = w / max(float(w.mean()), 1e-12)
    distances = _distances(points[tried], points[targets])
    if labeled is not None and len(labeled):
        nearest = np.minimum(
            distances.max(), nearest_of(points[targets], points[labeled])[1]
        ).astype(np.float32)
    else:
        nearest = np.full(len(targets), distances.max() if distances.size else 0, np.float32)
    picked = greedy(distances, min(count, len(tried)), nearest, w)
    if labeled is None or not len(labeled):
        picked = _to_medoids(distances, picked, w)
    useful = len(picked)
    rest = np.setdiff1d(candidates, tried[picked])
    more = random.permutation(rest)[: count - useful]
    return np.concatenate([tried[picked], np.sort(more)]).astype(np.int64), useful


def greedy(
    distances: Floats, count: int, nearest: Floats, weights: npt.NDArray[np.float64]
) -> list[int]:
    """Return the rows that lower the weighted sum of the nearest distances most, one by one.

    A candidate's gain can only shrink as others are chosen. An old gain is therefore an upper
    bound, and only the best few are computed again (lazy greedy, Minoux 1978).
    """

    def gain(row: int) -> float:
        return float((np.maximum(nearest - distances[row], 0) * weights).sum())

    heap = [(-gain(row), row) for row in range(len(distances))]
    heapq.heapify(heap)
    picked: list[int] = []
    while heap and len(picked) < count:
        _, row = heapq.heappop(heap)
        now = gain(row)
        if heap and now < -heap[0][0]:
            heapq.heappush(heap, (-now, row))
            continue
        if now <= 1e-6 * len(nearest):
            break
        picked.append(row)
        nearest = np.minimum(nearest, distances[row])
    return picked


def nearest_of(points: Floats, centers: Floats) -> tuple[Ints, Floats]:
    """Return the nearest center of each point, and its distance."""
    blocks = [
        _distances(points[start : start + BLOCK], centers)
        for start in range(0, max(len(points), 1), BLOCK)
    ]
    where = np.concatenate([block.argmin(1) for block in blocks])
    return where, np.concatenate([block.min(1) for block in blocks])


def _to_medoids(
    distances: Floats, picked: list[int], weights: npt.NDArray[np.float64], steps: int = 10
) -> list[int]:
    """Move each chosen row to the medoid of the columns that it is nearest to."""
    for _ in range(steps if picked else 0):
        owner = distances[picked].argmin(0)
        moved: list[int] = []
        for place, row in enumerate(picked):
            own = owner == place
            costs = distances[:, own] @ weights[own].astype(np.float32)
            costs[moved] = np.inf
            moved.append(int(costs.argmin()) if own.any() else row)
        if moved == picked or len(set(moved)) < len(moved):
            break
        picked = moved
    return picked


def _distances(a: Floats, b: Floats) -> Floats:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0)).astype(np.float32)


def _sample(nodes: Ints, most: int, random: np.random.Generator) -> Ints:
    return nodes if len(nodes) <= most else np.sort(random.choice(nodes, most, replace=False))
