"""The linear layer of every model: on dense or sparse features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.sparse import SparseMatrix


class Linear(nn.Module):
    """``x W + b`` with W stored as inputs x outputs, so sparse features need no transposed copy.

    Parameters
    ----------
    inputs, outputs : int
        Number of columns before and after.
    generator : torch.Generator, optional
        Source of the initial weights (Glorot).

    Attributes
    ----------
    weight, bias : Parameter
        W, inputs x outputs, and b.

    Examples
    --------
    >>> Linear(4, 2)(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(self, inputs: int, outputs: int, *, generator: torch.Generator | None = None):
        super().__init__()
        weight = nn.init.xavier_uniform_(torch.empty(inputs, outputs), generator=generator)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """Map n x inputs, dense or sparse, to n x outputs."""
        if isinstance(x, Tensor):
            return torch.addmm(self.bias, x, self.weight)
        return (x.nonzeros @ self.weight).add_(self.bias)


def rows_divided_by_sum(x: Tensor) -> Tensor:
    """Return dense features, each row divided by its sum; a row of zeros stays zero.

    >>> rows_divided_by_sum(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.0000, 0.0000]])
    """
    total = x.abs().sum(1, keepdim=True)
    return x / torch.where(total > 0, total, 1.0)
