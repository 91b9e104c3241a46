"""What the terms that multiply by a matrix of the graph have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from everynode.sparse import SparseMatrix


class OnGraph(nn.Module):
    """A term with a sparse ``operator`` of the graph, which is in the precision that it was made in, and in that of the logits too."""

    def __init__(self, operator: SparseMatrix):
        super().__init__()
        self.operator = operator
        self._converted = operator

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.operator = self._converted = self.operator.map(
            fn
        )  # a sparse matrix cannot be a buffer, but moves like one
        return super()._apply(fn, recurse)

    def operator_in(self, dtype: torch.dtype) -> SparseMatrix:
        """The operator in another precision: always made of the first one, so that none is lost on the way."""
        if self._converted.dtype != dtype:
            self._converted = (
                self.operator if dtype == self.operator.dtype else self.operator.to(dtype)
            )
        return self._converted
