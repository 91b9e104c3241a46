"""Neighbor replacement: a graph whose edges end a hop further, for one training pass (NASA)."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from everynode.graph.drop_edge import OF_FEATURES
from everynode.graph.graph import Graph


def replace_edges(graph: Graph, share: float) -> Graph:
    r"""Return the graph with neighbors replaced by neighbors of these neighbors.

    From `Regularizing Graph Neural Networks via Consistency-Diversity Graph Augmentations
    <https://ojs.aaai.org/index.php/AAAI/article/view/20307>`_ (NASA, Bo et al. 2022):

    .. math:: (u, v) \to (u, w), \qquad w \sim \mathrm{Uniform}(N_v), \qquad
              v \in N_u \text{ with probability } p

    Each arc is drawn by itself, as with the authors: an undirected edge stays if neither of its
    directions is drawn, and each drawn direction adds the edge from its own start. Edges that
    already exist, and those from u to itself, are not added. The new edge has the weight of the
    old one. Any model can be trained on such graphs; evaluation sees the graph itself. The term
    ``neighbor_consistency`` belongs to it. The authors have p = 0.5.

    Parameters
    ----------
    graph : Graph
        The graph.
    share : float
        :math:`p`, the probability of each arc.

    Examples
    --------
    >>> path = Graph.from_arrays(torch.eye(3), [[0, 1], [1, 2]], [0, 1, 0])
    >>> replace_edges(path, 1.0).edge_index.shape[1] <= 4
    True
    """
    arcs, n = graph.edge_index, graph.num_nodes
    drawn = torch.rand(arcs.shape[1], device=arcs.device) < share
    start, middle = arcs[:, drawn]
    ends = random_neighbors(arcs, middle, n)
    moved = torch.stack([start, ends])
    if graph.directed:
        kept = ~drawn
    else:  # the second half of the arcs are the reversed edges
        one, other = drawn.chunk(2)
        kept = ~(one | other)
        moved = torch.stack([moved.amin(0), moved.amax(0)])
    edges = torch.cat([graph.edges[:, kept], moved], dim=1)
    if not graph.directed:
        edges = torch.stack([edges.amin(0), edges.amax(0)])
    weights = None
    if graph.weights is not None and graph.edge_weight is not None:
        weights = torch.cat([graph.weights[kept], graph.edge_weight[drawn]])
    edges, weights = _each_once(edges, weights, n)
    replaced = dataclasses.replace(graph, edges=edges, weights=weights)
    replaced._cache.update({k: v for k, v in graph._cache.items() if k in OF_FEATURES})
    return replaced


def random_neighbors(arcs: Tensor, nodes: Tensor, n: int) -> Tensor:
    """Return a random target of an arc from each node; the node itself if it has none."""
    order = arcs[0].argsort(stable=True)
    targets = arcs[1][order]
    count = torch.bincount(arcs[0], minlength=n)
    first = count.cumsum(0) - count
    place = (torch.rand(len(nodes), device=arcs.device) * count[nodes]).long()
    found = first[nodes] + torch.minimum(place, (count[nodes] - 1).clamp_min(0))
    return torch.where(count[nodes] > 0, targets[found.clamp_max(len(targets) - 1)], nodes)


def _each_once(edges: Tensor, weights: Tensor | None, n: int) -> tuple[Tensor, Tensor | None]:
    """Leave out self-loops, and keep the largest weight of repeated edges."""
    own = edges[0] == edges[1]
    codes, place = torch.unique(edges[0, ~own] * n + edges[1, ~own], return_inverse=True)
    once = torch.stack([codes // n, codes % n])
    if weights is None:
        return once, None
    largest = weights.new_zeros(len(codes)).scatter_reduce(0, place, weights[~own], "amax")
    return once, largest
