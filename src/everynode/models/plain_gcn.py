"""GCN as Kipf and Welling (2017) have it: no linear layers around the convolutions."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix


class PlainGCN(FeatureNetwork):
    r"""Graph convolutions from the features to the logits.

    From `Semi-Supervised Classification with Graph Convolutional Networks
    <https://arxiv.org/abs/1609.02907>`_:

    .. math:: f^{(l+1)} = \mathrm{ReLU}(\tilde P f^{(l)} W^{(l)} + b^{(l)}), \qquad
              z = \tilde P f^{(L-1)} W^{(L-1)} + b^{(L-1)}

    :math:`f^{(0)}` are the features. :class:`~everynode.models.gcn.GCN` is the other network of
    that name, which has linear layers before and after the convolutions. The authors' settings:
    2 layers of 16 channels, dropout 0.5, learning rate 0.01, weight decay 5e-4, 200 epochs.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of convolutions.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout before every further layer.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    layers : nn.ModuleList of Linear
        :math:`W^{(l)}` and :math:`b^{(l)}` of each convolution.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> PlainGCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(self, num_features: int, num_classes: int, *, seed: int = 0, **options: Any):
        super().__init__(num_features, num_classes, **options)
        generator = torch.Generator().manual_seed(seed)
        widths = [num_features, *[self.hidden_channels] * (self.num_layers - 1), num_classes]
        self.layers = nn.ModuleList(
            Linear(inputs, outputs, generator=generator) for inputs, outputs in pairwise(widths)
        )

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        layers: Any = self.layers
        first, *others = layers
        f: Tensor = hops(self.drop_features(x) @ first.weight) + first.bias
        for layer in others:
            f = self.drop(torch.relu(f), self.layer_dropout)
            f = hops(f @ layer.weight) + layer.bias
        return f

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`\tilde P`."""
        return full_graph_only(self, graph).gcn_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        return partial(edges.propagate, edges.gcn_weight())
