"""Cross-entropy on the labelled nodes."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from everynode.errors import DataError, require
from everynode.graph import Graph

ClassWeight = Literal["balanced"]


def cross_entropy(
    logits: Tensor, labels: Tensor, nodes: Tensor, weight: Tensor | None = None
) -> Tensor:
    r"""The mean negative log-likelihood of the labels of ``nodes``, weighted by class if a ``weight`` per class is given.

    .. math:: \mathcal{L}_{CE} = -\frac{1}{|V^{lab}|} \sum_{i \in V^{lab}} \sum_{s=1}^{k} y_{i,s} \log \hat y_{i,s}

    ``logits``: n x k; ``labels``: class indices of all n nodes; ``nodes``: :math:`V^{lab}`, as indices. With weights a node counts
    :math:`w_{y_i}` times, and the sum is divided by :math:`\sum_{i \in V^{lab}} w_{y_i}`.

    >>> import torch
    >>> cross_entropy(torch.zeros(3, 2), torch.tensor([0, 1, -1]), torch.tensor([0, 1]))
    tensor(0.6931)
    """
    return nn.functional.cross_entropy(
        logits[nodes], labels[nodes], None if weight is None else weight.to(logits.dtype)
    )


def balanced(labels: Tensor, num_classes: int) -> Tensor:
    """Weights per class with which all classes among ``labels`` weigh the same, and the labels 1 on average (scikit-learn's "balanced").

    >>> balanced(torch.tensor([0, 0, 0, 1]), 2)
    tensor([0.6667, 2.0000], dtype=torch.float64)
    """
    count = torch.bincount(labels, minlength=num_classes).double()
    return len(labels) / ((count > 0).sum() * count.clamp_min(1.0))


class CrossEntropy(nn.Module):
    """:func:`cross_entropy` on the training nodes of one fold of a graph.

    ``class_weight``: None, or ``balanced`` to let every class weigh the same however many of its nodes are labelled.
    """

    labels: Tensor
    nodes: Tensor
    #: Per class, or None; and of each training node, 1 on average.
    weight: Tensor | None
    node_weight: Tensor

    def __init__(self, graph: Graph, *, fold: int = 0, class_weight: ClassWeight | None = None):
        super().__init__()
        require(
            class_weight in (None, "balanced"),
            "class_weight",
            "CrossEntropy",
            "None or 'balanced'",
            class_weight,
        )
        nodes = graph.nodes("train", fold)
        if not len(nodes):
            raise DataError(
                f"Fold {fold} of graph {graph.name!r} has no labelled training node: label a few nodes of each class first."
            )
        self.register_buffer("labels", graph.labels, persistent=False)
        self.register_buffer("nodes", nodes, persistent=False)
        weight = balanced(graph.labels[nodes], graph.num_classes) if class_weight else None
        of_nodes = (
            torch.ones(len(nodes), dtype=torch.float64, device=nodes.device)
            if weight is None
            else weight[graph.labels[nodes]]
        )
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("node_weight", of_nodes, persistent=False)

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return cross_entropy(logits, self.labels, self.nodes, self.weight)
