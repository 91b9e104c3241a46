"""What some nodes see of a graph through a few neighbours in each layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.neighbors import Drawn, Integers
from everynode.models.receptive_field import Batch, Block
from everynode.sparse import Pattern, SparseMatrix


class Sampler:
    r"""Draws the surroundings of nodes, layer by layer.

    In each layer every node hears of itself and of at most ``fan_out`` of its neighbours, drawn anew without repetition, each counted
    :math:`|N_i| / \mathrm{fan\_out}` times. With the degrees of the whole graph in :math:`\tilde P`, the sum that a layer of GCN or GCNII
    takes is then on average, over the draws, the sum over all neighbours (GAT's softmax is a quotient of two such sums). With a fan-out
    of -1 it is that sum, and the logits are those of the whole graph.
    """

    def __init__(self, graph: Graph | DiskGraph):
        self.graph = graph
        # Each node's number in the batch in hand, or -1; kept, since filling it for every batch would take longer than the batch.
        self._number = np.full(graph.num_nodes, -1, dtype=np.int32)

    def batch(self, roots: Integers, fan_out: Sequence[int], rng: np.random.Generator) -> Batch:
        """The batch for the logits of some (distinct) nodes; ``fan_out``: of each layer, the last layer's first."""
        nodes, hops = self.surroundings(roots, fan_out, rng)
        return Batch(self.graph.rows(nodes), hops, self.graph.name)

    def surroundings(
        self, roots: Integers, fan_out: Sequence[int], rng: np.random.Generator
    ) -> tuple[Integers, tuple[Block, ...]]:
        """All nodes of the batch, the roots first, and the steps between them, the first layer's first."""
        nodes = roots
        self._number[roots] = np.arange(len(roots))
        steps: list[tuple[Drawn, Integers, tuple[int, int]]] = []
        for at_most in fan_out:
            drawn = self.graph.neighbours.draw(nodes, at_most, rng)
            fresh = np.unique(drawn.nodes[self._number[drawn.nodes] < 0])
            targets, sources = len(nodes), len(nodes) + len(fresh)
            self._number[fresh] = np.arange(targets, sources)
            nodes = np.concatenate([nodes, fresh])
            steps.append((drawn, self._number[drawn.nodes], (targets, sources)))
        self._number[nodes] = -1
        scale = torch.from_numpy(self.graph.neighbours.looped_degree[nodes] ** -0.5)
        hops = tuple(Block(_with_loops(*step), scale, self.graph.dtype) for step in reversed(steps))
        return nodes, hops


def _with_loops(drawn: Drawn, columns: Integers, shape: tuple[int, int]) -> SparseMatrix:
    """The drawn part of the adjacency, and before each row's entries its self-loop."""
    rows = np.arange(shape[0])
    loops = drawn.crow[:-1] + rows  # where they stand
    others = np.ones(len(columns) + shape[0], dtype=bool)
    others[loops] = False
    col, values = np.empty(len(others), dtype=np.int32), np.ones(len(others))
    col[loops], col[others] = rows, columns
    values[others] = drawn.weight
    crow = drawn.crow + np.arange(shape[0] + 1)
    return SparseMatrix(
        Pattern(torch.from_numpy(crow), torch.from_numpy(col), shape), torch.from_numpy(values)
    )
