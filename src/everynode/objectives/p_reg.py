"""P-reg, the Laplacian-like regulariser that the paper compares TV with."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.numerics import at_least_single
from everynode.objectives.graph_term import OnGraph


def p_reg(logits: Tensor, graph: Graph) -> Tensor:
    r"""Each node's prediction should be the mean over itself and its neighbours (Yang et al. 2021, as this paper writes it).

    .. math:: \mathcal{L}_{P-reg} = \| \hat y - \tilde D^{-1} \tilde A \hat y \|_2^2

    A sum over nodes and classes, not a mean. ``logits``: n x k, of every node.
    """
    return PReg(graph)(logits)


class PReg(OnGraph):
    """:func:`p_reg` for one graph."""

    def __init__(self, graph: Graph):
        super().__init__(graph.mean_operator)

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        y = torch.softmax(logits, dim=-1, dtype=at_least_single(logits.dtype))
        return (y - self.operator_in(y.dtype) @ y).square().sum()
