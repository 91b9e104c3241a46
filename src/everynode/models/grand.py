"""GRAND: random propagation, then an MLP (Feng et al. 2020)."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from everynode.models.feature_network import Propagation
from everynode.models.linear import Linear
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class GRAND(PropagatedMLP):
    r"""An MLP on features that are averaged over K hops, after some nodes have lost theirs.

    From `Graph Random Neural Networks for Semi-Supervised Learning on Graphs
    <https://arxiv.org/abs/2005.11079>`_:

    .. math:: \tilde x_i = \frac{\epsilon_i}{1 - \delta} x_i, \quad
              \epsilon_i \sim \mathrm{Bernoulli}(1 - \delta), \qquad
              z = \mathrm{MLP}\Big(\frac{1}{K + 1} \sum_{t=0}^{K} \tilde P^t \tilde x\Big)

    Evaluation drops no node. Each pass draws other nodes, so that the term ``consistency`` can
    compare passes, with ``consistency_distance="squared"``. The authors' settings: 32 channels,
    :math:`\delta` = 0.5, learning rate 0.01, weight decay 5e-4, patience 200; on Cora K = 8, 4
    passes, weight 1, temperature 0.5, dropout 0.5; on Citeseer K = 2, 2 passes, weight 0.7,
    temperature 0.3, dropout 0.2 in the hidden layer only. They also have batch normalization on
    Pubmed, which is not here.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    grand_drop_node : float
        :math:`\delta`, the share of the nodes that are dropped.
    grand_steps : int
        Number K of hops.
    dropout : float
        Dropout on the propagated features.
    layer_dropout : float
        Dropout before every further layer.
    **options
        See :class:`~everynode.models.mlp.MLP`.

    Attributes
    ----------
    drop_node, steps : float, int
        ``grand_drop_node`` and ``grand_steps``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GRAND(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        grand_drop_node: float = Settings.grand_drop_node,
        grand_steps: int = Settings.grand_steps,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("GRAND", grand_drop_node=grand_drop_node, grand_steps=grand_steps)
        self.drop_node, self.steps = grand_drop_node, grand_steps

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        first, *others = self.layers
        h = self._first_layer(x, hops, cast(Linear, first))
        for layer in others:
            h = layer(self.drop(torch.relu(h), self.layer_dropout))
        return h

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the mean over the hops."""
        total = z
        for _ in range(self.steps):
            z = propagate(z)
            total = total + z
        return total / (self.steps + 1)

    def _first_layer(self, x: SparseMatrix | Tensor, hops: Propagation, layer: Linear) -> Tensor:
        """Return the first linear layer of the propagated features."""
        kept = None
        if self.training and self.drop_node:
            ones = layer.weight.new_ones(x.shape[0], 1)
            kept = torch.nn.functional.dropout(ones, self.drop_node)
        if self.training and self.dropout:  # between the propagation and the layer
            dense = x if isinstance(x, Tensor) else x.to_dense()
            spread = self.spread(dense if kept is None else kept * dense, hops)
            return cast(Tensor, layer(self.drop(spread, self.dropout)))
        # Both are linear: the layer first, because its output has few columns.
        narrow = x @ layer.weight
        return self.spread(narrow if kept is None else kept * narrow, hops) + layer.bias
