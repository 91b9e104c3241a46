"""Sampled subgraphs: the sample that a step's terms see, and the neighbors that its model sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.neighbors import Drawn, Integers
from everynode.graph.sample import Sample
from everynode.models.receptive_field import Batch, Block
from everynode.sparse import Pattern, SparseMatrix
from everynode.training.mini_batch.plan import Plan, Seeds


def draw_sample(
    graph: Graph | DiskGraph,
    plan: Plan,
    seeds: Seeds,
    tv_edges: int,
    rng: np.random.Generator,
    rank: int = 0,
    ranks: int = 1,
) -> Sample:
    """Draw the sample of one process; the samples of all processes add up to the step.

    The rows are the training nodes among the seeds, then the other seeds, then the other ends of
    the drawn edges. The sample has no features yet: see :meth:`Sample.with_features`.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph.
    plan : Plan
        The plan of the seeds, which says how many nodes a seed stands for.
    seeds : Seeds
        The seeds of the step, of all processes together.
    tv_edges : int
        The number of edges drawn for each seed (0: none, -1: all).
    rng : Generator
        Draws the edges.
    rank, ranks : int
        The process, and the number of processes.
    """
    # A contiguous piece of each: neighbors that stand together stay together.
    bounds = [
        np.linspace(0, len(part), ranks + 1).astype(np.int64)[rank : rank + 2] for part in seeds
    ]
    own = np.concatenate([part[a:b] for part, (a, b) in zip(seeds, bounds, strict=True)])
    start, end = bounds[0].tolist()
    num_labeled = end - start
    stands_for = np.full(len(own), plan.of_others)
    stands_for[:num_labeled] = plan.of_labeled
    drawn = graph.neighbors.draw(own, tv_edges, rng)
    degree = np.diff(drawn.crow)
    # Each edge is met from both of its ends: hence the half.
    edge_share = drawn.weight * np.repeat(stands_for, degree) / 2.0 / max(graph.num_edges, 1)
    nodes = np.concatenate([own, np.setdiff1d(drawn.nodes, own)])
    order = np.argsort(nodes)
    ends = order[np.searchsorted(nodes, drawn.nodes, sorter=order)]
    edges = np.stack([np.repeat(np.arange(len(own)), degree), ends])
    node_share = np.zeros(len(nodes))
    node_share[: len(own)] = stands_for / graph.num_nodes
    all_labeled = torch.from_numpy(seeds.labeled)
    all_labels = graph.labels[all_labeled]
    return Sample(
        nodes=torch.from_numpy(nodes),
        node_share=torch.from_numpy(node_share),
        labeled=torch.arange(num_labeled),
        labels=all_labels[start:end],
        label_share=plan.of_labeled / max(len(plan.train), 1),
        drawn_edges=torch.from_numpy(edges) if tv_edges else None,
        edge_share=torch.from_numpy(edge_share),
        scale=torch.from_numpy(graph.neighbors.looped_degree[nodes] ** -0.5),
        all_labeled=all_labeled,
        all_labels=all_labels,
        first_labeled=start,
        coverage=(len(seeds.labeled) + len(seeds.others)) / max(graph.num_nodes, 1),
    )


class Sampler:
    r"""Draws the neighborhoods of nodes, layer by layer.

    In each layer every node hears itself and at most ``fan_out`` of its neighbors, drawn at every
    step without repetition, each counted :math:`|N_i| / \mathrm{fan\_out}` times. With the degrees
    of the whole graph in :math:`\tilde P`, the sum in a layer of GCN or GCNII is then on average
    the sum over all neighbors (GAT's softmax is a quotient of two such sums). With a fan-out of -1
    it is that sum, and the logits are those of the full graph.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph.
    """

    def __init__(self, graph: Graph | DiskGraph):
        self.graph = graph
        # Each node's row in the batch, or -1; kept, since refilling it is slow.
        self._row = np.full(graph.num_nodes, -1, dtype=np.int32)

    def batch(self, roots: Integers, fan_out: Sequence[int], rng: np.random.Generator) -> Batch:
        """Draw the batch for the logits of some distinct nodes.

        ``fan_out``: of each layer, the last layer's first.
        """
        nodes, hops = self.surroundings(roots, fan_out, rng)
        return Batch(self.graph.rows(nodes), hops, self.graph.name)

    def surroundings(
        self, roots: Integers, fan_out: Sequence[int], rng: np.random.Generator
    ) -> tuple[Integers, tuple[Block, ...]]:
        """Draw all nodes of a batch, the roots first, and the layers between them in order."""
        nodes = roots
        self._row[roots] = np.arange(len(roots))
        steps: list[tuple[Drawn, Integers, tuple[int, int]]] = []
        for at_most in fan_out:
            drawn = self.graph.neighbors.draw(nodes, at_most, rng)
            fresh = np.unique(drawn.nodes[self._row[drawn.nodes] < 0])
            targets, sources = len(nodes), len(nodes) + len(fresh)
            self._row[fresh] = np.arange(targets, sources)
            nodes = np.concatenate([nodes, fresh])
            steps.append((drawn, self._row[drawn.nodes], (targets, sources)))
        self._row[nodes] = -1
        scale = torch.from_numpy(self.graph.neighbors.looped_degree[nodes] ** -0.5)
        hops = tuple(Block(_with_loops(*step), scale, self.graph.dtype) for step in reversed(steps))
        return nodes, hops


def _with_loops(drawn: Drawn, columns: Integers, shape: tuple[int, int]) -> SparseMatrix:
    """Return the drawn part of the adjacency, with a self-loop before the entries of each row."""
    rows = np.arange(shape[0])
    loops = drawn.crow[:-1] + rows  # their positions
    is_other = np.ones(len(columns) + shape[0], dtype=bool)
    is_other[loops] = False
    col, values = np.empty(len(is_other), dtype=np.int32), np.ones(len(is_other))
    col[loops], col[is_other] = rows, columns
    values[is_other] = drawn.weight
    crow = drawn.crow + np.arange(shape[0] + 1)
    return SparseMatrix(
        Pattern(torch.from_numpy(crow), torch.from_numpy(col), shape), torch.from_numpy(values)
    )
