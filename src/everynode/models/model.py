"""The protocol of a model: it maps a graph, or a sampled batch, to logits."""

from __future__ import annotations

import itertools
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix

#: The settings of the parameter group "gnn"; see :meth:`Model.parameter_groups`.
GNN_SETTINGS = ("lr_gnn", "weight_decay_gnn")


class Model(nn.Module):
    """Base class of all node classifiers: ``model(graph)`` returns n x k logits.

    A subclass implements :meth:`forward`. Its constructor takes any of ``num_features``,
    ``num_classes``, ``seed`` and the settings of group "Model", by name; see
    :func:`everynode.models.build.build_model`. A plain ``torch.nn.Module`` on PyG's
    ``(x, edge_index)`` needs no subclass: :class:`~everynode.models.pyg_model.PyGModel` wraps it.

    Attributes
    ----------
    num_hops : int or None
        Layers of message passing, for sampled mini-batches. None: full batch only.
    for_new_nodes : bool
        Whether the model can predict for another graph than the one it was fitted on.
    num_features, num_classes : int
        Input columns and classes. :func:`~everynode.models.build.build_model` sets them.
    block : int or None
        The nodes that a prediction computes at once; None: as the size of the graph suggests; 0:
        all. See :func:`everynode.training.mini_batch.inference.logits`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> class FeaturesOnly(Model):
    ...     def __init__(self, num_features, num_classes):
    ...         super().__init__()
    ...         self.linear = nn.Linear(num_features, num_classes)
    ...     def forward(self, graph, nodes=None):
    ...         logits = self.linear(graph.dense_features)
    ...         return logits if nodes is None else logits[nodes]
    >>> FeaturesOnly(8, 3)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    num_hops: int | None = None
    for_new_nodes: bool = True
    block: int | None = None
    num_features: int
    num_classes: int

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes`` (indices or a mask)."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """The device of the parameters, or of the buffers of a model without parameters."""
        tensors = itertools.chain(self.parameters(), self.buffers(), [torch.empty(0)])
        return next(tensors).device

    @property
    def reach(self) -> int | None:
        """Edges between a node and the farthest node that its logits depend on; None: unknown."""
        return self.num_hops

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return every parameter once, by group.

        The group "gnn" trains with ``lr_gnn`` and ``weight_decay_gnn``, all others with ``lr``
        and ``weight_decay``.
        """
        return {"rest": list(self.parameters())}

    def embed(self, graph: Graph) -> Tensor:
        """Return one vector per node, for plots. Unless a subclass does better: the logits."""
        was_training = self.training
        try:
            embedding: Tensor = self.eval()(graph)
        finally:
            self.train(was_training)
        return embedding

    def prepare(self, graph: Graph) -> None:
        """Create what depends on the graph to train on, such as a parameter for each edge."""

    def clear_cache(self) -> None:
        """Forget everything kept between passes, and the graphs that it refers to."""

    def check_export(self) -> None:
        """Refuse a model that cannot be exported."""
        raise UsageError(
            f"{type(self).__name__} cannot be exported: only networks whose layers implement "
            "export() can. Save the model instead."
        )

    def export(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the logits of a graph in plain tensors, with plain torch operations."""
        self.check_export()
        raise NotImplementedError

    def check_graph(self, graph: Graph | Batch) -> None:
        """Refuse a graph with other features than the model was built for."""
        if graph.num_features != self.num_features:
            raise DataError(
                f"This model was made for {self.num_features} features a node, but graph "
                f"{graph.name!r} has {graph.num_features}. Use the columns it was trained on."
            )
        dtype = next((p.dtype for p in self.parameters()), graph.dtype)
        if graph.dtype != dtype:
            raise DataError(
                f"This model is {dtype}, but graph {graph.name!r} is {graph.dtype}. "
                f"Convert the graph with graph.to({dtype})."
            )


@runtime_checkable
class Layered(Protocol):
    """A network of an opening layer, message-passing layers and a closing layer.

    Prediction can compute it layer by layer, a block of nodes at a time.

    Attributes
    ----------
    closing : Any
        The last layer, a matrix from hidden channels to classes.
    """

    closing: Any

    def open(self, graph: Graph | Batch) -> Tensor:
        """Return the values before the first layer of message passing, without dropout."""
        ...

    def step(self, place: int, f: Tensor, f_0: Tensor, hop: Any) -> Tensor:
        """Return the output of the layer at a place (from 0), without dropout.

        ``f_0``: the rows of the targets after the opening layer.
        """
        ...

    def close(self, f: Tensor) -> Tensor:
        """Return the logits from the output of the last layer, without dropout."""
        ...


def input_features(graph: Graph | Batch, normalize: bool) -> SparseMatrix | Tensor:
    """Return the features that a model sees: raw, or with rows that sum to 1."""
    return graph.normalized_features if normalize else graph.features


def node_indices(nodes: Tensor, graph: Graph | Batch) -> Tensor:
    """Convert a node mask to indices; indices pass through unchanged.

    >>> from everynode.datasets import generate
    >>> node_indices(torch.tensor([True, False, True]), generate(3, 2, 4, 2))
    tensor([0, 2])
    """
    if nodes.dtype == torch.bool:
        if isinstance(graph, Graph) and nodes.shape != (graph.num_nodes,):
            raise UsageError(
                f"A mask of nodes needs one value for each of the {graph.num_nodes} nodes. "
                f"Got shape {tuple(nodes.shape)}."
            )
        return nodes.nonzero()[:, 0]
    if nodes.is_floating_point() or nodes.ndim != 1:
        raise UsageError(
            "Nodes must be a mask or a list of indices. "
            f"Got {nodes.dtype} of shape {tuple(nodes.shape)}."
        )
    return nodes.long()
