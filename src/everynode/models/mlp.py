"""MLP: the features alone, without the graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix


class MLP(FeatureNetwork):
    r"""Linear layers with ReLU and dropout between them.

    .. math:: z = \mathrm{ReLU}(x W_1 + b_1) W_2 + b_2

    It ignores the edges. Where it is as good as a graph network, the graph adds nothing.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number of linear layers.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    layers : nn.ModuleList of Linear
        The linear layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> MLP(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    num_hops: int | None = 0

    def __init__(self, num_features: int, num_classes: int, *, seed: int = 0, **options: Any):
        super().__init__(num_features, num_classes, **options)
        generator = torch.Generator().manual_seed(seed)
        hidden = [self.hidden_channels] * (self.num_layers - 1)
        widths = [num_features, *hidden, num_classes]
        self.layers = nn.ModuleList(
            Linear(inputs, outputs, generator=generator) for inputs, outputs in pairwise(widths)
        )

    def compute(self, x: SparseMatrix | Tensor, hops: Any) -> Tensor:
        """Return the logits."""
        h: Tensor = self.layers[0](self.drop_features(x))
        for layer in self.layers[1:]:
            h = layer(self.drop(torch.relu(h), self.dropout))
        return h

    def hops_of(self, graph: Graph | Batch) -> Any:
        """Return None: nothing is propagated."""
        return None

    def plain_hops(self, edges: EdgeList) -> Any:
        """Return None: nothing is propagated."""
        return None
