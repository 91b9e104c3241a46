"""The neighbours of every node as plain arrays, in memory or on disk, and drawing a few of them."""

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
    """Some neighbours of some nodes: the nodes' rows one after the other."""

    #: Where each row starts, and where the last one ends.
    crow: Integers
    #: The neighbours.
    nodes: Integers
    #: The weight of each edge, times one over the probability with which it was drawn.
    weight: Reals


@dataclass(frozen=True, eq=False)
class Neighbours:
    """An undirected graph without self-loops as CSR arrays: the neighbours of node i are ``col[crow[i] : crow[i + 1]]``."""

    crow: Integers
    col: Integers
    #: Of each entry of ``col``, or None for all ones.
    weight: Reals | None = None

    @classmethod
    def of_edges(cls, edges: Integers, n: int, weight: Reals | None = None) -> Neighbours:
        """From 2 x m edges, each once; the direction in which they are given does not matter."""
        one, other = edges
        entry = np.arange(len(one), dtype=np.int64 if len(one) > 2**31 else np.int32)
        csr = scipy.sparse.coo_array(
            (
                np.concatenate([entry, entry]),
                (np.concatenate([one, other]), np.concatenate([other, one])),
            ),
            shape=(n, n),
        ).tocsr()
        return cls(
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.int32),
            None if weight is None else weight[csr.data],
        )

    @cached_property
    def looped_degree(self) -> Reals:
        """:math:`d_i + 1`: the number (or total weight) of the edges at each node, and its self-loop."""
        if self.weight is None:
            return np.diff(self.crow).astype(np.float64) + 1.0
        total = np.concatenate([[0.0], np.cumsum(self.weight, dtype=np.float64)])
        return np.diff(total[self.crow]) + 1.0

    def count(self, nodes: Integers) -> Integers:
        """How many neighbours these nodes have."""
        return self.crow[nodes + 1] - self.crow[nodes]

    def draw(self, nodes: Integers, at_most: int, rng: np.random.Generator) -> Drawn:
        """All neighbours of the nodes that have ``at_most`` so many (-1: of all nodes), and so many of the others', without repetition.

        A sum over the drawn neighbours, each with its weight, is on average the sum over all neighbours.

        >>> path = Neighbours.of_edges(np.array([[0, 1, 2], [1, 2, 3]]), 4)
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
            entries[crow[many, None] + np.arange(at_most)] = start[many, None] + _distinct(
                count[many], at_most, rng
            )
        weight = np.repeat(count / np.maximum(kept, 1), kept)
        return Drawn(
            crow,
            self.col[entries],
            weight if self.weight is None else weight * self.weight[entries],
        )


def _distinct(below: Integers, number: int, rng: np.random.Generator) -> Integers:
    """For each row ``number`` distinct whole numbers from 0 to below its bound, every set of them as likely (Floyd's algorithm)."""
    picks = np.empty((len(below), number), dtype=np.int64)
    for turn in range(number):
        last = below - number + turn
        pick = (rng.random(len(below)) * (last + 1)).astype(np.int64)
        taken = (picks[:, :turn] == pick[:, None]).any(1)
        picks[:, turn] = np.where(taken, last, pick)
    return picks
