"""The sparse products that everything runs on, each differentiable as often as one likes.

Two products are enough, because the derivative of each is made of the two:

* ``spmm(P, v, x)``: :math:`y_i = \\sum_{(i,j) \\in P} v_{ij}\\, x_j`, with
  :math:`\\partial v = \\mathrm{sddmm}(P, g, x)` and :math:`\\partial x = \\mathrm{spmm}(P^\\top, v^\\top, g)`;
* ``sddmm(P, a, b)``: :math:`v_{ij} = a_i \\cdot b_j` for :math:`(i,j) \\in P`, with
  :math:`\\partial a = \\mathrm{spmm}(P, g, b)` and :math:`\\partial b = \\mathrm{spmm}(P^\\top, g^\\top, a)`.

Neither ever makes an array of edges x channels. Both run on torch's own CSR kernels (MKL on a CPU). Indices are kept as int32,
which is what those kernels want: int64 would be converted in every call.
"""

from __future__ import annotations

import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

# torch says once per process that CSR tensors are in beta. Users of this library can do nothing with that, so it is said here, unheard.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


class _Transposable(ABC):
    """What has a transpose, made once; its own transpose is this one.

    The transpose knows of this one only weakly: two that refer to each other are freed when Python next looks for such circles, and
    until then every step of a training leaves its arrays behind.
    """

    #: Whether it is its own transpose.
    symmetric = False
    _made: Self | None = None
    _made_from: weakref.ref[Self] | None = None

    @property
    def transpose(self) -> Self:
        """The transpose, its own transpose being this one."""
        back = self if self.symmetric else self._made_from() if self._made_from else None
        if back is not None:
            return back
        if self._made is None:
            self._made = self._transposed()
            self._made._made_from = weakref.ref(self)
        return self._made

    @abstractmethod
    def _transposed(self) -> Self: ...


class Pattern(_Transposable):
    """Where the entries of a sparse matrix are: CSR row pointers and column indices, without values."""

    def __init__(self, crow: Tensor, col: Tensor, shape: tuple[int, int]):
        self.crow = crow.to(torch.int32)
        self.col = col.to(torch.int32)
        self.shape = shape

    @property
    def nnz(self) -> int:
        """How many entries there are."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry (int64, for indexing)."""
        counts = (self.crow[1:] - self.crow[:-1]).long()
        return torch.repeat_interleave(torch.arange(self.shape[0], device=self.crow.device), counts)

    @cached_property
    def column(self) -> Tensor:
        """The column of each entry (int64, for indexing)."""
        return self.col.long()

    @cached_property
    def order(self) -> Tensor:
        """The permutation that carries values of this pattern to values of its transpose."""
        if self.col.device.type != "cpu":
            return torch.argsort(self.column, stable=True)
        # The same by counting, in a tenth of the time.
        entries = np.arange(self.nnz, dtype=np.int64)
        return torch.from_numpy(
            scipy.sparse.csr_array((entries, self.col.numpy(), self.crow.numpy()), shape=self.shape)
            .tocsc()
            .data
        )

    def _transposed(self) -> Pattern:
        counts = torch.bincount(self.column, minlength=self.shape[1])
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        other = Pattern(crow, self.row[self.order], (self.shape[1], self.shape[0]))
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(self.nnz, device=back.device)
        other.__dict__["order"] = back
        return other

    def sums(self, dtype: torch.dtype) -> tuple[SparseMatrix, SparseMatrix]:
        """The matrices that add up numbers, one for each entry of this pattern: by row, and by column."""
        ones = torch.ones(self.nnz, dtype=dtype, device=self.col.device)
        by_row = Pattern(
            self.crow, torch.arange(self.nnz, device=self.col.device), (self.shape[0], self.nnz)
        )
        by_column = Pattern(self.transpose.crow, self.order, (self.shape[1], self.nnz))
        return SparseMatrix(by_row, ones), SparseMatrix(by_column, ones)

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        return Pattern(self.crow.to(device), self.col.to(device), self.shape)

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what is prepared (rows, order, transpose) is prepared again where it is needed."""
        return {"crow": self.crow, "col": self.col, "shape": self.shape}


def rows_of(pattern: Pattern, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of some rows of a pattern, and the row pointers of the pattern that has only these rows."""
    start, end = pattern.crow[:-1].long()[rows], pattern.crow[1:].long()[rows]
    counts = end - start
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = torch.arange(int(crow[-1]), device=rows.device) + torch.repeat_interleave(
        start - crow[:-1], counts
    )
    return entries, crow


def _csr(pattern: Pattern, values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(
        pattern.crow, pattern.col, values, pattern.shape, check_invariants=False
    )


def _product(csr: Tensor, x: Tensor, factor: float = 1.0) -> Tensor:
    # `csr @ x` fills its result with zeros and copies it before it multiplies, which takes as long as the product itself.
    return x.new_empty(csr.shape[0], x.shape[1]).addmm_(csr, x, beta=0.0, alpha=factor)


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, x: Tensor, pattern: Pattern) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(values, x)
        ctx.pattern = pattern
        return _product(_csr(pattern, values), x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[no-untyped-def]
        values, x = ctx.saved_tensors
        pattern = ctx.pattern
        grad_values = sddmm(pattern, grad, x) if ctx.needs_input_grad[0] else None
        grad_x = None
        if ctx.needs_input_grad[1]:
            grad_x = spmm(pattern.transpose, values.index_select(0, pattern.order), grad)
        return grad_values, grad_x, None


class _SDDMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor, pattern: Pattern) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(a, b)
        ctx.pattern = pattern
        zeros = _csr(pattern, a.new_zeros(pattern.nnz))
        return torch.sparse.sampled_addmm(
            zeros, a.contiguous(), b.contiguous().T, beta=0.0
        ).values()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[no-untyped-def]
        a, b = ctx.saved_tensors
        pattern = ctx.pattern
        grad_a = spmm(pattern, grad, b) if ctx.needs_input_grad[0] else None
        grad_b = (
            spmm(pattern.transpose, grad.index_select(0, pattern.order), a)
            if ctx.needs_input_grad[1]
            else None
        )
        return grad_a, grad_b, None


def spmm(pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
    """Sparse times dense: ``y[i] = sum of values[e] * x[j]`` over the entries ``e = (i, j)`` of the pattern."""
    return _SpMM.apply(values, x, pattern)


def sddmm(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """The product ``a @ b.T`` at the entries of the pattern only: ``v[e] = a[i] . b[j]``."""
    return _SDDMM.apply(a, b, pattern)


class _Operator(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, matrix: SparseMatrix, factor: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix, ctx.factor = matrix, factor
        return _product(matrix.csr, x, factor)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        return _Operator.apply(grad, ctx.matrix.transpose, ctx.factor), None, None


class _Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, base: Tensor, matrix: SparseMatrix, weight: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix, ctx.weight = matrix, weight
        return (base * weight).addmm_(matrix.csr, x, alpha=1.0 - weight)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[no-untyped-def]
        return (
            _Operator.apply(grad, ctx.matrix.transpose, 1.0 - ctx.weight),
            grad * ctx.weight,
            None,
            None,
        )


class SparseMatrix(_Transposable):
    """A constant sparse matrix, prepared once together with its transpose; ``matrix @ x`` is differentiable in ``x``.

    ``symmetric``: it is known to be its own transpose, which then needs no second copy.

    >>> m = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> m @ torch.eye(2)
    tensor([[0., 2.],
            [1., 0.]])
    """

    def __init__(self, pattern: Pattern, values: Tensor, *, symmetric: bool = False):
        self.pattern = pattern
        self.values = values
        self.symmetric = symmetric

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        dtype: torch.dtype = torch.float32,
    ) -> SparseMatrix:
        """From any SciPy sparse matrix; repeated entries are added up, stored zeros dropped."""
        csr = scipy.sparse.csr_array(matrix, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        pattern = Pattern(torch.from_numpy(csr.indptr), torch.from_numpy(csr.indices), csr.shape)
        return cls(pattern, torch.from_numpy(csr.data.copy()).to(dtype))

    def to_scipy(self) -> scipy.sparse.csr_array:
        """As a SciPy CSR array (on the CPU)."""
        parts = (
            self.values.cpu().numpy(),
            self.pattern.col.cpu().numpy(),
            self.pattern.crow.cpu().numpy(),
        )
        return scipy.sparse.csr_array(parts, shape=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @cached_property
    def csr(self) -> Tensor:
        """As torch's CSR tensor."""
        return _csr(self.pattern, self.values)

    def _transposed(self) -> SparseMatrix:
        return SparseMatrix(self.pattern.transpose, self.values.index_select(0, self.pattern.order))

    def rows(self, rows: Tensor) -> tuple[SparseMatrix, Tensor]:
        """Some rows, and which of the values these have."""
        entries, crow = rows_of(self.pattern, rows)
        pattern = Pattern(crow, self.pattern.col[entries], (len(rows), self.shape[1]))
        return SparseMatrix(pattern, self.values[entries]), entries

    def with_values(self, values: Tensor) -> SparseMatrix:
        """A matrix with other values (on which gradients do not depend) in the same places."""
        return self if values is self.values else SparseMatrix(self.pattern, values)

    def __matmul__(self, x: Tensor) -> Tensor:
        return _Operator.apply(x, self, 1.0)

    def product_by_column(self, columns: Tensor) -> Tensor:
        """``(matrix @ columns.T).T`` without a transposed copy; not differentiable."""
        out = columns.new_empty(columns.shape[0], self.shape[0])
        out.T.addmm_(self.csr, columns.T, beta=0.0)
        return out

    def product(self, x: Tensor, factor: float) -> Tensor:
        """``factor * matrix @ x`` in one pass; differentiable in ``x``."""
        return _Operator.apply(x, self, factor)

    def products(self, xs: Tensor, out: Tensor | None = None) -> Tensor:
        """``matrix @ xs[p]`` for every p, into ``out`` if it is given; not differentiable.

        One product after the other: over twice as many columns MKL takes up to five times as long.
        """
        if out is None:
            out = xs.new_empty(len(xs), self.shape[0], xs.shape[2])
        for y, x in zip(out.unbind(), xs.unbind(), strict=True):
            y.addmm_(self.csr, x, beta=0.0)
        return out

    def blend(self, x: Tensor, base: Tensor, weight: float) -> Tensor:
        """``(1 - weight) * matrix @ x + weight * base`` without a pass over the nodes for each operation; differentiable in both."""
        return _Blend.apply(x, base, self, weight)

    def to(self, target: torch.dtype | torch.device | str) -> SparseMatrix:
        """The same matrix with values of another type, or on another device."""
        if isinstance(target, torch.dtype):
            return SparseMatrix(self.pattern, self.values.to(target), symmetric=self.symmetric)
        return SparseMatrix(
            self.pattern.to(target), self.values.to(target), symmetric=self.symmetric
        )

    def map(self, function: Callable[[Tensor], Tensor]) -> SparseMatrix:
        """With a function applied to its tensors, as ``nn.Module._apply`` does to a module's: a move or another type."""
        crow = function(self.pattern.crow)
        moved = crow.device != self.pattern.crow.device
        pattern = Pattern(crow, function(self.pattern.col), self.shape) if moved else self.pattern
        return SparseMatrix(pattern, function(self.values), symmetric=self.symmetric)

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what is prepared can be prepared again, and torch cannot copy CSR tensors."""
        return {"pattern": self.pattern, "values": self.values, "symmetric": self.symmetric}

    def to_dense(self) -> Tensor:
        """As a dense tensor."""
        return self.csr.to_dense()


def draw_noise(shape: torch.Size | tuple[int, ...], like: Tensor) -> Tensor:
    """Uniform noise in [-32768, 32768), in whole numbers, for :func:`drop`.

    torch's own random numbers cost more on a CPU than all the arithmetic of a small network, so there the bits come from NumPy's
    SFC64, sixteen to a number, seeded by one draw from torch's generator: ``torch.manual_seed`` still rules.
    """
    if like.device.type != "cpu":
        return torch.randint(-32768, 32768, shape, device=like.device, dtype=torch.int16).to(
            like.dtype
        )
    source = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
    noise = like.new_empty(shape)
    for part in noise.view(-1).split(
        2**22
    ):  # so that the bits of a large array need not have room beside it
        part.copy_(
            torch.from_numpy(source.random_raw(-(-len(part) // 4)).view(np.int16)[: len(part)])
        )
    return noise


def drop(x: Tensor, p: float, noise: Tensor) -> Tensor:
    """Inverted dropout: zero where the noise falls below its p-quantile (so p is met to 1/65536), else ``x / (1 - p)``."""
    # "x where noise > t, else 0" has one vectorised kernel in torch, ReLU's derivative; torch.where takes twenty times as long.
    return torch.ops.aten.threshold_backward(x, noise, round(p * 65536) - 32769).mul_(
        1.0 / (1.0 - p)
    )


def where_positive(values: Tensor, x: Tensor) -> Tensor:
    """``x``, which may have more dimensions, where the ``values`` are positive, else 0: in place; not differentiable."""
    return torch.ops.aten.threshold_backward.grad_input(
        x, values, 0.0, grad_input=x
    )  # ReLU's derivative
