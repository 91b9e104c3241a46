"""DropEdge: a graph with fewer edges for one training pass (Rong et al. 2020)."""

from __future__ import annotations

import dataclasses

import torch

from everynode.graph.graph import Graph

#: The cached operators of features alone, which a graph with fewer edges shares.
OF_FEATURES = ("normalized_features", "dense_features")


def drop_edges(graph: Graph, share: float) -> Graph:
    r"""Return the graph without a random share of its arcs.

    From `DropEdge: Towards Deep Graph Convolutional Networks on Node Classification
    <https://arxiv.org/abs/1907.10903>`_:

    .. math:: A_{drop} = A - A', \qquad
              \tilde P_{drop} = \tilde D^{-1/2} (A_{drop} + I) \tilde D^{-1/2}

    :math:`A'` holds :math:`p \cdot m` of the m non-zeros of A, drawn at random in each pass. As
    with the authors, the two directions of an edge are drawn apart, so the graph becomes directed.
    Any model can be trained on it; evaluation sees the whole graph. The authors' settings for a
    two-layer GCN: 128 channels, 400 epochs; on Cora p = 0.6, dropout 0.8, learning rate 0.007,
    weight decay 1e-5; on Citeseer 0.8, 0.3, 0.01 and 5e-4.

    Parameters
    ----------
    graph : Graph
        The graph.
    share : float
        :math:`p`, the share of the arcs that are left out.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph = generate(20, 40, 8, 3)
    >>> graph.edge_index.shape, drop_edges(graph, 0.75).edge_index.shape
    (torch.Size([2, 58]), torch.Size([2, 15]))
    """
    arcs, weights = graph.edge_index, graph.edge_weight
    number = arcs.shape[1] - int(share * arcs.shape[1])
    kept = torch.randperm(arcs.shape[1], device=arcs.device)[:number]
    thinned = dataclasses.replace(
        graph,
        edges=arcs[:, kept],
        weights=None if weights is None else weights[kept],
        directed=True,
    )
    thinned._cache.update({k: v for k, v in graph._cache.items() if k in OF_FEATURES})
    return thinned
