"""Hops: what a layer needs to know of the graph, for all nodes or only for those that some nodes can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from everynode.graph.graph import Graph, normalize_rows
from everynode.models.known_gradient import times
from everynode.sparse import Pattern, SparseMatrix, rows_of

#: Nodes that make up more than this share of a graph are taken to be all of it: then there is nothing to pick and nothing to spread.
ALL_ABOVE = 0.8


class Hop:
    """One step of message passing over a graph: from all nodes (None) or some ``sources`` to all nodes or some ``targets``.

    ``sources`` and ``targets`` are node indices, the sources sorted and with all neighbours of the targets among them; ``origins``
    are the nodes that the opening layer was applied to.
    """

    def __init__(
        self,
        graph: Graph | Block,
        sources: Tensor | None = None,
        targets: Tensor | None = None,
        origins: Tensor | None = None,
    ):
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
        return Pattern(
            crow, torch.searchsorted(self.sources, column), (len(self.nodes), len(self.sources))
        ), entries

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

    def part(self, sources: Tensor | None, targets: Tensor | None, origins: Tensor | None) -> Hop:
        """The same step to some targets only (None: to all of them)."""
        return self if targets is None else Hop(self.graph, sources, targets, origins)

    def pick(self, values: Tensor) -> Tensor:
        """Of values for the entries of the graph's adjacency with self-loops, those of this step."""
        return values if self.nodes is None else values.index_select(0, self._part[1])

    def spread(self, values: Tensor) -> Tensor:
        """The opposite of :meth:`pick`, zero elsewhere."""
        if self.nodes is None:
            return values
        return values.new_zeros(self.graph.looped_adjacency.pattern.nnz).index_copy_(
            0, self._part[1], values
        )

    def _restrict(self, matrix: SparseMatrix) -> SparseMatrix:
        return (
            matrix if self.nodes is None else SparseMatrix(self._part[0], self.pick(matrix.values))
        )


class Block(Hop):
    """One step of message passing in a batch, from its first n nodes to its first m.

    The nodes of a batch are numbered in the order in which they were found: first those whose logits are asked for, then whatever else
    the last layer sees, and so on. So a node has the same number before and after every step.
    """

    def __init__(self, looped_adjacency: SparseMatrix, scale: Tensor, dtype: torch.dtype):
        """``looped_adjacency``: m x n, maybe drawn and weighted accordingly; ``scale``: :math:`1 / \\sqrt{d_i + 1}` of all nodes."""
        targets, sources = looped_adjacency.shape
        everyone = torch.arange(targets, device=scale.device)
        self.sources, self.nodes = None, None
        self.targets = None if targets == sources else everyone
        self.origins = None if targets == len(scale) else everyone
        self.num_nodes: int = len(scale)
        self.total = self.num_nodes
        self.dtype, self.scale = dtype, scale
        self.__dict__["looped_adjacency"] = (
            looped_adjacency  # what a Hop would work out from its graph
        )

    @property
    def graph(self) -> Block:  # type: ignore[override]  # of a Hop it is an attribute; here that would be a circle
        """Itself: a block is the whole of what its steps see."""
        return self

    def to(self, device: torch.device) -> Block:
        """The same on another device."""
        return Block(self.looped_adjacency.to(device), self.scale.to(device), self.dtype)

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        """The rows and columns of :math:`\\tilde P` with the degrees of the whole graph."""
        looped = self.looped_adjacency
        values = looped.values * self.scale[looped.pattern.row] * self.scale[looped.pattern.column]
        return SparseMatrix(looped.pattern, values.to(self.dtype))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes of a graph and all that their logits are made of. A network takes it in place of a graph, for these nodes' logits."""

    #: Of all nodes that the opening layer is applied to; the nodes in question come first.
    features: SparseMatrix | Tensor
    #: One for each layer.
    hops: tuple[Block, ...]
    name: str

    @property
    def num_features(self) -> int:
        """c_in."""
        return self.features.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features and of everything computed from them."""
        return self.features.dtype

    @cached_property
    def normalized_features(self) -> SparseMatrix | Tensor:
        """Each node's features divided by their sum of absolute values."""
        return normalize_rows(self.features)

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(
            self.features.to(device), tuple(hop.to(device) for hop in self.hops), self.name
        )


class Level:
    """The nodes between two steps of a receptive field: all of the ``total`` there are (None) or some."""

    def __init__(self, total: int, dtype: torch.dtype, nodes: Tensor | None):
        self.total, self.dtype, self.nodes = total, dtype, nodes

    def __len__(self) -> int:
        return self.total if self.nodes is None else len(self.nodes)

    @cached_property
    def _choice(self) -> SparseMatrix:
        assert self.nodes is not None
        return choice(self.nodes, self.total, self.dtype)

    def pick(self, x: Tensor) -> Tensor:
        """Of one row for each node of the graph, those of these nodes."""
        return x if self.nodes is None else x.index_select(0, self.nodes)

    def spread(self, x: Tensor, factor: float) -> Tensor:
        """``factor * x`` in the rows of these nodes, and zero in those of the graph's other nodes: the opposite of :meth:`pick`."""
        return times(x, factor) if self.nodes is None else self._choice.transpose.product(x, factor)


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
    def of(cls, graph: Graph, nodes: Tensor, num_layers: int) -> Self:
        """The field of ``nodes`` under ``layers`` layers of message passing."""
        return cls.within([Hop(graph)] * num_layers, nodes)

    @classmethod
    def within(cls, hops: Sequence[Hop], nodes: Tensor) -> Self:
        """The field of some ``nodes`` under these steps, one for each layer."""
        reached: list[Tensor | None] = [nodes]
        last: Tensor | None = nodes
        totals = [hops[-1].looped_adjacency.shape[0]]
        for hop in reversed(hops):
            pattern = hop.looped_adjacency.pattern
            if last is not None:
                last = torch.unique(pattern.column[rows_of(pattern, last)[0]])
                last = None if len(last) > ALL_ABOVE * pattern.shape[1] else last
            reached.append(last)
            totals.append(pattern.shape[1])
        reached.reverse()
        totals.reverse()
        dtype = hops[0].graph.dtype
        levels = tuple(
            Level(total, dtype, part) for total, part in zip(totals, reached, strict=True)
        )
        parts = tuple(
            hop.part(a, b, reached[0]) for hop, (a, b) in zip(hops, pairwise(reached), strict=True)
        )
        return cls(levels, parts, sum(len(level) for level in levels) / max(sum(totals), 1))


def _positions(nodes: Tensor | None, among: Tensor | None) -> Tensor | None:
    """Where some nodes stand among (sorted) others; None if they are the same."""
    if nodes is None or among is None:
        return nodes
    return None if torch.equal(nodes, among) else torch.searchsorted(among, nodes)


def choice(rows: Tensor, total: int, dtype: torch.dtype) -> SparseMatrix:
    """The matrix that picks some rows out of ``total``."""
    pattern = Pattern(torch.arange(len(rows) + 1, device=rows.device), rows, (len(rows), total))
    return SparseMatrix(pattern, torch.ones(len(rows), dtype=dtype, device=rows.device))
