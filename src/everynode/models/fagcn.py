"""FAGCN: messages that are added or subtracted (Bo et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix, spmm

#: The sum over neighbors, from one weight per edge and one row per source.
WeightedSum = Callable[[Tensor, Tensor], Tensor]


class SignedHop(NamedTuple):
    r"""Edges whose weights a layer computes.

    Attributes
    ----------
    target, source : Tensor
        The ends of each edge.
    weight : Tensor
        A weight of each edge that is given, for FAGCN :math:`1 / \sqrt{d_i d_j}`.
    propagate : callable
        Sums rows over the edges, from one weight per edge.
    """

    target: Tensor
    source: Tensor
    weight: Tensor
    propagate: WeightedSum

    @classmethod
    def of(cls, operator: SparseMatrix) -> SignedHop:
        """Return the edges of an operator."""
        pattern = operator.pattern
        return cls(pattern.row, pattern.column, operator.values, partial(spmm, pattern))


class FAGCN(FeatureNetwork):
    r"""Propagation whose edge weights lie between -1 and 1, so neighbors may be subtracted.

    From `Beyond Low-frequency Information in Graph Convolutional Networks
    <https://arxiv.org/abs/2101.00797>`_:

    .. math:: h^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad
              h_i^{(l)} = \epsilon h_i^{(0)} + \sum_{j \in N_i}
              \frac{\tanh(g_l^\top [h_i^{(l-1)} \| h_j^{(l-1)}] + b_l)}{\sqrt{d_i d_j}} h_j^{(l-1)},
              \qquad z = h^{(L)} W + b

    There are no self-loops, and the layers have no weight matrices. The authors' settings: 2
    layers of 32 channels, :math:`\epsilon` = 0.3, dropout 0.5 everywhere, learning rate 0.01,
    weight decay 5e-5.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    fagcn_eps : float
        :math:`\epsilon`, the share of the opening features in each layer.
    dropout : float
        Dropout on the features and on :math:`h^{(0)}`.
    layer_dropout : float
        Dropout on the weights of the edges.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    gates : list of Linear
        :math:`g_l` and :math:`b_l` of each layer: first the target's half, then the source's.
    opening, closing : Linear
        The linear layers.
    eps : float
        ``fagcn_eps``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> FAGCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        fagcn_eps: float = Settings.fagcn_eps,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("FAGCN", fagcn_eps=fagcn_eps)
        self.eps, width = fagcn_eps, self.hidden_channels
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, width, generator=generator)
        gates = (Linear(2 * width, 1, generator=generator) for _ in range(self.num_layers))
        self.gates = nn.ModuleList(gates)
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: SignedHop) -> Tensor:
        """Return the logits."""
        first = self.drop(torch.relu(self.opening(self.drop_features(x))), self.dropout)
        h = first
        for gate in self.gates:
            of_target, of_source = cast(Tensor, gate.weight).view(2, -1)
            # One number per node for each end of an edge: no array of edges x channels.
            score = (h @ of_target)[hops.target] + (h @ of_source)[hops.source]
            signed = torch.tanh(score + gate.bias) * hops.weight
            h = self.eps * first + hops.propagate(self.drop(signed, self.layer_dropout), h)
        logits: Tensor = self.closing(h)
        return logits

    def hops_of(self, graph: Graph | Batch) -> SignedHop:
        """Return the edges without self-loops."""
        return SignedHop.of(full_graph_only(self, graph).loopless_operator)

    def plain_hops(self, edges: EdgeList) -> SignedHop:
        """Return the same edges in plain torch operations."""
        return SignedHop(edges.target, edges.source, edges.loopless_weight(), edges.propagate)
