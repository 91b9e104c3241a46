"""The base of deep networks with residual connections and LayerNorm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, check_hops
from everynode.models.linear import Linear
from everynode.models.model import input_features
from everynode.models.receptive_field import Batch, Hop
from everynode.sparse import SparseMatrix


class ResidualHop(NamedTuple):
    """The aggregation of one layer.

    Attributes
    ----------
    neighbors : sequence of Propagation
        From one row per source to one row of neighbors' values per target; one for each kind.
    own : Propagation
        From one row per source to the targets' own rows.
    """

    neighbors: Sequence[Propagation]
    own: Propagation


class ResidualNetwork(FeatureNetwork):
    r"""Layers with residual connections that aggregate the LayerNorm of neighbors.

    .. math:: h^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad u = \mathrm{LayerNorm}(h^{(l)}), \qquad
              h^{(l+1)} = h^{(l)} + \mathrm{ReLU}([u, N_1 u, ...] W_l + b_l)

    and :math:`z = \mathrm{LayerNorm}(h^{(L)}) W + b`. A subclass defines the aggregation matrices
    :math:`N`. Residual connections and LayerNorm permit deep networks and improve shallow ones; see
    `A critical look at the evaluation of GNNs under heterophily
    <https://arxiv.org/abs/2302.11640>`_.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening, closing : Linear
        :math:`W_0, b_0` and W, b.
    norms, last_norm : nn.ModuleList, nn.LayerNorm
        The LayerNorm of each layer, and the one before the closing layer.
    layers : nn.ModuleList of Linear
        :math:`W_l` and :math:`b_l`.
    parts : int
        Number of blocks side by side that a layer reads: the own features and each neighborhood.
    """

    parts = 2

    def __init__(self, num_features: int, num_classes: int, *, seed: int = 0, **options: Any):
        super().__init__(num_features, num_classes, **options)
        self.num_hops = self.num_layers
        generator = torch.Generator().manual_seed(seed)
        width = self.hidden_channels
        self.opening = Linear(num_features, width, generator=generator)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(self.num_layers))
        self.layers = nn.ModuleList(
            Linear(self.parts * width, width, generator=generator) for _ in range(self.num_layers)
        )
        self.last_norm = nn.LayerNorm(width)
        self.closing = Linear(width, num_classes, generator=generator)

    @abstractmethod
    def hop(self, hop: Hop) -> ResidualHop:
        """Return the aggregation of a layer over a hop."""

    @abstractmethod
    def plain_hop(self, edges: EdgeList) -> ResidualHop:
        """Return the same in plain torch operations."""

    def inputs(self, own: Tensor, neighbors: list[Tensor]) -> list[Tensor]:
        """Return the input blocks of a layer's linear map."""
        return [own, *neighbors]

    def embedding(self, x: SparseMatrix | Tensor, hops: Sequence[ResidualHop]) -> Tensor:
        """Return the input of the closing layer."""
        h = torch.relu(self.opening(self.drop_features(x)))
        h = self.drop(h, self.layer_dropout)
        for place, hop in enumerate(hops):
            h = self._layer(place, h, hop)
        last: Tensor = self.last_norm(h)
        return last

    def _layer(self, place: int, h: Tensor, hop: ResidualHop) -> Tensor:
        """Return the output of a layer for the targets of a hop."""
        u = self.norms[place](h)
        blocks = self.inputs(hop.own(u), [collect(u) for collect in hop.neighbors])
        change = torch.relu(_linear_of_blocks(self.layers[place], blocks))
        return hop.own(h) + self.drop(change, self.layer_dropout)

    def open(self, graph: Graph | Batch) -> Tensor:
        """Return the values before the first layer, without dropout."""
        return torch.relu(self.opening(input_features(graph, self.normalize_features)))

    def step(self, place: int, f: Tensor, f_0: Tensor, hop: Hop) -> Tensor:
        """Return the output of the layer at a place (from 0), without dropout."""
        return self._layer(place, f, self.hop(hop))

    def close(self, f: Tensor) -> Tensor:
        """Return the logits from the output of the last layer, without dropout."""
        logits: Tensor = self.closing(self.last_norm(f))
        return logits

    def compute(self, x: SparseMatrix | Tensor, hops: Sequence[ResidualHop]) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.closing(self.embedding(x, hops))
        return logits

    def hops_of(self, graph: Graph | Batch) -> Sequence[ResidualHop]:
        """Return the hop of each layer."""
        if isinstance(graph, Batch):
            return [self.hop(hop) for hop in check_hops(graph, self.num_layers)]
        return [self.hop(Hop(graph))] * self.num_layers

    def plain_hops(self, edges: EdgeList) -> Sequence[ResidualHop]:
        """Return the hop of each layer in plain torch operations."""
        return [self.plain_hop(edges)] * self.num_layers


def _linear_of_blocks(layer: Any, blocks: list[Tensor]) -> Tensor:
    """Apply a linear layer to blocks side by side, without a copy that joins them."""
    total: Tensor = layer.bias
    for block, weight in zip(blocks, layer.weight.split(blocks[0].shape[1]), strict=True):
        total = torch.addmm(total, block, weight)
    return total


def itself(h: Tensor) -> Tensor:
    """Return the rows unchanged."""
    return h
