"""Hops: what a layer needs to know of the graph, for all nodes or only for those that some nodes can see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.sparse import Pattern, SparseMatrix


class Hop:
    """One step of message passing over a graph: from all nodes to all nodes, or from some ``sources`` to some ``targets``.

    ``sources`` and ``targets`` are node indices, the sources sorted and with all neighbours of the targets among them; ``origins``
    are the nodes that the opening layer was applied to.
    """

    def __init__(self, graph: Graph, sources: Tensor | None = None, targets: Tensor | None = None, origins: Tensor | None = None):
        self.graph, self.sources, self.nodes = graph, sources, targets
        #: Where the targets stand among the sources, and among the opening layer's nodes; None if they are the same.
        self.targets: Tensor | None = None
        self.origins: Tensor | None = None
        self.total = None if origins is None else len(origins)
        if sources is not None and targets is not None and origins is not None:
            self.targets, self.origins = torch.searchsorted(sources, targets), torch.searchsorted(origins, targets)

    @cached_property
    def _part(self) -> tuple[Pattern, Tensor]:
        """The targets' rows and sources' columns of the adjacency with self-loops, and which of its entries these are."""
        assert self.sources is not None  # only asked of a part
        assert self.nodes is not None
        whole = self.graph.looped_adjacency.pattern
        entries, crow = rows_of(whole, self.nodes)
        column = torch.searchsorted(self.sources, whole.column[entries])
        return Pattern(crow, column, (len(self.nodes), len(self.sources))), entries

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        """:math:`\\tilde P`, or its rows and columns for this step."""
        return self._restrict(self.graph.gcn_operator)

    @cached_property
    def looped_adjacency(self) -> SparseMatrix:
        """:math:`\\tilde A`, or its rows and columns for this step."""
        return self._restrict(self.graph.looped_adjacency)

    @cached_property
    def choice(self) -> SparseMatrix:
        """The matrix that picks the targets out of the opening layer's nodes, of a step between some nodes."""
        assert self.origins is not None
        assert self.total is not None
        count = len(self.origins)
        pattern = Pattern(torch.arange(count + 1, device=self.origins.device), self.origins, (count, self.total))
        return SparseMatrix(pattern, torch.ones(count, dtype=self.graph.dtype, device=self.origins.device))

    def _restrict(self, matrix: SparseMatrix) -> SparseMatrix:
        if self.sources is None:
            return matrix
        pattern, entries = self._part
        return SparseMatrix(pattern, matrix.values[entries])


@dataclass(frozen=True)
class Field:
    """The receptive field of some nodes: all that their logits depend on after so many layers."""

    #: The nodes whose features are needed.
    sources: Tensor
    #: By layer: the nodes whose values go into it.
    inputs: tuple[Tensor, ...]
    #: The steps, one per layer, from ``sources`` to the nodes in question.
    hops: tuple[Hop, ...]
    #: The share of the graph's node updates that this takes, over all layers.
    cost: float

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, layers: int) -> Field:
        """The field of ``nodes`` under ``layers`` layers of message passing."""
        pattern = graph.looped_adjacency.pattern
        reached = [nodes]
        for _ in range(layers):
            reached.append(torch.unique(pattern.column[rows_of(pattern, reached[-1])[0]]))
        reached.reverse()
        hops = tuple(Hop(graph, a, b, reached[0]) for a, b in pairwise(reached))
        cost = sum(len(part) for part in reached) / (max(graph.num_nodes, 1) * len(reached))
        return cls(reached[0], tuple(reached[:-1]), hops, cost)


def rows_of(pattern: Pattern, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of some rows of a pattern, and the row pointers of the pattern that has only these rows."""
    start, end = pattern.crow[:-1].long()[rows], pattern.crow[1:].long()[rows]
    counts = end - start
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = torch.arange(int(crow[-1]), device=rows.device) + torch.repeat_interleave(start - crow[:-1], counts)
    return entries, crow
