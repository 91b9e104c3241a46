"""Calls of the compiled kernels of :mod:`everynode.sparse.assembly`."""

from __future__ import annotations

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from everynode import machine_code
from everynode.machine_code import Function
from everynode.sparse.assembly import ARGUMENTS, assembly

if TYPE_CHECKING:
    from everynode.sparse.matrix import Pattern

NAMES = {torch.float32: "float32", torch.float64: "float64"}
#: Multiplications of a product that are worth a second thread.
WORTH_THREADS = 2**22
#: With fewer columns the library's product is as fast.
LEAST_COLUMNS = 16


@functools.cache
def kernels(dtype: str) -> dict[str, Function] | None:
    """Return the kernels for 'float32' or 'float64' by name; None where there is no code."""
    texts = assembly(dtype)
    return machine_code.load(ARGUMENTS, sorted(texts.items()), lambda: texts)


def kernels_for(values: Tensor, *arrays: Tensor) -> dict[str, Function] | None:
    """Return the kernels for these arrays; None if they need torch's operations."""
    dtype = values.dtype
    if dtype not in NAMES or values.device.type != "cpu":
        return None
    for array in arrays:
        if array.dtype is not dtype or array.dim() != 2 or array.shape[1] < LEAST_COLUMNS:
            return None
        if type(array) not in (Tensor, nn.Parameter):
            return None
    return kernels(NAMES[dtype])


def gather(
    kernel: Function,
    pattern: Pattern,
    values: Tensor,
    x: Tensor,
    factor: float,
    base: Tensor | None,
    weight: float,
    out: Tensor,
) -> Tensor:
    """Write ``factor * matrix @ x + weight * base`` to ``out``, which may be the base."""
    x, base = x.contiguous(), out if base is None else base.contiguous()
    fixed = x.shape[1], pattern.crow, pattern.col, values.contiguous()
    rest = x, base, factor, weight, out

    def rows(first: int, stop: int) -> None:
        kernel(first, stop, *fixed, *rest)

    _side_by_side(rows, pattern, x.shape[1])
    return out


def scatter(
    kernel: Function, pattern: Pattern, values: Tensor, x: Tensor, factor: float, out: Tensor
) -> Tensor:
    """Add ``factor * matrix.T @ x`` to ``out``."""
    x = x.contiguous()
    fixed = x.shape[1], pattern.crow, pattern.col, values.contiguous()
    kernel(0, pattern.shape[0], *fixed, x, factor, out)
    return out


def dots(kernel: Function, pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """Return ``a[i] . b[j]`` for each entry (i, j)."""
    a, b, out = a.contiguous(), b.contiguous(), a.new_zeros(pattern.nnz)

    def rows(first: int, stop: int) -> None:
        kernel(first, stop, a.shape[1], pattern.crow, pattern.col, a, b, out)

    _side_by_side(rows, pattern, a.shape[1])
    return out


def compact(kernel: Function, pattern: Pattern, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return row pointers, columns and values without the entries of value 0."""
    crow, col = torch.empty_like(pattern.crow), torch.empty_like(pattern.col)
    kept = torch.empty_like(values)
    arrays = pattern.crow, pattern.col, values.contiguous(), crow, col, kept
    kernel(0, pattern.shape[0], *arrays)
    count = int(crow[-1])
    return crow, col[:count], kept[:count]


def _side_by_side(rows: Any, pattern: Pattern, columns: int) -> None:
    """Call ``rows(first, stop)`` for parts of the rows with equally many entries, in threads."""
    threads = torch.get_num_threads()
    if threads == 1 or pattern.nnz * columns < WORTH_THREADS:
        rows(0, pattern.shape[0])
        return
    ends = torch.arange(1, threads) * (pattern.nnz // threads)
    cuts = [0, *torch.searchsorted(pattern.crow, ends).tolist(), pattern.shape[0]]
    parts = itertools.pairwise(cuts)
    list(_pool(threads).map(lambda part: rows(*part), parts))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
