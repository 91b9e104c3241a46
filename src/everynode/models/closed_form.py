"""The protocol of models that are solved, not trained by gradient steps."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models.feature_network import full_graph_only
from everynode.models.model import Model, node_indices
from everynode.models.receptive_field import Batch
from everynode.settings import Settings
from everynode.sparse import SparseMatrix

#: The logit of a class without a training node.
ABSENT = -30.0
#: Columns that are propagated at once.
COLUMNS = 16


class ClosedFormModel(Model):
    """A model that :meth:`solve` fits at once; :func:`everynode.training.train` calls it.

    Everything it learns is a buffer, which safetensors can hold. The buffers start empty and take
    the shapes of a saved model when they are loaded.

    A model may offer several solutions, such as strengths of regularization. Training then tries
    each as one epoch, and validation keeps the best. Of the objective, only class weights count.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    normalize_features : bool
        Divide each row of the features by its sum.

    Attributes
    ----------
    num_stages : int
        Number of solutions that validation chooses from.
    """

    num_stages = 1

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        normalize_features: bool = Settings.normalize_features,
    ):
        super().__init__()
        self.num_features, self.num_classes = num_features, num_classes
        self.normalize_features = normalize_features

    @abstractmethod
    def solve(
        self, graph: Graph, train_nodes: Tensor, *,
        seed: int = 0, class_weight: Tensor | None = None, stage: int = 0,
    ) -> None:  # fmt: skip
        """Fit the model.

        Parameters
        ----------
        graph : Graph
            The graph with its labels.
        train_nodes : Tensor
            Indices of the labeled nodes to learn from. No other label may be read.
        seed : int
            Seed of random draws.
        class_weight : Tensor, optional
            Weight of each class.
        stage : int
            Which of the solutions, from 0.
        """

    @abstractmethod
    def logits(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Return the logits of all nodes, or of some (indices)."""

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes`` (indices or a mask)."""
        graph = full_graph_only(self, graph)
        self.check_graph(graph)
        return self.logits(graph, None if nodes is None else node_indices(nodes, graph))

    def learn(self, name: str, value: Tensor) -> None:
        """Store a learned tensor as a buffer."""
        self.register_buffer(name, value.detach().contiguous())

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Take the shapes of the state before its values."""
        for name, buffer in list(self._buffers.items()):
            value = state_dict.get(prefix + name)
            if buffer is not None and value is not None and value.shape != buffer.shape:
                # An index keeps its type; a number takes the type of the model.
                self._buffers[name] = torch.empty_like(value, dtype=buffer.dtype).to(buffer.device)
        super()._load_from_state_dict(state_dict, prefix, *args)


def hop_rows(
    x: Tensor, operator: SparseMatrix | None, nodes: Tensor | None, hops: int, dtype: torch.dtype
) -> Tensor:
    """Return the rows of some nodes (None: all) in x, Px, PPx, ..., side by side.

    A few columns are propagated at a time, so that the other rows take little memory.

    >>> import scipy.sparse
    >>> ones = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> hop_rows(x, ones, torch.tensor([0]), 1, torch.float64)
    tensor([[1., 2., 3., 4.]], dtype=torch.float64)
    """
    count, width = x.shape[0] if nodes is None else len(nodes), x.shape[1]
    joined = x.new_empty(count, (hops + 1) * width, dtype=dtype)
    blocks = joined.split(width, dim=1) if width else ()
    wide = None if operator is None or not hops else operator.to(dtype)
    for start in range(0, width, COLUMNS):
        columns = slice(start, start + COLUMNS)
        part = x[:, columns].to(dtype).contiguous()
        for hop, block in enumerate(blocks):
            if hop:
                assert wide is not None
                part = wide @ part
            block[:, columns] = part if nodes is None else part[nodes]
    return joined


def sample_weight(labels: Tensor, class_weight: Tensor | None) -> Tensor:
    """Return the weight of each training node, in float64."""
    if class_weight is None:
        return torch.ones(len(labels), dtype=torch.float64, device=labels.device)
    return class_weight.double()[labels]
