"""The base of networks with one opening layer on the features, sparse or dense."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.linear import rows_divided_by_sum
from everynode.models.model import Model, input_features, node_indices
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix, draw_noise, drop

#: A map from one row per node to one row per node, such as the mean over neighbors.
Propagation = Callable[[Tensor], Tensor]


class FeatureNetwork(Model):
    """Base of networks whose subclass implements :meth:`compute` once, for graphs and export.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers, hidden_channels : int
        Depth and width.
    dropout : float
        Dropout on the input (on non-zeros only if it is sparse), and before the closing layer.
    layer_dropout : float
        Dropout inside the network.
    normalize_features : bool
        Divide each row of the features by its sum.
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
    ):
        super().__init__()
        owner = type(self).__name__
        check_settings(owner, num_layers=num_layers, hidden_channels=hidden_channels)
        check_settings(owner, dropout=dropout, layer_dropout=layer_dropout)
        self.num_features, self.num_classes = num_features, num_classes
        self.num_layers, self.hidden_channels = num_layers, hidden_channels
        self.dropout, self.layer_dropout = dropout, layer_dropout
        self.normalize_features = normalize_features

    @abstractmethod
    def compute(self, x: SparseMatrix | Tensor, hops: Any) -> Tensor:
        """Return the logits from features and the ``hops`` of a graph or an edge list."""

    @abstractmethod
    def hops_of(self, graph: Graph | Batch) -> Any:
        """Return what :meth:`compute` propagates with, for a graph or a sampled batch."""

    @abstractmethod
    def plain_hops(self, edges: EdgeList) -> Any:
        """Return the same in plain torch operations, for export."""

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes`` (indices or a mask)."""
        self.check_graph(graph)
        features = input_features(graph, self.normalize_features)
        logits = self.compute(features, self.hops_of(graph))
        return logits if nodes is None else logits.index_select(0, node_indices(nodes, graph))

    def check_export(self) -> None:
        """Accept: :meth:`compute` is written in plain torch operations."""

    def export(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the logits of a graph in plain tensors, with plain torch operations."""
        edges = EdgeList.of(edge_index, edge_weight.to(x.dtype), x.shape[0])
        if self.normalize_features:
            x = rows_divided_by_sum(x)
        return self.compute(x, self.plain_hops(edges))

    def drop_features(self, x: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
        """Apply dropout to the input in training; a dropped zero stays zero."""
        if isinstance(x, Tensor):
            return self.drop(x, self.dropout)
        return x.with_values(self.drop(x.values, self.dropout))

    def drop(self, x: Tensor, p: float) -> Tensor:
        """Apply dropout in training."""
        return drop(x, p, draw_noise(x.shape, x)) if self.training and p else x


def full_graph_only(model: Model, graph: Graph | Batch) -> Graph:
    """Return the graph; refuse a sampled batch."""
    if isinstance(graph, Batch):
        raise UsageError(
            f"{type(model).__name__} trains on the full graph only: train without mini-batches."
        )
    return graph


def check_hops(graph: Batch, num_layers: int) -> Sequence[Any]:
    """Return the hops of a batch; refuse a number other than the number of layers."""
    if len(graph.hops) != num_layers:
        raise UsageError(
            f"This network has {num_layers} layers, but the batch has {len(graph.hops)} hops. "
            "Sample one hop for each layer."
        )
    return graph.hops
