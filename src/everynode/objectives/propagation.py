"""P-reg, the Laplacian-like regulariser that the paper compares TV with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from everynode.graph import Graph


def p_reg(logits: Tensor, graph: Graph) -> Tensor:
    r"""Each node's prediction should be the mean over itself and its neighbours (Yang et al. 2021, as this paper writes it).

    .. math:: \mathcal{L}_{P-reg} = \| \hat y - \tilde D^{-1} \tilde A \hat y \|_2^2

    A sum over nodes and classes, not a mean. ``logits``: n x k, of every node.
    """
    return PReg(graph)(logits)


class PReg(nn.Module):
    """:func:`p_reg` for one graph."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.operator = graph.mean_operator

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.operator = self.operator.map(fn)  # a sparse matrix cannot be a buffer, but moves like one
        return super()._apply(fn, recurse)

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        if self.operator.dtype != logits.dtype:
            self.operator = self.operator.to(logits.dtype)
        y = torch.softmax(logits, dim=-1)
        return (y - self.operator @ y).square().sum()
