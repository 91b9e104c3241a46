"""Cross-entropy on the labelled nodes."""

from __future__ import annotations

from torch import Tensor, nn

from everynode.errors import DataError
from everynode.graph import Graph


def cross_entropy(logits: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    r"""The mean negative log-likelihood of the labels of ``nodes``.

    .. math:: \mathcal{L}_{CE} = -\frac{1}{|V^{lab}|} \sum_{i \in V^{lab}} \sum_{s=1}^{k} y_{i,s} \log \hat y_{i,s}

    ``logits``: n x k; ``labels``: class indices of all n nodes; ``nodes``: :math:`V^{lab}`, as indices.

    >>> import torch
    >>> cross_entropy(torch.zeros(3, 2), torch.tensor([0, 1, -1]), torch.tensor([0, 1]))
    tensor(0.6931)
    """
    return nn.functional.cross_entropy(logits[nodes], labels[nodes])


class CrossEntropy(nn.Module):
    """:func:`cross_entropy` on the training nodes of one fold of a graph."""

    labels: Tensor
    nodes: Tensor

    def __init__(self, graph: Graph, *, fold: int = 0):
        super().__init__()
        nodes = graph.nodes("train", fold)
        if not len(nodes):
            raise DataError(f"Fold {fold} of graph {graph.name!r} has no labelled training node: label a few nodes of each class first.")
        self.register_buffer("labels", graph.labels, persistent=False)
        self.register_buffer("nodes", nodes, persistent=False)

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return cross_entropy(logits, self.labels, self.nodes)
