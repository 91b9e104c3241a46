"""Changes around a node, and graphs with one copy of its surroundings for each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor

from everynode.graph import UNLABELED, Graph
from everynode.sparse import SparseMatrix

Ints = npt.NDArray[np.int64]
Features = SparseMatrix | Tensor

#: A column with a larger share of zeros is neutral at zero, as an absent word.
MOSTLY_ZERO = 0.5
#: The nodes of the copies that are computed at once.
ROWS_AT_ONCE = 32_768


@dataclass(frozen=True)
class Change:
    """What is missing for the prediction of one node.

    Attributes
    ----------
    features : tuple of int
        Features of the node that take their neutral value.
    removed : tuple of int
        Nodes that lose all their edges. The node itself: its prediction without neighbors.
    kept : tuple of int or None
        If given, all other nodes lose their edges too, except the node itself.
    """

    features: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    kept: tuple[int, ...] | None = None

    @property
    def edges(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """The part that changes edges: changes with the same one share their operators."""
        return self.removed, self.kept

    def stays(self, node: int, nodes: Ints) -> npt.NDArray[np.bool_]:
        """Return whether each of some nodes keeps its edges."""
        keeps = np.ones(len(nodes), dtype=bool)
        if self.kept is not None:
            keeps = np.isin(nodes, [node, *self.kept])
        if self.removed:
            keeps &= ~np.isin(nodes, self.removed)
        return keeps


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The edges of a graph as matrices, and the neutral value of every feature.

    Parameters
    ----------
    graph : Graph
        The graph.
    """

    graph: Graph
    _balls: dict[tuple[int, int | None], Ints] = field(default_factory=dict)

    @cached_property
    def incoming(self) -> scipy.sparse.csr_array:
        """The weights of the edges without self-loops; row: target, column: source (float64)."""
        looped = self.graph.looped_adjacency.to_scipy().copy()  # it shares the memory
        looped.setdiag(0.0)
        looped.eliminate_zeros()
        looped.sort_indices()
        return looped

    @cached_property
    def outgoing(self) -> scipy.sparse.csr_array:
        """The transpose of :attr:`incoming`; the same matrix for an undirected graph."""
        return self.incoming.T.tocsr() if self.graph.directed else self.incoming

    @cached_property
    def neutral(self) -> npt.NDArray[np.float32]:
        """The neutral value of each feature: 0 if most nodes have 0, else the mean."""
        features, n = self.graph.features, max(self.graph.num_nodes, 1)
        if isinstance(features, SparseMatrix):
            matrix = features.to_scipy()
            filled = np.bincount(matrix.indices[matrix.data != 0], minlength=matrix.shape[1])
            mean = np.asarray(matrix.sum(axis=0)).ravel() / n
        else:
            dense = features.cpu().numpy()
            filled, mean = (dense != 0).sum(0), dense.mean(0, dtype=np.float64)
        return np.where(filled < (1 - MOSTLY_ZERO) * n, 0.0, mean).astype(np.float32)

    def row(self, node: int) -> npt.NDArray[np.float32]:
        """Return the features of a node."""
        row = self.graph.rows(np.array([node]))
        dense = row if isinstance(row, Tensor) else row.to_dense()
        values: npt.NDArray[np.float32] = dense.cpu().float().numpy()[0]
        return values

    def changed_rows(self, node: int, changes: Sequence[Change]) -> Features:
        """Return the features of a node under each change, in the format of the graph."""
        rows = np.tile(self.row(node), (len(changes), 1))
        for row, change in zip(rows, changes, strict=True):
            at = list(change.features)
            row[at] = self.neutral[at]
        if isinstance(self.graph.features, SparseMatrix):
            return SparseMatrix.from_scipy(scipy.sparse.csr_array(rows), self.graph.dtype)
        return torch.from_numpy(rows).to(self.graph.dtype)

    def neighbors(self, nodes: Ints) -> Ints:
        """Return the nodes with an edge from or to some nodes, sorted."""
        near = [self.incoming[nodes].indices]
        if self.graph.directed:
            near.append(self.outgoing[nodes].indices)
        return np.unique(np.concatenate(near)).astype(np.int64)

    def ball(self, node: int, radius: int | None) -> Ints:
        """Return the nodes within ``radius`` edges of a node, sorted; None: all nodes."""
        key = (node, radius)
        if key not in self._balls:
            if radius is None:
                return np.arange(self.graph.num_nodes)
            inside = np.array([node], dtype=np.int64)
            for _ in range(radius):
                wider = np.union1d(inside, self.neighbors(inside))
                if len(wider) == len(inside):
                    break
                inside = wider
            self._balls[key] = inside
        return self._balls[key]

    def copies(
        self,
        node: int,
        changes: Sequence[Change],
        ball: Ints,
        features: Features,
        changed: Features,
    ) -> tuple[Graph, Tensor]:
        """Return a graph with one copy of a ball per change, and the node in each copy.

        One more node in each copy stands for everything outside: with its edges, the nodes on the
        border have the degrees that they have in the whole graph. It is too far from the node to
        matter otherwise.

        Parameters
        ----------
        node : int
            The node at the center.
        changes : sequence of Change
            The changes.
        ball : array of int
            The nodes of each copy, sorted.
        features : SparseMatrix or Tensor
            The prepared features of all nodes.
        changed : SparseMatrix or Tensor
            The prepared features of the node under each change.
        """
        size, width = len(ball), len(ball) + 1
        center = int(np.searchsorted(ball, node))
        inner = self.incoming[ball][:, ball].tocoo()
        target, source, weight = inner.row, inner.col, inner.data
        if not self.graph.directed:
            once = target < source
            target, source, weight = target[once], source[once], weight[once]
        edges, weights = [], []
        index = np.tile(np.r_[np.arange(size), size + len(changes)], (len(changes), 1))
        for place, change in enumerate(changes):
            stays = change.stays(node, ball)
            kept = stays[target] & stays[source]
            missing = self._outside(change, ball, stays, self.incoming)
            edges += [
                np.stack([source[kept], target[kept]]) + place * width,
                np.stack([missing[0], np.full(len(missing[0]), size)]) + place * width,
            ]
            weights += [weight[kept], missing[1]]
            if self.graph.directed:
                edges[-1] = edges[-1][::-1]  # from outside
                to, sums = self._outside(change, ball, stays, self.outgoing)
                edges.append(np.stack([to, np.full(len(to), size)]) + place * width)
                weights.append(sums)
            index[place, center] = size + place
        joined = np.concatenate(edges, axis=1).astype(np.int64)
        if not self.graph.directed:
            joined = np.sort(joined, axis=0)
        graph = Graph(
            _picked(features, changed, ball, index.ravel()),
            torch.from_numpy(joined),
            torch.full((len(changes) * width,), UNLABELED),
            self.graph.classes,
            weights=torch.from_numpy(np.concatenate(weights)),
            directed=self.graph.directed,
            name=self.graph.name,
        )
        return graph, torch.arange(len(changes)) * width + center

    def _outside(
        self,
        change: Change,
        ball: Ints,
        stays: npt.NDArray[np.bool_],
        matrix: scipy.sparse.csr_array,
    ) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Return the places in the ball with edges to nodes outside, and their total weight."""
        if change.kept is not None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        rows = matrix[ball]
        outside = ~np.isin(rows.indices, np.r_[ball, np.array(change.removed, dtype=np.int64)])
        totals = np.add.reduceat(np.r_[rows.data * outside, 0.0], rows.indptr[:-1])
        totals[np.diff(rows.indptr) == 0] = 0.0
        border = np.flatnonzero((totals > 0) & stays)
        return border, totals[border]


def _picked(features: Features, changed: Features, ball: Ints, index: Ints) -> Features:
    """Return rows of the ball, then of the changed node, then zeros, by index."""
    if isinstance(features, Tensor):
        assert isinstance(changed, Tensor)
        rows = features[torch.from_numpy(ball)]
        zeros = rows.new_zeros(1, rows.shape[1])
        return torch.cat([rows, changed.to(rows), zeros])[torch.from_numpy(index)]
    assert isinstance(changed, SparseMatrix)
    own = features.rows(torch.from_numpy(ball))[0].to_scipy()
    zeros = scipy.sparse.csr_array((1, own.shape[1]), dtype=own.dtype)
    stacked = scipy.sparse.vstack([own, changed.to_scipy(), zeros], format="csr")
    return SparseMatrix.from_scipy(stacked[index], features.dtype)
