"""Receptive fields and sampled batches: the parts of a graph that the logits of some nodes need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from everynode.graph.graph import Graph
from everynode.graph.operators import neighbor_means, normalize_rows
from everynode.models.known_gradient import times
from everynode.sparse import Pattern, SparseMatrix, rows_of

#: A larger share of the nodes counts as all nodes, which saves the selection.
ALL_ABOVE = 0.6


class Hop:
    """The edges of one layer of message passing, from source nodes to target nodes.

    Parameters
    ----------
    graph : Graph or Block
        Where the edges come from.
    sources : Tensor, optional
        Sorted node indices that include all neighbors of the targets. None: all nodes.
    targets : Tensor, optional
        Node indices. None: all nodes.
    origins : Tensor, optional
        The nodes that the opening layer was applied to. None: all nodes.
    entries : tuple of Tensor, optional
        The entries of A + I in the rows of the targets, and their row pointers, if they are known.

    Attributes
    ----------
    nodes : Tensor or None
        The ``targets`` as node indices.
    targets, origins : Tensor or None
        Positions of the targets among the sources, and among the nodes of the opening layer.
        None: the same nodes.
    num_origins : int
        The number of nodes that the opening layer was applied to.
    """

    def __init__(
        self,
        graph: Graph | Block,
        sources: Tensor | None = None,
        targets: Tensor | None = None,
        origins: Tensor | None = None,
        entries: tuple[Tensor, Tensor] | None = None,
    ):
        self.graph, self.sources, self.nodes, self.entries = graph, sources, targets, entries
        self.targets = _positions(targets, sources)
        self.origins = _positions(targets, origins)
        self.num_origins = graph.num_nodes if origins is None else len(origins)

    @cached_property
    def _part(self) -> tuple[Pattern, Tensor]:
        """The rows of the targets and columns of the sources of A + I, and their entries there."""
        assert self.nodes is not None  # only a part of a graph calls this
        whole = self.graph.looped_adjacency.pattern
        entries, crow = rows_of(whole, self.nodes) if self.entries is None else self.entries
        column, num_sources = whole.col.index_select(0, entries), whole.shape[1]
        if self.sources is not None:
            num_sources = len(self.sources)
            place = torch.empty(whole.shape[1], dtype=torch.int32, device=column.device)
            place[self.sources] = torch.arange(num_sources, dtype=torch.int32, device=column.device)
            column = place.index_select(0, column)
        return Pattern(crow, column, (len(self.nodes), num_sources)), entries

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        r""":math:`\tilde P`, or its rows and columns for this hop."""
        return self._restrict(self.graph.gcn_operator)

    @cached_property
    def neighbor_operator(self) -> SparseMatrix:
        r""":math:`D^{-1} A`, or its rows and columns for this hop."""
        return self._restrict(self.graph.neighbor_operator)

    @cached_property
    def looped_adjacency(self) -> SparseMatrix:
        r""":math:`\tilde A`, or its rows and columns for this hop."""
        return self._restrict(self.graph.looped_adjacency)

    @cached_property
    def sums(self) -> tuple[SparseMatrix, SparseMatrix]:
        r"""Matrices that sum the entries of :math:`\tilde A` by target and by source."""
        return self.looped_adjacency.pattern.sums(self.graph.dtype)

    def target_rows(self, f: Tensor) -> Tensor:
        """Select the rows of the targets from one row per source."""
        return f if self.targets is None else f.index_select(0, self.targets)

    def opening_rows(self, f_0: Tensor) -> Tensor:
        """Select the rows of the targets from the output of the opening layer."""
        return f_0 if self.origins is None else f_0.index_select(0, self.origins)

    def part(
        self,
        sources: Tensor | None,
        targets: Tensor | None,
        origins: Tensor | None,
        entries: tuple[Tensor, Tensor] | None = None,
    ) -> Hop:
        """Return the same hop to some targets only (None: to all of them)."""
        return self if targets is None else Hop(self.graph, sources, targets, origins, entries)

    def pick(self, values: Tensor) -> Tensor:
        """Select this hop's entries from one value per entry of the graph's A + I."""
        return values if self.nodes is None else values.index_select(0, self._part[1])

    def spread(self, values: Tensor) -> Tensor:
        """Return the values in the entries of the graph's A + I; zero outside this hop."""
        if self.nodes is None:
            return values
        zeros = values.new_zeros(self.graph.looped_adjacency.pattern.nnz)
        return zeros.index_copy_(0, self._part[1], values)

    def _restrict(self, matrix: SparseMatrix) -> SparseMatrix:
        if self.nodes is None:
            return matrix
        return SparseMatrix(self._part[0], self.pick(matrix.values), once=True)


class Block(Hop):
    r"""A hop of a sampled batch, from its first n nodes to its first m nodes.

    A batch numbers its nodes in the order of sampling: first the roots, then the other nodes that
    the last layer reads, and so on. So a node keeps its number from hop to hop.

    Parameters
    ----------
    looped_adjacency : SparseMatrix
        m x n entries of :math:`\tilde A`, weighted for the sampling.
    scale : Tensor
        :math:`1 / \sqrt{d_i + 1}` of all nodes of the batch, with the degrees of the whole graph.
    dtype : torch.dtype
        Type of the features.

    Attributes
    ----------
    num_nodes : int
        The number of nodes of the batch.
    """

    def __init__(self, looped_adjacency: SparseMatrix, scale: Tensor, dtype: torch.dtype):
        targets, sources = looped_adjacency.shape
        first = torch.arange(targets, device=scale.device)
        self.sources, self.nodes, self.entries = None, None, None
        self.targets = None if targets == sources else first
        self.origins = None if targets == len(scale) else first
        self.num_nodes: int = len(scale)
        self.num_origins = self.num_nodes
        self.dtype, self.scale = dtype, scale
        # Fills the cached property of Hop.
        self.__dict__["looped_adjacency"] = looped_adjacency

    @property
    def graph(self) -> Block:  # type: ignore[override]  # an attribute would refer to itself
        """The block itself: it holds all edges of its hop."""
        return self

    def to(self, device: torch.device) -> Block:
        """Return the block on another device."""
        return Block(self.looped_adjacency.to(device), self.scale.to(device), self.dtype)

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        r"""The entries of :math:`\tilde P`, with the degrees of the whole graph."""
        looped = self.looped_adjacency
        values = looped.values * self.scale[looped.pattern.row] * self.scale[looped.pattern.column]
        return SparseMatrix(looped.pattern, values.to(self.dtype))

    @cached_property
    def neighbor_operator(self) -> SparseMatrix:
        """The mean over the sampled neighbors of each target."""
        return neighbor_means(self.looped_adjacency, self.dtype)


@dataclass(frozen=True, eq=False)
class Batch:
    """A sampled subgraph. A model takes it in place of a graph and returns the roots' logits.

    Attributes
    ----------
    features : SparseMatrix or Tensor
        Features of all nodes of the batch, the roots first.
    hops : tuple of Block
        One for each layer, the first layer first.
    name : str
        Name of the graph, for messages.
    """

    features: SparseMatrix | Tensor
    hops: tuple[Block, ...]
    name: str

    @property
    def num_features(self) -> int:
        """Number of feature columns."""
        return self.features.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the features."""
        return self.features.dtype

    @cached_property
    def normalized_features(self) -> SparseMatrix | Tensor:
        """The features, each row divided by its sum of absolute values."""
        return normalize_rows(self.features)

    def to(self, device: torch.device) -> Batch:
        """Return the batch on another device."""
        hops = tuple(hop.to(device) for hop in self.hops)
        return Batch(self.features.to(device), hops, self.name)


class Level:
    """The nodes between two hops of a receptive field.

    Parameters
    ----------
    total : int
        Number of nodes of the graph.
    dtype : torch.dtype
        Type of the features.
    nodes : Tensor, optional
        The nodes of this level. None: all nodes.
    """

    def __init__(self, total: int, dtype: torch.dtype, nodes: Tensor | None):
        self.total, self.dtype, self.nodes = total, dtype, nodes

    def __len__(self) -> int:
        return self.total if self.nodes is None else len(self.nodes)

    def pick(self, x: Tensor) -> Tensor:
        """Select the rows of this level's nodes from one row per node of the graph."""
        return x if self.nodes is None else x.index_select(0, self.nodes)

    def spread(self, x: Tensor, factor: float) -> Tensor:
        """Return ``factor * x`` in the rows of this level's nodes; zero in all other rows."""
        if self.nodes is None:
            return times(x, factor)
        zeros = x.new_zeros(self.total, *x.shape[1:])
        return zeros.index_copy_(0, self.nodes, times(x, factor))


@dataclass(frozen=True)
class ReceptiveField:
    """The part of a graph that the logits of some nodes depend on.

    Attributes
    ----------
    levels : tuple of Level
        The nodes before each layer, and last the nodes themselves.
    hops : tuple of Hop
        The edges between the levels, one hop per layer.
    cost : float
        The share of the node updates of the whole graph, over all layers.
    """

    levels: tuple[Level, ...]
    hops: tuple[Hop, ...]
    cost: float

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, num_layers: int) -> Self:
        """Return the receptive field of ``nodes`` under ``num_layers`` layers."""
        return cls.within([Hop(graph)] * num_layers, nodes)

    @classmethod
    def within(cls, hops: Sequence[Hop], nodes: Tensor) -> Self:
        """Return the receptive field of ``nodes`` under these hops, one per layer."""
        by_level: list[Tensor | None] = [nodes]
        current: Tensor | None = nodes
        totals = [hops[-1].looped_adjacency.shape[0]]
        entries: list[tuple[Tensor, Tensor] | None] = []
        for hop in reversed(hops):
            pattern = hop.looped_adjacency.pattern
            entries.append(None if current is None else rows_of(pattern, current))
            if entries[-1] is not None:
                reached = torch.zeros(pattern.shape[1], dtype=torch.bool, device=nodes.device)
                reached[pattern.col.index_select(0, entries[-1][0])] = True
                current = reached.nonzero()[:, 0]
                current = None if len(current) > ALL_ABOVE * pattern.shape[1] else current
            by_level.append(current)
            totals.append(pattern.shape[1])
        by_level.reverse()
        totals.reverse()
        entries.reverse()
        dtype = hops[0].graph.dtype
        levels = tuple(Level(n, dtype, part) for n, part in zip(totals, by_level, strict=True))
        parts = tuple(
            hop.part(sources, targets, by_level[0], known)
            for hop, (sources, targets), known in zip(
                hops, pairwise(by_level), entries, strict=True
            )
        )
        return cls(levels, parts, sum(len(level) for level in levels) / max(sum(totals), 1))


def _positions(nodes: Tensor | None, among: Tensor | None) -> Tensor | None:
    """Return the positions of nodes among other (sorted) nodes; None if they are the same."""
    if nodes is None or among is None:
        return nodes
    return None if torch.equal(nodes, among) else torch.searchsorted(among, nodes)
