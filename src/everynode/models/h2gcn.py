"""H2GCN: one and two hops apart, and the output of every round (Zhu et al. 2020)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix


class H2GCN(FeatureNetwork):
    r"""Neighbors one hop and two hops away, apart from each other and from the node itself.

    From `Beyond Homophily in Graph Neural Networks: Current Limitations and Effective Designs
    <https://arxiv.org/abs/2006.11468>`_:

    .. math:: r^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad
              r^{(l+1)} = [\bar A_1 r^{(l)} \| \bar A_2 r^{(l)}], \qquad
              z = [r^{(0)} \| \dots \| r^{(K)}]\, W + b

    :math:`\bar A_i = D_i^{-1/2} A_i D_i^{-1/2}` joins the nodes at distance exactly i, without
    self-loops. The rounds have no weights, so the width doubles in each. A pair two steps apart
    weighs 1, also in a graph with edge weights. The authors' settings: K = 2, 64 channels, learning
    rate 0.01; weight decay, dropout and the ReLU by a search.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number K of rounds.
    dropout : float
        Dropout before the last layer.
    layer_dropout : float
        Dropout on :math:`r^{(0)}`; the authors have none.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening, closing : Linear
        :math:`W_0, b_0` and W, b.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> H2GCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(self, num_features: int, num_classes: int, *, seed: int = 0, **options: Any):
        super().__init__(num_features, num_classes, **options)
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, self.hidden_channels, generator=generator)
        width = (2 ** (self.num_layers + 1) - 1) * self.hidden_channels
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: tuple[Propagation, Propagation]) -> Tensor:
        """Return the logits."""
        one, two = hops
        rounds = [self.drop(torch.relu(self.opening(x)), self.layer_dropout)]
        for _ in range(self.num_layers):
            rounds.append(torch.cat([one(rounds[-1]), two(rounds[-1])], 1))
        logits: Tensor = self.closing(self.drop(torch.cat(rounds, 1), self.dropout))
        return logits

    def hops_of(self, graph: Graph | Batch) -> tuple[Propagation, Propagation]:
        r"""Return the products with :math:`\bar A_1` and :math:`\bar A_2`."""
        whole = full_graph_only(self, graph)
        return whole.loopless_operator.__matmul__, whole.two_hop_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> tuple[Propagation, Propagation]:
        """Return the same products in plain torch operations; the second matrix is dense."""
        n = edges.num_nodes
        reached = edges.weight.new_zeros(n, n)
        reached = reached.index_put((edges.target, edges.source), torch.ones_like(edges.weight))
        pairs = ((reached @ reached) > 0).to(reached) * (1 - reached)
        total = pairs.sum(1)
        scale = torch.where(total > 0, total, 1.0).rsqrt()
        two_hops = scale[:, None] * pairs * scale
        return partial(edges.propagate, edges.loopless_weight()), two_hops.__matmul__
