"""Products of sparse and dense matrices, differentiable any number of times.

Two products suffice, because the derivatives of each consist of these two:

* ``spmm(P, v, x)``: :math:`y_i = \\sum_{(i,j) \\in P} v_{ij}\\, x_j`, with
  :math:`\\partial v = \\mathrm{sddmm}(P, g, x)` and
  :math:`\\partial x = \\mathrm{spmm}(P^\\top, v^\\top, g)`;
* ``sddmm(P, a, b)``: :math:`v_{ij} = a_i \\cdot b_j` for :math:`(i,j) \\in P`, with
  :math:`\\partial a = \\mathrm{spmm}(P, g, b)` and
  :math:`\\partial b = \\mathrm{spmm}(P^\\top, g^\\top, a)`.

Neither creates an array of edges x channels. On a CPU both use compiled kernels
(:mod:`everynode.sparse.assembly`); elsewhere, torch's for CSR.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from everynode.sparse.compiled import dots, gather, kernels_for, scatter

if TYPE_CHECKING:
    from everynode.sparse.matrix import Pattern

# torch warns once per process that CSR tensors are in beta; users can do nothing about it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


def spmm(pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
    """Multiply a sparse by a dense matrix: ``y[i]`` sums ``values[e] * x[j]`` over ``e = (i, j)``.

    Parameters
    ----------
    pattern
        Positions of the entries of the r x c sparse matrix.
    values
        Value of each entry.
    x
        c x channels dense matrix.
    """
    return _SpMM.apply(values, x, pattern)


def sddmm(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """Return the entries of ``a @ b.T`` at the positions of the pattern: ``v[e] = a[i] . b[j]``.

    Parameters
    ----------
    pattern
        Positions in an r x c matrix.
    a, b
        r x channels and c x channels dense matrices.
    """
    return _SDDMM.apply(a, b, pattern)


def csr_tensor(pattern: Pattern, values: Tensor) -> Tensor:
    """Return torch's CSR tensor with these values; nothing is copied or checked."""
    return torch.sparse_csr_tensor(
        pattern.crow, pattern.col, values, pattern.shape, check_invariants=False
    )


def product(
    pattern: Pattern,
    values: Tensor,
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
    if out is None:
        out = x.new_empty(pattern.shape[0], x.shape[1])
    compiled = kernels_for(values, x, out) if out.is_contiguous() else None
    if compiled:
        return gather(compiled["gather"], pattern, values, x, factor, base, weight, out)
    if base is not None and base is not out:
        out.copy_(base)
    # `csr @ x` zeroes and copies its result first, which takes as long as the product itself.
    beta = 0.0 if base is None else weight
    return out.addmm_(csr_tensor(pattern, values), x, beta=beta, alpha=factor)


def transposed_product(
    pattern: Pattern, values: Tensor, x: Tensor, factor: float = 1.0, out: Tensor | None = None
) -> Tensor:
    """Return ``factor * matrix.T @ x`` without a transposed matrix; not differentiable."""
    compiled = kernels_for(values, x)
    if out is None or not out.is_contiguous():
        result = x.new_zeros(pattern.shape[1], x.shape[1])
    else:
        result = out.zero_()
    if compiled:
        scatter(compiled["scatter"], pattern, values, x, factor, result)
    else:
        transposed = csr_tensor(pattern.transpose, values.index_select(0, pattern.order))
        result.addmm_(transposed, x, beta=0.0, alpha=factor)
    return result if out is None or out is result else out.copy_(result)


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, x: Tensor, pattern: Pattern) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(values, x)
        ctx.pattern = pattern
        return product(pattern, values, x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[no-untyped-def]
        values, x = ctx.saved_tensors
        pattern = ctx.pattern
        grad_values = sddmm(pattern, grad, x) if ctx.needs_input_grad[0] else None
        grad_x = None
        if ctx.needs_input_grad[1]:
            grad_x = _TransposedSpMM.apply(values, grad, pattern)
        return grad_values, grad_x, None


class _TransposedSpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, x: Tensor, pattern: Pattern) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(values, x)
        ctx.pattern = pattern
        return transposed_product(pattern, values, x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[no-untyped-def]
        values, x = ctx.saved_tensors
        grad_values = sddmm(ctx.pattern, x, grad) if ctx.needs_input_grad[0] else None
        grad_x = spmm(ctx.pattern, values, grad) if ctx.needs_input_grad[1] else None
        return grad_values, grad_x, None


class _SDDMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor, pattern: Pattern) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(a, b)
        ctx.pattern = pattern
        compiled = kernels_for(a, a, b)
        if compiled:
            return dots(compiled["dots"], pattern, a, b)
        zeros = csr_tensor(pattern, a.new_zeros(pattern.nnz))
        result = torch.sparse.sampled_addmm(zeros, a.contiguous(), b.contiguous().T, beta=0.0)
        return result.values()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[no-untyped-def]
        a, b = ctx.saved_tensors
        pattern = ctx.pattern
        grad_a = spmm(pattern, grad, b) if ctx.needs_input_grad[0] else None
        grad_b = None
        if ctx.needs_input_grad[1]:
            grad_b = _TransposedSpMM.apply(grad, a, pattern)
        return grad_a, grad_b, None
