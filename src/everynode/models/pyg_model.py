"""Any ``torch.nn.Module`` on PyG's ``(x, edge_index)`` as a model."""

from __future__ import annotations

import inspect
import warnings
from typing import Literal

import torch
from torch import Tensor, nn

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.model import Model, input_features, node_indices
from everynode.models.receptive_field import Batch
from everynode.settings import Settings


class PyGModel(Model):
    """Wraps a module whose forward takes ``(x, edge_index)`` or ``(x, edge_index, edge_weight)``.

    The module receives dense features and PyG's ``edge_index``, with both directions of every
    edge. It trains on the full batch only, as one parameter group.

    Parameters
    ----------
    module : torch.nn.Module
        Returns n x k logits.
    normalize_features : bool
        Divide each row of the features by its sum.

    Attributes
    ----------
    module : torch.nn.Module
        The wrapped module.

    Examples
    --------
    >>> from torch_geometric.nn import GCN
    >>> from everynode.datasets import generate
    >>> model = PyGModel(GCN(8, hidden_channels=16, num_layers=2, out_channels=3))
    >>> model(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    num_hops = None

    def __init__(
        self, module: nn.Module, *, normalize_features: bool = Settings.normalize_features
    ):
        super().__init__()
        self.module, self.normalize_features = module, normalize_features
        self._edge_weight = _edge_weight(module)
        self._has_warned = False

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes`` (indices or a mask)."""
        if isinstance(graph, Batch):
            raise UsageError(
                f"{type(self.module).__name__} trains on the full graph only: train without "
                "mini-batches."
            )
        if hasattr(self, "num_features"):
            self.check_graph(graph)
        edge_index, edge_weight = graph.edge_index, graph.edge_weight
        inputs = [self._features(graph), edge_index]
        if edge_weight is None and self._edge_weight == "required":
            inputs.append(torch.ones(edge_index.shape[1]).to(inputs[0]))
        elif edge_weight is not None and self._edge_weight:
            inputs.append(edge_weight.to(graph.dtype))
        elif edge_weight is not None and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{type(self.module).__name__} ignores the edge weights of graph {graph.name!r}: "
                "its forward has no edge_weight.",
                stacklevel=2,
            )
        logits = self.module(*inputs)
        expected = (graph.num_nodes, getattr(self, "num_classes", graph.num_classes))
        if not isinstance(logits, Tensor) or logits.shape != expected:
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UsageError(
                f"{type(self.module).__name__} must return logits of shape {expected}. Got {shape}."
            )
        return logits if nodes is None else logits[node_indices(nodes, graph)]

    def check_export(self) -> None:
        """Refuse: the operations of the module may not support export."""
        raise UsageError(
            f"{type(self.module).__name__} cannot be exported: export works for everynode's own "
            "networks only. Save the model instead."
        )

    def _features(self, graph: Graph) -> Tensor:
        """Return the dense features, computed once per graph."""
        if not self.normalize_features:
            return graph.dense_features

        def normalized() -> Tensor:
            features = input_features(graph, True)
            return features if isinstance(features, Tensor) else features.to_dense()

        features: Tensor = graph.cached("dense normalized features", normalized)
        return features


def _edge_weight(module: nn.Module) -> Literal["", "optional", "required"]:
    """Whether the forward of a module takes edge weights; refuse one that takes no edges."""
    signature = inspect.signature(module.forward)
    parameters = list(signature.parameters.values())
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in _NOT_REQUIRED]
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    variable = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if (len(positional) < 2 and not variable) or len(required) > 3:
        raise UsageError(
            f"The forward of {type(module).__name__} must take (x, edge_index) or "
            f"(x, edge_index, edge_weight). It takes {signature}."
        )
    if len(required) == 3:
        return "required"
    third = positional[2].name if len(positional) > 2 else ""
    # PyG's models declare whether they support edge weights.
    return "optional" if third == "edge_weight" and _uses_edge_weight(module) else ""


def _uses_edge_weight(module: nn.Module) -> bool:
    return bool(getattr(module, "supports_edge_weight", True))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NOT_REQUIRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
