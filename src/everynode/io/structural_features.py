"""Features from the structure alone, for graphs whose nodes have no columns: how connected a node is, and where in the graph it sits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse

#: How many coordinates say where a node sits.
POSITIONS = 32
#: How often the coordinates are averaged over neighbours before they are read off, and after how many times they are made orthogonal.
ROUNDS, ORTHOGONAL = 30, 5
#: Return probabilities after three steps need a product of the adjacency matrix with itself: only up to so many multiplications.
AFFORDABLE = 2e8

Floats = npt.NDArray[np.float64]


def structural_features(pairs: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float32]:
    """n x 36, standardised: log degree, that of the neighbours, two return probabilities, and positions.

    What a graph is too small (or, three steps, too large) for is zero: every graph has the same number of features.

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
    columns = [
        np.log1p(degree),
        _mean(adjacency, degree, np.log1p(degree)),
        *_returns(adjacency, degree),
    ]
    return _standardised(np.column_stack([*columns, _positions(adjacency, degree)]))


def _mean(adjacency: scipy.sparse.csr_array, degree: Floats, values: Floats) -> Floats:
    """The mean over each node's neighbours; 0 for nodes without."""
    return (adjacency @ values) / np.maximum(degree, 1)


def _returns(adjacency: scipy.sparse.csr_array, degree: Floats) -> list[Floats]:
    """The probabilities that a random walk is back where it began after two and (in triangles) after three steps."""
    inverse = 1 / np.maximum(degree, 1)
    twice = inverse * (adjacency @ inverse)
    if (degree**2).sum() > AFFORDABLE:
        return [twice, np.zeros_like(twice)]
    walk = scipy.sparse.csr_array(scipy.sparse.diags_array(inverse) @ adjacency)
    return [twice, np.asarray((walk @ walk).multiply(walk.T).sum(axis=1)).ravel()]


def _positions(adjacency: scipy.sparse.csr_array, degree: Floats) -> Floats:
    """The leading eigenvectors of (I + D^-1/2 A D^-1/2) / 2, by orthogonal iteration from a fixed start, without the first.

    The sign of an eigenvector is anybody's choice; here the sum of the cubes of its entries is positive.
    """
    n = adjacency.shape[0]
    scale = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(degree, 1)))
    operator = scipy.sparse.csr_array(
        scale @ adjacency @ scale, dtype=np.float32
    )  # half the memory to go through, thirty times
    width = min(POSITIONS + 1, max(1, n // 2))
    basis = np.linalg.qr(
        np.random.default_rng(0).standard_normal((n, min(n, width + 8)), dtype=np.float32)
    )[0]
    for done in range(1, ROUNDS + 1):
        basis = (basis + operator @ basis) / 2
        if done % ORTHOGONAL == 0:
            basis = np.linalg.qr(basis)[0]
    values, vectors = np.linalg.eigh(basis.T @ (operator @ basis))
    found = basis @ vectors[:, np.argsort(-values)[:width]]
    sign = np.sign((found**3).sum(axis=0))
    positions = np.zeros((n, POSITIONS))
    positions[:, : width - 1] = (found * np.where(sign == 0, 1, sign))[:, 1:]
    return positions


def _standardised(columns: Floats) -> npt.NDArray[np.float32]:
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return (columns / np.where(spread > 1e-9, spread, np.inf)).astype(np.float32)
