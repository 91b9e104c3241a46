"""What one process works on in one step: seeds, their edges, and what each counts for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.neighbors import Integers, Reals
from everynode.training.mini_batch.plan import Plan, Seeds


@dataclass(frozen=True, eq=False)
class Part:
    """One process's part of a step. The parts of all processes add up to the step."""

    #: The nodes whose logits are asked for: the training nodes, then the other seeds, then nodes that an edge joins to a seed.
    roots: Integers
    #: :math:`1 / \\sqrt{d + 1}` of these, with the degrees of the whole graph.
    scale: Reals
    #: Of the training nodes.
    labels: Tensor
    #: By how much a training node's cross-entropy counts.
    of_label: float
    #: By how much each root counts in a mean over all nodes.
    share: Tensor
    #: Pairs of roots (2 x e), and by how much each counts in a sum over all edges.
    edges: Integers
    edge_weight: Reals
    #: The training nodes of all processes, as the graph numbers them, and where among them those of this process start.
    together: Integers
    start: int
    #: The share of the graph's nodes that are seeds of this step.
    reach: float


def draw_part(
    graph: Graph | DiskGraph,
    plan: Plan,
    seeds: Seeds,
    tv_edges: int,
    rng: np.random.Generator,
    rank: int = 0,
    ranks: int = 1,
) -> Part:
    """The part of process ``rank`` of ``ranks``; ``tv_edges``: how many edges of each seed TV looks at (0: none, -1: all)."""
    # A piece of each, not every so-manieth: neighbours that stand together stay together.
    bounds = [
        np.linspace(0, len(part), ranks + 1).astype(np.int64)[rank : rank + 2] for part in seeds
    ]
    mine = np.concatenate([part[a:b] for part, (a, b) in zip(seeds, bounds, strict=True)])
    start, end = bounds[0].tolist()
    labelled = end - start
    counts_for = np.full(len(mine), plan.of_others)
    counts_for[:labelled] = plan.of_labelled
    # Each edge is met from both of its ends: hence the half.
    drawn = graph.neighbours.draw(mine, tv_edges, rng)
    number = np.diff(drawn.crow)
    edge_weight = drawn.weight * np.repeat(counts_for, number) / 2.0
    roots = np.concatenate([mine, np.setdiff1d(drawn.nodes, mine)])
    order = np.argsort(roots)
    ends = order[np.searchsorted(roots, drawn.nodes, sorter=order)]
    edges = np.stack([np.repeat(np.arange(len(mine)), number), ends])
    share = np.zeros(len(roots))
    share[: len(mine)] = counts_for / graph.num_nodes
    return Part(
        roots,
        graph.neighbours.looped_degree[roots] ** -0.5,
        graph.labels[torch.from_numpy(mine[:labelled])],
        plan.of_labelled / max(len(plan.train), 1),
        torch.from_numpy(share),
        edges,
        edge_weight,
        seeds.labelled,
        start,
        (len(seeds.labelled) + len(seeds.others)) / max(graph.num_nodes, 1),
    )
