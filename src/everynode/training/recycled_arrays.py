"""Reuse of arrays that are too large for malloc to keep."""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
#: Alignment in bytes for vectorized operations; torch's own allocator uses the same.
_ALIGNMENT = 64

#: Operations that create the arrays of a step, and their versions that write into given memory.
#: Other operations allocate as usual.
_INTO: dict[Any, Callable[..., Tensor]] = {
    aten.mm.default: aten.mm.out,
    aten.bmm.default: aten.bmm.out,
    aten.addmm.default: aten.addmm.out,
    aten.addbmm.default: aten.addbmm.out,
    aten.add.Tensor: aten.add.out,
    aten.sub.Tensor: aten.sub.out,
    aten.mul.Tensor: aten.mul.out,
    aten.exp.default: aten.exp.out,
    aten.sign.default: aten.sign.out,
    aten.index_select.default: aten.index_select.out,
    aten.threshold_backward.default: lambda *args, out: aten.threshold_backward.grad_input(
        *args, grad_input=out
    ),
    aten.new_empty.default: lambda *args, out, **options: out,
    aten.new_zeros.default: lambda *args, out, **options: out.zero_(),
}


class Recycling(TorchDispatchMode):
    """Reuse the memory of freed arrays of at least ``least`` bytes within a block.

    New memory costs as much as the arithmetic on it: at ten million edges, half of a step was spent
    in the kernel, page by page. malloc could keep the memory, but would cut it up for arrays of
    other sizes. Here memory is kept by size, which fits because all steps are alike. Sizes that
    change from step to step would each be kept. The first step only shows which operations create
    large arrays.

    torch has no such allocator for the CPU. This one sees every operation of both passes, below
    autograd. That costs some microseconds each, so it is for large graphs only. A tensor made here
    cannot grow in place.

    Parameters
    ----------
    least : int
        The size of the smallest array to reuse, in bytes.
    """

    def __init__(self, least: int):
        super().__init__()
        self.least = least
        self._results: dict[Hashable, tuple[torch.Size, torch.dtype] | None] = {}
        self._free: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        self._entered = 0

    def __enter__(self) -> Self:
        self._entered += 1
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._entered -= 1
        if not self._entered:
            self._free.clear()

    def __torch_dispatch__(
        self,
        operation: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operation, in reused memory if its result is known to be large."""
        kwargs = kwargs or {}
        into = _INTO.get(operation)
        if into is None or any(
            isinstance(value, Tensor) and value.layout is not torch.strided for value in args
        ):
            return operation(*args, **kwargs)
        key = (
            operation,
            *map(_outline, args),
            *((name, _outline(value)) for name, value in kwargs.items()),
        )
        if key not in self._results:
            result = operation(*args, **kwargs)
            ordinary = (
                result.device.type == "cpu"
                and result.layout is torch.strided
                and result.is_contiguous()
            )
            self._results[key] = (
                (result.shape, result.dtype) if ordinary and result.nbytes >= self.least else None
            )
            return result
        large = self._results[key]
        if large is None:
            return operation(*args, **kwargs)
        return into(*args, **kwargs, out=self._empty(*large))

    def _empty(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        free = self._free[size]
        memory = free.pop() if free else self._allocate(size)
        start = -memory.ctypes.data % _ALIGNMENT
        view = memory[start : start + size]
        # The storage holds this view, so it dies with the last tensor on it, autograd's included.
        weakref.finalize(view, self._give_back, size, memory).atexit = False
        return torch.from_numpy(view).view(dtype).view(shape)

    def _allocate(self, size: int) -> np.ndarray:
        """Return new memory from NumPy, which asks for huge pages."""
        try:
            return np.empty(size + _ALIGNMENT, dtype=np.uint8)
        except MemoryError:
            self._free.clear()
            return np.empty(size + _ALIGNMENT, dtype=np.uint8)

    def _give_back(self, size: int, memory: np.ndarray) -> None:
        if self._entered:
            self._free[size].append(memory)


def _outline(value: Any) -> Hashable:
    """Return everything that the shape and type of a result depend on."""
    if isinstance(value, Tensor):
        return (value.shape, value.stride(), value.dtype, value.device)
    if isinstance(value, float):
        return float
    return (type(value), tuple(value) if isinstance(value, list) else value)
