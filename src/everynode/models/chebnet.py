"""ChebNet: filters that are polynomials of the Laplacian (Defferrard et al. 2016)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class ChebLayer(nn.Module):
    r"""A Chebyshev filter of the Laplacian.

    .. math:: f' = \sum_{t=0}^{K-1} T_t(\hat L) f W_t + b, \qquad \hat L = -D^{-1/2} A D^{-1/2}

    :math:`T_0 = 1`, :math:`T_1 = \hat L` and :math:`T_t = 2 \hat L T_{t-1} - T_{t-2}`. The largest
    eigenvalue of the Laplacian is taken to be 2. The sum is evaluated from its end (Clenshaw), so
    that only rows of output width are propagated.

    Parameters
    ----------
    inputs, outputs : int
        Number of columns before and after.
    filters : int
        Number K of filters.
    generator : torch.Generator, optional
        Source of the initial weights (Glorot).

    Attributes
    ----------
    weight : Parameter
        The matrices :math:`W_t`, K x inputs x outputs.
    bias : Parameter
        :math:`b`.
    """

    def __init__(
        self, inputs: int, outputs: int, filters: int, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        weights = torch.empty(filters, inputs, outputs)
        for weight in weights:
            nn.init.xavier_uniform_(weight, generator=generator)
        self.weight = nn.Parameter(weights)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, f: Tensor | SparseMatrix, propagate: Propagation) -> Tensor:
        r"""Return the filtered rows; ``propagate`` multiplies with :math:`D^{-1/2} A D^{-1/2}`."""
        first, *others = self.weight.unbind()
        last = before = torch.zeros_like(own := f @ first)
        for weight in reversed(others):
            last, before = f @ weight - 2 * propagate(last) - before, last
        return own - propagate(last) - before + self.bias


class ChebNet(FeatureNetwork):
    r"""Layers of Chebyshev filters, from the features to the logits.

    From `Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering
    <https://arxiv.org/abs/1606.09375>`_:

    .. math:: f^{(l+1)} = \mathrm{ReLU}\Big(\sum_{t=0}^{K-1} T_t(\hat L) f^{(l)} W_t^{(l)}
              + b^{(l)}\Big), \qquad \hat L = -D^{-1/2} A D^{-1/2}

    :math:`T_t` are the Chebyshev polynomials, and :math:`f^{(0)}` the features; the last layer has
    no ReLU. One layer reaches K - 1 hops. The settings of Kipf and Welling, who ran it on the
    public splits: 2 layers of 16 channels, K = 3, dropout 0.5, learning rate 0.01, weight decay
    5e-4, 200 epochs.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number of layers.
    chebnet_filters : int
        Number K of filters in each layer.
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
    layers : nn.ModuleList of ChebLayer
        The L layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> ChebNet(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        chebnet_filters: int = Settings.chebnet_filters,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("ChebNet", chebnet_filters=chebnet_filters)
        generator = torch.Generator().manual_seed(seed)
        widths = [num_features, *[self.hidden_channels] * (self.num_layers - 1), num_classes]
        self.layers = nn.ModuleList(
            ChebLayer(inputs, outputs, chebnet_filters, generator=generator)
            for inputs, outputs in pairwise(widths)
        )

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        first, *others = self.layers
        f: Tensor = first(self.drop_features(x), hops)
        for layer in others:
            f = layer(self.drop(torch.relu(f), self.layer_dropout), hops)
        return f

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`D^{-1/2} A D^{-1/2}`."""
        return full_graph_only(self, graph).loopless_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        return partial(edges.propagate, edges.loopless_weight())
