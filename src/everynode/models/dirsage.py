"""DirSAGE: SAGE with separate weights for both edge directions (Rossi et al. 2023)."""

from __future__ import annotations

from functools import partial
from typing import Any

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import full_graph_only
from everynode.models.receptive_field import Batch, Hop
from everynode.models.residual_network import ResidualHop, ResidualNetwork, itself


class DirSAGE(ResidualNetwork):
    r"""SAGE for directed graphs: incoming and outgoing arcs have separate weights.

    From `Edge Directionality Improves Learning on Heterophilic Graphs
    <https://arxiv.org/abs/2305.10498>`_, in the residual network of
    :class:`~everynode.models.residual_network.ResidualNetwork`:

    .. math:: h^{(l+1)} = h^{(l)} + \mathrm{ReLU}([u,\; D_{in}^{-1} A u,\; D_{out}^{-1} A^\top u]
              W_l + b_l)

    :math:`A_{ij} = 1` for an arc from j to i. On an undirected graph both means are equal; use
    :class:`~everynode.models.sage.SAGE` there. The model trains on the full batch only.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers, hidden_channels : int
        Depth and width.
    **options
        See :class:`~everynode.models.residual_network.ResidualNetwork`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> DirSAGE(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    parts = 3

    def __init__(self, num_features: int, num_classes: int, **options: Any):
        super().__init__(num_features, num_classes, **options)
        self.num_hops = None

    @property
    def reach(self) -> int:
        """The number of layers."""
        return self.num_layers

    def hops_of(self, graph: Graph | Batch) -> list[ResidualHop]:
        """Return the hop of each layer."""
        return [self.hop(Hop(full_graph_only(self, graph)))] * self.num_layers

    def hop(self, hop: Hop) -> ResidualHop:
        """Return the means over the sources of incoming and the targets of outgoing arcs."""
        graph = hop.graph
        assert isinstance(graph, Graph)  # hops_of refuses batches
        operators = graph.neighbor_operator, graph.reverse_neighbor_operator
        return ResidualHop([operator.__matmul__ for operator in operators], itself)

    def plain_hop(self, edges: EdgeList) -> ResidualHop:
        """Return the same means in plain torch operations."""
        back = EdgeList(edges.target, edges.source, edges.weight, edges.num_nodes)
        return ResidualHop(
            [partial(one.propagate, one.neighbor_weight()) for one in (edges, back)], itself
        )
