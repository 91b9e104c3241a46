"""GraphCON: layers as steps of coupled oscillators (Rusch et al. 2022)."""

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
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class GraphCON(FeatureNetwork):
    r"""One graph convolution that drives a position and a velocity of each node.

    From `Graph-Coupled Oscillator Networks <https://arxiv.org/abs/2202.02296>`_, GraphCON-GCN:

    .. math:: X^{(0)} = Y^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad z = X^{(L)} W' + b'

    .. math:: Y^{(l)} = Y^{(l-1)} + \mathrm{ReLU}\big(\tilde P X^{(l-1)} W + b - (X^{(l-1)} W V + c)
              \big) - \alpha Y^{(l-1)} - \gamma X^{(l-1)}, \qquad X^{(l)} = X^{(l-1)} + Y^{(l)}

    All steps share the weights W, V and the biases b, c; the time step is 1. The authors' settings
    on the WebKB graphs have :math:`\alpha = \gamma = 0`: on Texas 2 steps of 256 channels, learning
    rate 0.00155, dropout 0.68, weight decay 8.5e-4; on Cornell 1 step of 256, 0.00721, 0.15 and
    0.00127; on Wisconsin 2 steps of 64, 0.00356, 0.23 and 0.0081.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of steps.
    graphcon_damping : float
        :math:`\alpha`, the damping of the velocity.
    graphcon_pull : float
        :math:`\gamma`, the pull of the position towards 0.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout on position and velocity after the start and after each step.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening, closing : Linear
        :math:`W_0, b_0` and :math:`W', b'`.
    convolution, own : Linear
        W with b, and V with c.
    damping, pull : float
        ``graphcon_damping`` and ``graphcon_pull``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GraphCON(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        graphcon_damping: float = Settings.graphcon_damping,
        graphcon_pull: float = Settings.graphcon_pull,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("GraphCON", graphcon_damping=graphcon_damping, graphcon_pull=graphcon_pull)
        self.damping, self.pull = graphcon_damping, graphcon_pull
        generator, width = torch.Generator().manual_seed(seed), self.hidden_channels
        self.opening = Linear(num_features, width, generator=generator)
        self.convolution = Linear(width, width, generator=generator)
        self.own = Linear(width, width, generator=generator)
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        start = torch.relu(self.opening(self.drop_features(x)))
        velocity, position = (self.drop(start, self.layer_dropout) for _ in range(2))
        for _ in range(self.num_layers):
            mapped = position @ self.convolution.weight
            force = torch.relu(hops(mapped) + self.convolution.bias - self.own(mapped))
            velocity = velocity + force - self.damping * velocity - self.pull * position
            position = self.drop(position + velocity, self.layer_dropout)
            velocity = self.drop(velocity, self.layer_dropout)
        logits: Tensor = self.closing(position)
        return logits

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`\tilde P`."""
        return full_graph_only(self, graph).gcn_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        return partial(edges.propagate, edges.gcn_weight())
