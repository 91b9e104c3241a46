"""Arrays too large for malloc to keep, used again from step to step."""

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
#: Where vectorised operations want arrays to start, in bytes; it is what torch's own do.
_ALIGNMENT = 64

#: What makes the arrays of a step, and how to make them in memory that is there already. What is not here takes new memory, as always.
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
    """Within this block the memory of an array of at least ``least`` bytes serves the next one of its size once nobody has it.

    Fresh memory costs as much as the arithmetic done in it: at ten million edges half of a step was spent in the kernel, page by page.
    malloc could be told to keep it, but cuts it up for arrays of other sizes and takes much more. Here memory is kept by size, and since a
    step is like the last, it fits. (Sizes that change from step to step would each be kept.) The first step only shows which operations
    make large arrays.

    torch has no such allocator for the CPU. Below autograd, this sees every operation of both passes; that costs some microseconds each,
    so it is for large graphs only. A tensor made here cannot be resized to a larger one in place.
    """

    def __init__(self, least: int):
        super().__init__()
        self.least = least
        self._made: dict[Hashable, tuple[torch.Size, torch.dtype] | None] = {}
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
        """One operation, into memory that is there already if that is known to be large enough to matter."""
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
        if key not in self._made:
            result = operation(*args, **kwargs)
            ordinary = (
                result.device.type == "cpu"
                and result.layout is torch.strided
                and result.is_contiguous()
            )
            self._made[key] = (
                (result.shape, result.dtype) if ordinary and result.nbytes >= self.least else None
            )
            return result
        made = self._made[key]
        return (
            operation(*args, **kwargs)
            if made is None
            else into(*args, **kwargs, out=self._empty(*made))
        )

    def _empty(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        free = self._free[size]
        memory = free.pop() if free else self._new(size)
        start = -memory.ctypes.data % _ALIGNMENT
        view = memory[start : start + size]
        # The tensor's storage keeps this view, so it goes when the last tensor that shares the storage goes: autograd's too.
        weakref.finalize(view, self._give_back, size, memory).atexit = False
        return torch.from_numpy(view).view(dtype).view(shape)

    def _new(self, size: int) -> np.ndarray:
        """By NumPy, which asks for huge pages where there are any."""
        try:
            return np.empty(size + _ALIGNMENT, dtype=np.uint8)
        except MemoryError:
            self._free.clear()
            return np.empty(size + _ALIGNMENT, dtype=np.uint8)

    def _give_back(self, size: int, memory: np.ndarray) -> None:
        if self._entered:
            self._free[size].append(memory)


def _outline(value: Any) -> Hashable:
    """What the shape and type of a result may depend on; whatever number an array is multiplied by, they are the same."""
    if isinstance(value, Tensor):
        return (value.shape, value.stride(), value.dtype, value.device)
    if isinstance(value, float):
        return float
    return (type(value), tuple(value) if isinstance(value, list) else value)
