"""Hops: what a layer needs to know of the graph, for all nodes or only for those that some nodes can see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.sparse import Pattern, SparseMatrix

#: Nodes that make up more than this share of a graph are taken to be all of it: then there is nothing to pick and nothing to spread.
ALL_ABOVE = 0.8


class Hop:
    """One step of message passing over a graph: from all nodes (None) or some ``sources`` to all nodes or some ``targets``.

    ``sources`` and ``targets`` are node indices, the sources sorted and with all neighbours of the targets among them; ``origins``
    are the nodes that the opening layer was applied to.
    """

    def __init__(self, graph: Graph, sources: Tensor | None = None, targets: Tensor | None = None, origins: Tensor | None = None):
        self.graph, self.sources, self.nodes = graph, sources, targets
        #: Where the targets stand among the sources, and among the opening layer's nodes; None if they are the same.
        self.targets = _positions(targets, sources)
        self.origins = _positions(targets, origins)
        self.total = graph.num_nodes if origins is None else len(origins)

    @cached_property
    def _part(self) -> tuple[Pattern, Tensor]:
        """The targets' rows and sources' columns of the adjacency with self-loops, and which of its entries these are."""
        assert self.nodes is not None  # only asked of a part
        whole = self.graph.looped_adjacency.pattern
        entries, crow = rows_of(whole, self.nodes)
        column = whole.column[entries]
        if self.sources is None:
            return Pattern(crow, column, (len(self.nodes), whole.shape[1])), entries
        return Pattern(crow, torch.searchsorted(self.sources, column), (len(self.nodes), len(self.sources))), entries

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        """:math:`\\tilde P`, or its rows and columns for this step."""
        return self._restrict(self.graph.gcn_operator)

    @cached_property
    def looped_adjacency(self) -> SparseMatrix:
        """:math:`\\tilde A`, or its rows and columns for this step."""
        return self._restrict(self.graph.looped_adjacency)

    @cached_property
    def sums(self) -> tuple[SparseMatrix, SparseMatrix]:
        """What adds up numbers, one for each entry of :math:`\\tilde A`, by target and by source."""
        return self.looped_adjacency.pattern.sums(self.graph.dtype)

    @cached_property
    def choice(self) -> SparseMatrix:
        """The matrix that picks the targets out of the opening layer's nodes, where they are not the same."""
        assert self.origins is not None
        return choice(self.origins, self.total, self.graph.dtype)

    def pick(self, values: Tensor) -> Tensor:
        """Of values for the entries of the graph's adjacency with self-loops, those of this step."""
        return values if self.nodes is None else values.index_select(0, self._part[1])

    def spread(self, values: Tensor) -> Tensor:
        """The opposite of :meth:`pick`, zero elsewhere."""
        if self.nodes is None:
            return values
        return values.new_zeros(self.graph.looped_adjacency.pattern.nnz).index_copy_(0, self._part[1], values)

    def _restrict(self, matrix: SparseMatrix) -> SparseMatrix:
        return matrix if self.nodes is None else SparseMatrix(self._part[0], self.pick(matrix.values))


class Level:
    """The nodes between two steps of a receptive field: all of the graph's (None) or some."""

    def __init__(self, graph: Graph, nodes: Tensor | None):
        self.graph, self.nodes = graph, nodes

    def __len__(self) -> int:
        return self.graph.num_nodes if self.nodes is None else len(self.nodes)

    @cached_property
    def _choice(self) -> SparseMatrix:
        assert self.nodes is not None
        return choice(self.nodes, self.graph.num_nodes, self.graph.dtype)

    def pick(self, x: Tensor) -> Tensor:
        """Of one row for each node of the graph, those of these nodes."""
        return x if self.nodes is None else x.index_select(0, self.nodes)

    def spread(self, x: Tensor, factor: Tensor) -> Tensor:
        """``factor * x`` in the rows of these nodes, and zero in those of the graph's other nodes: the opposite of :meth:`pick`."""
        return x * factor if self.nodes is None else self._choice.transpose.product(x, factor.item())


@dataclass(frozen=True)
class Field:
    """The receptive field of some nodes: all that their logits depend on after so many layers."""

    #: What the opening layer is applied to, what comes out of each layer but the last, and the nodes in question.
    levels: tuple[Level, ...]
    #: The steps between the levels, one per layer.
    hops: tuple[Hop, ...]
    #: The share of the graph's node updates that this takes, over all layers.
    cost: float

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, layers: int) -> Field:
        """The field of ``nodes`` under ``layers`` layers of message passing."""
        pattern = graph.looped_adjacency.pattern
        reached: list[Tensor | None] = [nodes]
        last: Tensor | None = nodes
        for _ in range(layers):
            if last is not None:
                last = torch.unique(pattern.column[rows_of(pattern, last)[0]])
                last = None if len(last) > ALL_ABOVE * graph.num_nodes else last
            reached.append(last)
        reached.reverse()
        levels = tuple(Level(graph, part) for part in reached)
        hops = tuple(Hop(graph, a, b, reached[0]) for a, b in pairwise(reached))
        return cls(levels, hops, sum(len(level) for level in levels) / (max(graph.num_nodes, 1) * len(levels)))


def _positions(nodes: Tensor | None, among: Tensor | None) -> Tensor | None:
    """Where some nodes stand among (sorted) others; None if they are the same."""
    if nodes is None or among is None:
        return nodes
    return None if torch.equal(nodes, among) else torch.searchsorted(among, nodes)


def choice(rows: Tensor, total: int, dtype: torch.dtype) -> SparseMatrix:
    """The matrix that picks some rows out of ``total``."""
    pattern = Pattern(torch.arange(len(rows) + 1, device=rows.device), rows, (len(rows), total))
    return SparseMatrix(pattern, torch.ones(len(rows), dtype=dtype, device=rows.device))


def rows_of(pattern: Pattern, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of some rows of a pattern, and the row pointers of the pattern that has only these rows."""
    start, end = pattern.crow[:-1].long()[rows], pattern.crow[1:].long()[rows]
    counts = end - start
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = torch.arange(int(crow[-1]), device=rows.device) + torch.repeat_interleave(start - crow[:-1], counts)
    return entries, crow
