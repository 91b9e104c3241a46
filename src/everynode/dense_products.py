"""Products of dense matrices of nodes x channels.

torch multiplies float32 matrices with MKL, which is slow for tall and thin ones on AMD processors.
On one thread of a processor with AVX-512, the kernel of :mod:`everynode.dense_assembly` takes a
third of the time. MKL does the rest. (oneDNN keeps a program for every size, which costs a training
on sampled subgraphs a gigabyte.)
"""

from __future__ import annotations

import functools
import os

import torch
from torch import Tensor, nn

from everynode import machine_code
from everynode.dense_assembly import ARGUMENTS, CHUNKS, TYPES, assembly
from everynode.machine_code import Function

#: Rows of the smallest product that is worth a call of anything but torch's.
LEAST_ROWS = 128
NAMES = {torch.float32: "float32", torch.float64: "float64"}


@functools.cache
def kernel(dtype: str) -> Function | None:
    """Return the kernel for 'float32' or 'float64'; None without AVX-512."""
    if not machine_code.has("avx512f") or "EVERYNODE_NO_AVX512" in os.environ:
        return None
    texts = assembly(dtype)
    functions = machine_code.load(ARGUMENTS, sorted(texts.items()), lambda: texts)
    return functions["multiply"] if functions else None


def _kernel_for(a: Tensor, b: Tensor, out: Tensor | None = None) -> Function | None:
    """Return the kernel if it can and should multiply these."""
    if a.dtype not in NAMES or torch.get_num_threads() > 1:
        return None
    if b.shape[1] % (CHUNKS[-1] // TYPES[NAMES[a.dtype]][2]):
        return None
    if out is not None and not out.is_contiguous():
        return None
    return kernel(NAMES[a.dtype])


def _is_plain(a: Tensor, b: Tensor) -> bool:
    """Whether these are matrices in ordinary memory, and large enough."""
    return (
        not torch.compiler.is_compiling()  # an exported program takes graphs of any size
        and a.dtype is b.dtype
        and a.dim() == b.dim() == 2
        and a.device.type == b.device.type == "cpu"
        and a.layout is b.layout is torch.strided
        and max(a.shape) >= LEAST_ROWS
        and min(*a.shape, *b.shape) > 0
        and type(a) in (Tensor, nn.Parameter)
        and type(b) in (Tensor, nn.Parameter)
    )


def product(a: Tensor, b: Tensor, factor: float = 1.0) -> Tensor:
    """Return ``factor * a @ b``; not differentiable.

    >>> product(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    if not _is_plain(a, b):
        return a @ b if factor == 1.0 else (a @ b).mul_(factor)
    if _kernel_for(a, b):
        return add_product(a.new_empty(a.shape[0], b.shape[1]), a, b, factor, keep=0.0)
    return a @ b if factor == 1.0 else (a @ b).mul_(factor)


def add_product(
    base: Tensor, a: Tensor, b: Tensor, factor: float = 1.0, keep: float = 1.0
) -> Tensor:
    """Write ``keep * base + factor * a @ b`` to ``base`` and return it; not differentiable."""
    multiply = _kernel_for(a, b, base) if _is_plain(a, b) else None
    if multiply:
        b = b.contiguous()
        multiply(len(a), len(b), b.shape[1], a, *a.stride(), b, base, factor, keep)
        return base
    return base.addmm_(a, b, beta=keep, alpha=factor)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b``, differentiable any number of times."""
    result: Tensor = _Multiply.apply(a, b) if _is_plain(a, b) else a @ b
    return result


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(a, b)
        return product(a, b)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[no-untyped-def]
        return _gradients(ctx, grad)


def _gradients(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[no-untyped-def]
    a, b = ctx.saved_tensors
    at_a = multiply(grad, b.T) if ctx.needs_input_grad[0] else None
    at_b = multiply(a.T, grad) if ctx.needs_input_grad[1] else None
    return at_a, at_b
