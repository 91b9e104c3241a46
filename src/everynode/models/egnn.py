"""EGNN: a deep GCN that keeps its Dirichlet energy (Zhou et al. 2021)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import require
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class EGNN(FeatureNetwork):
    r"""A deep GCN with residual connections, weights near the identity, and shifted ReLUs.

    From `Dirichlet Energy Constrained Learning for Deep Graph Neural Networks
    <https://arxiv.org/abs/2107.02392>`_:

    .. math:: f^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad
              f^{(l)} = \sigma_l\big([(1 - c) \tilde P f^{(l-1)} + (c - \beta) f^{(l-1)}
              + \beta f^{(0)}] W_l\big), \qquad z = f^{(L)} W + b

    :math:`\sigma_l(y) = \max(y, s_l)` with a learned :math:`s_l` for each channel, which starts at
    -10. :math:`W_l` starts as the identity. The term ``model_loss`` is :math:`\sum_{l=1}^{L} \| W_l
    - I \|_F`. The authors' settings: weight of the loss 20, weight decay 5e-4 on W and
    :math:`W_0`, 1500 epochs, patience 100; on Cora learning rate 0.005, dropout 0.6, c = 0.2,
    :math:`\beta` = 0.1; on Pubmed 0.01, 0.5 (0 before the last layer), 0.12 and 0.12.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    egnn_residual : float
        c, the share of the residual connections.
    egnn_initial : float
        :math:`\beta`, the share of :math:`f^{(0)}` within c.
    dropout : float
        Dropout on the features and before the last layer.
    layer_dropout : float
        Dropout before each of the L layers.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    weights : nn.ParameterList
        :math:`W_l` of each layer.
    floors : Parameter
        :math:`s_l` of each layer and channel.
    residual, initial : float
        ``egnn_residual`` and ``egnn_initial``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> EGNN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        egnn_residual: float = Settings.egnn_residual,
        egnn_initial: float = Settings.egnn_initial,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("EGNN", egnn_residual=egnn_residual)
        good = 0 <= egnn_initial <= egnn_residual
        expected = f"between 0 and egnn_residual={egnn_residual}"
        require(good, "egnn_initial", "EGNN", expected, egnn_initial)
        self.residual, self.initial = egnn_residual, egnn_initial
        generator, width = torch.Generator().manual_seed(seed), self.hidden_channels
        self.opening = Linear(num_features, width, generator=generator)
        self.weights = nn.ParameterList(torch.eye(width) for _ in range(self.num_layers))
        self.floors = nn.Parameter(torch.full((self.num_layers, width), -10.0))
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        first = f = torch.relu(self.opening(self.drop_features(x)))
        own = self.residual - self.initial
        for weight, floor in zip(self.weights, self.floors, strict=True):
            f = self.drop(f, self.layer_dropout)
            mixed = (1 - self.residual) * hops(f) + own * f + self.initial * first
            f = torch.maximum(mixed @ weight, floor)
        logits: Tensor = self.closing(self.drop(f, self.dropout))
        return logits

    def own_loss(self) -> Tensor:
        """Return the distance of the weights from the identity."""
        # The square root of 0 has no derivative, and training starts there.
        away = [(w - torch.eye(len(w)).to(w)).square().sum() + 1e-12 for w in self.weights]
        return torch.stack(away).sqrt().sum()

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the layers as the group "gnn", and the first and last matrix apart."""
        layers = [*self.weights, self.floors]
        return {"rest": [*self.opening.parameters(), *self.closing.parameters()], "gnn": layers}

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`\tilde P`."""
        return full_graph_only(self, graph).gcn_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        return partial(edges.propagate, edges.gcn_weight())
