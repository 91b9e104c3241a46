"""A cheap classifier for quick comparisons: logistic regression on features of zero to two hops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from everynode.graph import Graph
from everynode.sparse import SparseMatrix

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

#: The components that are kept of the features, and the steps of propagation.
COMPONENTS, HOPS = 64, 2


def graph_operator(graph: Graph) -> scipy.sparse.csr_array:
    """Return the operator of GCN as a SciPy matrix."""
    return scipy.sparse.csr_array(graph.gcn_operator.to_scipy()).astype(np.float32)


def reduced_features(graph: Graph, *, seed: int = 0) -> Floats:
    """Return the features in at most 64 directions.

    At most 64 dense columns are standardized. Of more, or sparse, features each row is scaled to
    length 1, and the principal directions are kept. Features that were computed from the edges are
    replaced by the rows of the operator of GCN.
    """
    features, encoder = graph.features, graph.feature_encoder
    if encoder is not None and encoder.structural:
        return _components(graph_operator(graph), seed)
    if isinstance(features, SparseMatrix):
        matrix = scipy.sparse.csr_array(features.to_scipy()).astype(np.float32)
        lengths = np.sqrt(matrix.multiply(matrix).sum(1))
        scale = scipy.sparse.diags_array(1 / np.maximum(lengths, 1e-9)).astype(np.float32)
        return _components(scipy.sparse.csr_array(scale @ matrix), seed)
    dense = features.cpu().numpy().astype(np.float32)
    if dense.shape[1] <= COMPONENTS:
        spread = dense.std(0)
        scaled: Floats = ((dense - dense.mean(0)) / np.where(spread > 0, spread, 1)).astype(
            np.float32
        )
        return scaled
    return _components(unit_rows(dense), seed)


def unit_rows(points: npt.NDArray[Any]) -> Floats:
    """Scale every row to length 1; zero rows stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).round(2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    unit: Floats = (points / np.maximum(lengths, 1e-9)).astype(np.float32)
    return unit


def hop_features(points: Floats, operator: scipy.sparse.csr_array, rows: Ints) -> Floats:
    r"""Return :math:`[Z_0, \tilde P Z_0, \tilde P^2 Z_0]` for some rows, with unit variance."""
    blocks = [points]
    for _ in range(HOPS):
        blocks.append(operator @ blocks[-1])
    joined = np.hstack([block[rows] for block in blocks])
    spread = joined.std(0)
    scaled: Floats = (joined - joined.mean(0)) / np.where(spread > 1e-9, spread, 1)
    return scaled


def held_out_probabilities(
    features: Floats, labels: Ints, train: Ints, held_out: Ints
) -> npt.NDArray[np.float64]:
    """Return the probability of the true class of each held-out row, at least 0.001."""
    p = np.full((len(held_out), int(labels.max()) + 1), 0.0)
    classes = np.unique(labels[train])
    if len(classes) == 1:
        p[:, classes[0]] = 1.0
    else:
        model = LogisticRegression(C=0.01, max_iter=200).fit(features[train], labels[train])
        p[:, classes] = model.predict_proba(features[held_out])
    return np.asarray(np.maximum(p, 1e-3))


def _components(matrix: Any, seed: int) -> Floats:
    """Return the rows in at most :data:`COMPONENTS` principal directions."""
    if min(matrix.shape) <= COMPONENTS:
        dense = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
        return np.asarray(dense, dtype=np.float32)
    u, sizes, _ = randomized_svd(matrix, COMPONENTS, n_iter=4, random_state=seed)
    return (u * sizes).astype(np.float32)
