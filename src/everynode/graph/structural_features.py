"""Structural features: degree, random-walk return probabilities and spectral positions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse

#: The number of spectral coordinates.
NUM_POSITIONS = 32
#: The iterations of the eigensolver, and after how many the basis is made orthogonal again.
NUM_ITERATIONS, ORTHOGONALIZE_EVERY = 30, 5
#: Three-step return probabilities need a sparse product. Skip it above this many multiplications.
MAX_MULTIPLICATIONS = 2e8
#: The most multiplications of the rows that are computed together.
CHUNK = 5e6

Floats = npt.NDArray[np.float64]


def structural_features(pairs: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float32]:
    """Compute 36 standardized features per node from the edges alone.

    They are the log degree, its mean over the neighbors, the return probabilities of a random walk
    after two and three steps, and 32 spectral coordinates. A graph that is too small or too large
    for a feature has zeros instead.

    Parameters
    ----------
    pairs : ndarray of shape (2, m)
        The edges, in any direction.
    n : int
        The number of nodes.

    Returns
    -------
    ndarray of shape (n, 36)
        The features.

    Examples
    --------
    >>> ring = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    >>> structural_features(ring, 6).shape
    (6, 36)
    """
    ones = np.ones(pairs.shape[1])
    adjacency = scipy.sparse.csr_array((ones, (pairs[0], pairs[1])), shape=(n, n))
    adjacency = adjacency + adjacency.T
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.data[:] = 1.0
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    log_degree = np.log1p(degree)
    columns = [
        log_degree,
        (adjacency @ log_degree) / np.maximum(degree, 1),
        *_return_probabilities(adjacency, degree),
        _positions(adjacency, degree),
    ]
    return _standardize(np.column_stack(columns))


def _return_probabilities(adjacency: scipy.sparse.csr_array, degree: Floats) -> list[Floats]:
    """Return the return probabilities of a random walk after two and three steps."""
    inverse = 1 / np.maximum(degree, 1)
    two_steps = inverse * (adjacency @ inverse)
    if (degree**2).sum() > MAX_MULTIPLICATIONS:
        return [two_steps, np.zeros_like(two_steps)]
    walk = scipy.sparse.csr_array(scipy.sparse.diags_array(inverse) @ adjacency)
    back = scipy.sparse.csr_array(walk.T)
    # Two steps from the leaves of a star reach every node: the whole product would be dense.
    chunks = np.cumsum(adjacency @ degree) // CHUNK
    starts = np.flatnonzero(np.diff(chunks, prepend=-1))
    three_steps = [
        np.asarray((walk[rows] @ walk).multiply(back[rows]).sum(axis=1)).ravel()
        for rows in map(slice, starts, [*starts[1:], len(degree)])
    ]
    return [two_steps, np.concatenate(three_steps)]


def _positions(adjacency: scipy.sparse.csr_array, degree: Floats) -> Floats:
    """Return the leading eigenvectors of (I + D^-1/2 A D^-1/2) / 2 without the first.

    They come from orthogonal iteration with a fixed start. The sign of each is chosen so that the
    sum of its cubed entries is positive.
    """
    n = adjacency.shape[0]
    scale = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(degree, 1)))
    # float32 halves the memory traffic of thirty products.
    operator = scipy.sparse.csr_array(scale @ adjacency @ scale, dtype=np.float32)
    width = min(NUM_POSITIONS + 1, max(1, n // 2))
    start = np.random.default_rng(0).standard_normal((n, min(n, width + 8)), dtype=np.float32)
    basis = np.linalg.qr(start)[0]
    for iteration in range(1, NUM_ITERATIONS + 1):
        basis = (basis + operator @ basis) / 2
        if iteration % ORTHOGONALIZE_EVERY == 0:
            basis = np.linalg.qr(basis)[0]
    values, vectors = np.linalg.eigh(basis.T @ (operator @ basis))
    eigenvectors = basis @ vectors[:, np.argsort(-values)[:width]]
    sign = np.sign((eigenvectors**3).sum(axis=0))
    positions = np.zeros((n, NUM_POSITIONS))
    positions[:, : width - 1] = (eigenvectors * np.where(sign == 0, 1, sign))[:, 1:]
    return positions


def _standardize(columns: Floats) -> npt.NDArray[np.float32]:
    columns = columns - columns.mean(axis=0)
    deviation = columns.std(axis=0)
    return (columns / np.where(deviation > 1e-9, deviation, np.inf)).astype(np.float32)
