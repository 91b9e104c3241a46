"""P-reg, the Laplacian-like regulariser that the paper compares TV with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.graph import Graph


def p_reg(logits: Tensor, graph: Graph) -> Tensor:
    r"""Each node's prediction should be the mean over itself and its neighbours (Yang et al. 2021, as this paper writes it).

    .. math:: \mathcal{L}_{P-reg} = \| \hat y - \tilde D^{-1} \tilde A \hat y \|_2^2

    A sum over nodes and classes, not a mean. ``logits``: n x k, of every node.
    """
    y = torch.softmax(logits, dim=-1)
    return (y - graph.mean_operator @ y).square().sum()


class PReg(nn.Module):
    """:func:`p_reg` for one graph."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return p_reg(logits, self.graph)
