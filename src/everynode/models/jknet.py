"""JKNet: the last layer sees the output of every layer (Xu et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.linear import Linear
from everynode.models.model import Model, input_features, node_indices
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class JKNet(Model):
    r"""GCN layers whose outputs are concatenated before the last, linear layer.

    From `Representation Learning on Graphs with Jumping Knowledge Networks
    <https://arxiv.org/abs/1806.03536>`_:

    .. math:: f^{(l)} = \mathrm{ReLU}(\tilde P f^{(l-1)} W^{(l)}), \qquad
              z = [f^{(1)} \| \dots \| f^{(L)}] \, W + b

    :math:`f^{(0)}` are the features, :math:`\tilde P` is the normalized adjacency of GCN, and
    :math:`\|` concatenates columns. Each :math:`W^{(l)}` has a bias, and starts with Glorot.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers, hidden_channels : int
        Depth and width.
    dropout : float
        Dropout on the features and before the last layer.
    layer_dropout : float
        Dropout between the layers.
    normalize_features : bool
        Divide each row of the features by its sum.
    seed : int
        The seed of the initial weights.

    Attributes
    ----------
    layers : nn.ModuleList of Linear
        The matrices :math:`W^{(l)}`.
    last : Linear
        W and b.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> JKNet(8, 3, num_layers=4, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        num_layers: int = Settings.num_layers,
        hidden_channels: int = Settings.hidden_channels,
        dropout: float = Settings.dropout,
        layer_dropout: float = Settings.layer_dropout,
        normalize_features: bool = Settings.normalize_features,
        seed: int = 0,
    ):
        super().__init__()
        check_settings(
            "JKNet",
            num_layers=num_layers,
            hidden_channels=hidden_channels,
            dropout=dropout,
            layer_dropout=layer_dropout,
        )
        self.num_features, self.num_classes = num_features, num_classes
        self.dropout, self.layer_dropout = dropout, layer_dropout
        self.normalize_features = normalize_features
        generator = torch.Generator().manual_seed(seed)
        inputs = [num_features, *[hidden_channels] * (num_layers - 1)]
        self.layers = nn.ModuleList(
            Linear(width, hidden_channels, generator=generator) for width in inputs
        )
        self.last = Linear(num_layers * hidden_channels, num_classes, generator=generator)

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes``."""
        self.check_graph(graph)
        assert isinstance(graph, Graph)  # num_hops is None: full batch only
        f: Tensor | SparseMatrix = self._drop(
            input_features(graph, self.normalize_features), self.dropout
        )
        outputs: list[Tensor] = []
        for layer in self.layers:
            if outputs:
                f = self._drop(outputs[-1], self.layer_dropout)
            outputs.append(torch.relu(graph.gcn_operator @ layer(f)))
        joined = nn.functional.dropout(torch.cat(outputs, 1), self.dropout, self.training)
        logits: Tensor = self.last(joined)
        return logits if nodes is None else logits[node_indices(nodes, graph)]

    def _drop(self, x: Tensor | SparseMatrix, p: float) -> Tensor | SparseMatrix:
        """Apply dropout; on sparse features, to the non-zeros only."""
        if isinstance(x, Tensor):
            return nn.functional.dropout(x, p, self.training)
        return x.with_values(nn.functional.dropout(x.values, p, self.training))
