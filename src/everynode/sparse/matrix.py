"""Constant sparse matrices: their pattern and transpose are prepared once.

Indices are int32, as torch's CSR kernels want them: int64 would be converted in every call.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.sparse.compiled import compact, kernels_for
from everynode.sparse.products import csr_tensor, product, transposed_product


class _Transposable(ABC):
    """Base of objects with a transpose, which is made once and whose transpose is this object.

    The transpose refers to this object weakly. Two strong references would form a cycle, and every
    training step would leave its arrays to the garbage collector.
    """

    #: Whether the object is its own transpose.
    symmetric = False
    _transpose: Self | None = None
    _transpose_of: weakref.ref[Self] | None = None

    @property
    def transpose(self) -> Self:
        """The transpose."""
        original = self._transpose_of() if self._transpose_of else None
        if self.symmetric:
            return self
        if original is not None:
            return original
        if self._transpose is None:
            self._transpose = self._transposed()
            self._transpose._transpose_of = weakref.ref(self)
        return self._transpose

    @abstractmethod
    def _transposed(self) -> Self: ...


class Pattern(_Transposable):
    """Positions of the entries of a sparse matrix, in CSR order.

    Parameters
    ----------
    crow
        Row pointers: the entries of row i are ``crow[i]`` to ``crow[i + 1]``.
    col
        Column of each entry.
    shape
        Rows and columns.
    """

    def __init__(self, crow: Tensor, col: Tensor, shape: tuple[int, int]):
        self.crow = crow.to(torch.int32)
        self.col = col.to(torch.int32)
        self.shape = shape

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """Row of each entry (int64, for indexing)."""
        counts = (self.crow[1:] - self.crow[:-1]).long()
        return torch.repeat_interleave(torch.arange(self.shape[0], device=self.crow.device), counts)

    @cached_property
    def column(self) -> Tensor:
        """Column of each entry (int64, for indexing)."""
        return self.col.long()

    @cached_property
    def order(self) -> Tensor:
        """Permutation that turns values of this pattern into values of its transpose."""
        if self.col.device.type != "cpu":
            return torch.argsort(self.column, stable=True)
        # SciPy counts instead of sorting, in a tenth of the time.
        entries = np.arange(self.nnz, dtype=np.int64)
        parts = (entries, self.col.numpy(), self.crow.numpy())
        return torch.from_numpy(scipy.sparse.csr_array(parts, shape=self.shape).tocsc().data)

    def _transposed(self) -> Pattern:
        counts = torch.bincount(self.column, minlength=self.shape[1])
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        other = Pattern(crow, self.row[self.order], (self.shape[1], self.shape[0]))
        inverse = torch.empty_like(self.order)
        inverse[self.order] = torch.arange(self.nnz, device=inverse.device)
        other.__dict__["order"] = inverse
        return other

    def sums(self, dtype: torch.dtype) -> tuple[SparseMatrix, SparseMatrix]:
        """Return two matrices that sum one number per entry, by row and by column."""
        ones = torch.ones(self.nnz, dtype=dtype, device=self.col.device)
        entries = torch.arange(self.nnz, device=self.col.device)
        by_row = Pattern(self.crow, entries, (self.shape[0], self.nnz))
        by_column = Pattern(self.transpose.crow, self.order, (self.shape[1], self.nnz))
        return SparseMatrix(by_row, ones), SparseMatrix(by_column, ones)

    def to(self, device: torch.device | str) -> Pattern:
        """Return the pattern on another device."""
        return Pattern(self.crow.to(device), self.col.to(device), self.shape)

    def __getstate__(self) -> dict[str, object]:
        """Return the arrays for copies and pickles, without rows, order and transpose."""
        return {"crow": self.crow, "col": self.col, "shape": self.shape}


def rows_of(pattern: Pattern, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the entries of some rows, and the row pointers of the pattern with only these rows."""
    start, end = pattern.crow[:-1].long()[rows], pattern.crow[1:].long()[rows]
    counts = end - start
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    offsets = torch.repeat_interleave(start - crow[:-1], counts)
    return torch.arange(int(crow[-1]), device=rows.device) + offsets, crow


class SparseMatrix(_Transposable):
    """Constant sparse matrix; ``matrix @ x`` is differentiable in ``x``, any number of times.

    Parameters
    ----------
    pattern
        Positions of the entries.
    values
        Value of each entry; no gradient flows to them.
    symmetric
        Whether the matrix is its own transpose, which then needs no second copy.
    once
        Whether the matrix lives for one step only, so that a transposed copy would not pay.

    Examples
    --------
    >>> m = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> m @ torch.eye(2)
    tensor([[0., 2.],
            [1., 0.]])
    """

    def __init__(
        self, pattern: Pattern, values: Tensor, *, symmetric: bool = False, once: bool = False
    ):
        self.pattern = pattern
        self.values = values
        self.symmetric = symmetric
        self.once = once

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        dtype: torch.dtype = torch.float32,
    ) -> SparseMatrix:
        """Convert a SciPy sparse matrix; repeated entries are summed, stored zeros dropped."""
        csr = scipy.sparse.csr_array(matrix, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        pattern = Pattern(torch.from_numpy(csr.indptr), torch.from_numpy(csr.indices), csr.shape)
        return cls(pattern, torch.from_numpy(csr.data.copy()).to(dtype))

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return a SciPy CSR array."""
        tensors = (self.values, self.pattern.col, self.pattern.crow)
        parts = tuple(tensor.cpu().numpy() for tensor in tensors)
        return scipy.sparse.csr_array(parts, shape=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        """Type of the values."""
        return self.values.dtype

    @cached_property
    def csr(self) -> Tensor:
        """The matrix as torch's CSR tensor."""
        return csr_tensor(self.pattern, self.values)

    def _transposed(self) -> SparseMatrix:
        return SparseMatrix(self.pattern.transpose, self.values.index_select(0, self.pattern.order))

    def rows(self, rows: Tensor) -> tuple[SparseMatrix, Tensor]:
        """Return a matrix of some rows, and the indices of its values in this matrix."""
        entries, crow = rows_of(self.pattern, rows)
        pattern = Pattern(crow, self.pattern.col[entries], (len(rows), self.shape[1]))
        return SparseMatrix(pattern, self.values[entries]), entries

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Return a matrix with other (constant) values at the same positions."""
        return self if values is self.values else SparseMatrix(self.pattern, values, once=True)

    @cached_property
    def nonzeros(self) -> SparseMatrix:
        """The matrix without the zeros that dropout left; itself if it is used more than once."""
        compiled = kernels_for(self.values) if self.once else None
        if not compiled:
            return self
        crow, col, values = compact(compiled["compact"], self.pattern, self.values)
        return SparseMatrix(Pattern(crow, col, self.shape), values, once=True)

    def __matmul__(self, x: Tensor) -> Tensor:
        return _Product.apply(x, self, 1.0, False)

    def product(self, x: Tensor, factor: float) -> Tensor:
        """Return ``factor * matrix @ x`` in one pass; differentiable in ``x``."""
        return _Product.apply(x, self, factor, False)

    def blend(self, x: Tensor, base: Tensor, weight: float) -> Tensor:
        """Return ``(1 - weight) * matrix @ x + weight * base``; differentiable in both.

        It saves passes over the nodes.
        """
        return _Blend.apply(x, base, self, weight)

    def into(
        self,
        x: Tensor,
        factor: float = 1.0,
        *,
        base: Tensor | None = None,
        weight: float = 0.0,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return ``factor * matrix @ x + weight * base``; not differentiable.

        ``out``: where to write the result; it may be the ``base``.
        """
        parts = self.pattern, self.values, x, factor
        return product(*parts, base=base, weight=weight, out=out)

    def transposed_into(self, x: Tensor, factor: float = 1.0, out: Tensor | None = None) -> Tensor:
        """Return ``factor * matrix.T @ x``, in ``out`` if it is given; not differentiable.

        A matrix that is used ``once`` is not transposed.
        """
        if self.once:
            return transposed_product(self.pattern, self.values, x, factor, out)
        return self.transpose.into(x, factor, out=out)

    def product_by_column(self, columns: Tensor) -> Tensor:
        """Return ``(matrix @ columns.T).T`` without a transposed copy; not differentiable."""
        out = columns.new_empty(columns.shape[0], self.shape[0])
        out.T.addmm_(self.csr, columns.T, beta=0.0)
        return out

    def products(self, xs: Tensor, out: Tensor | None = None) -> Tensor:
        """Return ``matrix @ xs[p]`` for every p, in ``out`` if it is given; not differentiable.

        It multiplies one after the other: over twice the columns, less of ``xs`` stays in a cache.
        """
        if out is None:
            out = xs.new_empty(len(xs), self.shape[0], xs.shape[2])
        for y, x in zip(out.unbind(), xs.unbind(), strict=True):
            self.into(x, out=y)
        return out

    def to(self, target: torch.dtype | torch.device | str) -> SparseMatrix:
        """Return the matrix with values of another type, or on another device."""
        pattern = self.pattern if isinstance(target, torch.dtype) else self.pattern.to(target)
        return SparseMatrix(pattern, self.values.to(target), symmetric=self.symmetric)

    def map(self, function: Callable[[Tensor], Tensor]) -> SparseMatrix:
        """Apply a function to the tensors, as ``nn.Module._apply`` does: a move or another type."""
        crow = function(self.pattern.crow)
        moved = crow.device != self.pattern.crow.device
        pattern = Pattern(crow, function(self.pattern.col), self.shape) if moved else self.pattern
        return SparseMatrix(pattern, function(self.values), symmetric=self.symmetric)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields for copies and pickles; torch cannot copy CSR tensors."""
        return {name: getattr(self, name) for name in ("pattern", "values", "symmetric", "once")}

    def to_dense(self) -> Tensor:
        """Return a dense tensor."""
        return self.csr.to_dense()


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, x: Tensor, matrix: SparseMatrix, factor: float, transposed: bool
    ) -> Tensor:
        ctx.matrix, ctx.factor, ctx.transposed = matrix, factor, transposed
        return matrix.transposed_into(x, factor) if transposed else matrix.into(x, factor)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[no-untyped-def]
        back = _Product.apply(grad, ctx.matrix, ctx.factor, not ctx.transposed)
        return back, None, None, None


class _Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, base: Tensor, matrix: SparseMatrix, weight: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix, ctx.weight = matrix, weight
        return matrix.into(x, 1.0 - weight, base=base, weight=weight)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[no-untyped-def]
        grad_x = _Product.apply(grad, ctx.matrix, 1.0 - ctx.weight, True)
        return grad_x, grad * ctx.weight, None, None
