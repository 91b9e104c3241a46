"""Neighbors of every node as plain arrays, in memory or on disk, and sampling from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

Integers = npt.NDArray[np.integer[Any]]
Reals = npt.NDArray[np.floating[Any]]


class Drawn(NamedTuple):
    """Sampled neighbors of some nodes, as CSR arrays.

    Attributes
    ----------
    crow : array
        Row pointers: where the neighbors of each node start, and where the last ones end.
    nodes : array
        The neighbors.
    weight : array
        Weight of each edge, divided by its sampling probability.
    """

    crow: Integers
    nodes: Integers
    weight: Reals


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Undirected graph without self-loops as CSR arrays.

    Attributes
    ----------
    crow, col : array
        The neighbors of node i are ``col[crow[i] : crow[i + 1]]``.
    weight : array or None
        Weight of each entry of ``col``; None means all ones.
    """

    crow: Integers
    col: Integers
    weight: Reals | None = None

    @classmethod
    def of_edges(cls, edges: Integers, n: int, weight: Reals | None = None) -> Neighbors:
        """Build the arrays from 2 x m edges, each given once, in either direction."""
        one, other = edges
        entry = np.arange(len(one), dtype=np.int64 if len(one) > 2**31 else np.int32)
        rows, columns = np.concatenate([one, other]), np.concatenate([other, one])
        values = np.concatenate([entry, entry])
        csr = scipy.sparse.coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
        return cls(
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.int32),
            None if weight is None else weight[csr.data],
        )

    @cached_property
    def looped_degree(self) -> Reals:
        """:math:`d_i + 1`: number or total weight of the edges of each node, with a self-loop."""
        if self.weight is None:
            return np.diff(self.crow).astype(np.float64) + 1.0
        total = np.concatenate([[0.0], np.cumsum(self.weight, dtype=np.float64)])
        return np.diff(total[self.crow]) + 1.0

    def count(self, nodes: Integers) -> Integers:
        """Return the number of neighbors of these nodes."""
        return self.crow[nodes + 1] - self.crow[nodes]

    def draw(self, nodes: Integers, at_most: int, rng: np.random.Generator) -> Drawn:
        """Sample up to ``at_most`` neighbors of each node without repetition; -1 takes all.

        A weighted sum over the sampled neighbors is an unbiased estimate of the sum over all.

        >>> path = Neighbors.of_edges(np.array([[0, 1, 2], [1, 2, 3]]), 4)
        >>> path.draw(np.array([0, 1]), -1, np.random.default_rng(0)).nodes
        array([1, 0, 2], dtype=int32)
        >>> path.draw(np.array([0, 1]), 1, np.random.default_rng(0)).weight
        array([1., 2.])
        """
        start, count = self.crow[nodes], self.count(nodes)
        kept = count if at_most < 0 else np.minimum(count, at_most)
        crow = np.concatenate([[0], np.cumsum(kept)])
        entries = np.arange(crow[-1]) + np.repeat(start - crow[:-1], kept)
        many = np.flatnonzero(count > kept)
        if len(many) and at_most:
            picks = _distinct(count[many], at_most, rng)
            entries[crow[many, None] + np.arange(at_most)] = start[many, None] + picks
        weight = np.repeat(count / np.maximum(kept, 1), kept)
        if self.weight is not None:
            weight = weight * self.weight[entries]
        return Drawn(crow, self.col[entries], weight)


def _distinct(below: Integers, number: int, rng: np.random.Generator) -> Integers:
    """Draw ``number`` distinct integers below each bound, all sets equally likely (Floyd)."""
    picks = np.empty((len(below), number), dtype=np.int64)
    for turn in range(number):
        last = below - number + turn
        pick = (rng.random(len(below)) * (last + 1)).astype(np.int64)
        taken = (picks[:, :turn] == pick[:, None]).any(1)
        picks[:, turn] = np.where(taken, last, pick)
    return picks
