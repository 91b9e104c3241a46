"""GATv2: attention whose order of neighbors depends on the node (Brody et al. 2022)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, full_graph_only
from everynode.models.receptive_field import Batch
from everynode.settings import Settings
from everynode.sparse import SparseMatrix


class GATv2(FeatureNetwork):
    r"""Layers of attention with several heads, from the features to the logits.

    From `How Attentive are Graph Attention Networks? <https://arxiv.org/abs/2105.14491>`_, with
    PyG's layer:

    .. math:: \alpha_{ij} = \mathrm{softmax}_{j \in N_i \cup \{i\}}
              \big(a^\top \mathrm{LeakyReLU}(W_r f_i + W_l f_j)\big), \qquad
              f'_i = \sum_{j \in N_i \cup \{i\}} \alpha_{ij} W_l f_j + b

    Each head has :math:`a, W_l, W_r`. The heads are concatenated, with ELU between the layers; the
    last layer averages its heads. Weights of edges are not used. The authors publish settings for
    ogbn-arxiv alone: 3 layers of 256 channels, with LayerNorm and residual connections, which are
    not here.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    attention_heads : int
        Number of heads, a divisor of ``hidden_channels``.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout before every further layer, and on the attention.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    layers : nn.ModuleList
        PyG's layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GATv2(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        attention_heads: int = Settings.attention_heads,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        width, heads, owner = self.hidden_channels, attention_heads, type(self).__name__
        good = heads >= 1 and width % heads == 0
        require(good, "attention_heads", owner, f"a divisor of hidden_channels={width}", heads)
        layers = []
        for layer in range(self.num_layers):
            last = layer == self.num_layers - 1
            inputs = width if layer else num_features
            outputs = num_classes if last else width // heads
            layers.append(self.convolution(inputs, outputs, heads, concat=not last))
        self.layers = nn.ModuleList(layers)

    def convolution(self, inputs: int, outputs: int, heads: int, *, concat: bool) -> nn.Module:
        """Return a layer; the edges that it gets have self-loops already."""
        from torch_geometric.nn import GATv2Conv  # takes seconds to import

        p = self.layer_dropout
        return GATv2Conv(
            inputs, outputs, heads=heads, concat=concat, dropout=p, add_self_loops=False
        )

    def compute(self, x: SparseMatrix | Tensor, hops: Tensor) -> Tensor:
        """Return the logits."""
        dropped = self.drop_features(x)
        f = dropped if isinstance(dropped, Tensor) else dropped.to_dense()
        first, *others = self.layers
        f = first(f, hops)
        for layer in others:
            f = layer(self.drop(nn.functional.elu(f), self.layer_dropout), hops)
        return f

    def hops_of(self, graph: Graph | Batch) -> Tensor:
        """Return the source and target of every message, self-loops included."""
        pattern = full_graph_only(self, graph).looped_adjacency.pattern
        return torch.stack([pattern.column, pattern.row])

    def plain_hops(self, edges: EdgeList) -> Tensor:
        """Return the same messages."""
        return torch.stack([edges.source, edges.target])

    def check_export(self) -> None:
        """Refuse: PyG's layers do not export."""
        raise UsageError(
            f"{type(self).__name__} cannot be exported: its layers are PyG's. Save the model "
            "instead."
        )
