"""Arrays too large for malloc to keep, used again from step to step."""

from __future__ import annotations

import math
import mmap
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

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
    aten.threshold_backward.default: lambda *args, out: aten.threshold_backward.grad_input(*args, grad_input=out),
    aten.new_empty.default: lambda *args, out, **options: out,
    aten.new_zeros.default: lambda *args, out, **options: out.zero_(),
}


class Recycling(TorchDispatchMode):
    """Within this block the memory of an array of at least ``least`` bytes serves the next one of its size once nobody has it.

    Fresh memory costs more than the arithmetic done in it: at ten million edges more than half of a step was spent in the kernel, page by
    page. malloc could be told to keep it, but cuts it up for arrays of other sizes and takes half as much again. Here memory is kept by
    size, and since a step is like the last, it fits. The first step only shows which operations make large arrays.

    torch has no such allocator for the CPU. Below autograd, this sees every operation of both passes; that costs some microseconds each,
    so it is for large graphs only.
    """

    def __init__(self, least: int):
        super().__init__()
        self.least = least
        self._made: dict[Hashable, tuple[torch.Size, torch.dtype] | None] = {}
        self._free: defaultdict[int, list[mmap.mmap]] = defaultdict(list)

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """One operation, into memory that is there already if that is known to be large enough to matter."""
        kwargs = kwargs or {}
        into = _INTO.get(operation)
        if into is None:
            return operation(*args, **kwargs)
        key = (operation, *map(_outline, args), *((name, _outline(value)) for name, value in kwargs.items()))
        if key not in self._made:
            result = operation(*args, **kwargs)
            large = result.device.type == "cpu" and result.is_contiguous() and result.nbytes >= self.least
            self._made[key] = (result.shape, result.dtype) if large else None
            return result
        made = self._made[key]
        return operation(*args, **kwargs) if made is None else into(*args, **kwargs, out=self._empty(*made))

    def _empty(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        free = self._free[size]
        memory = free.pop() if free else mmap.mmap(-1, size)
        view = np.frombuffer(memory, dtype=np.uint8)
        # The tensor's storage keeps this view, so it goes when the last tensor that shares the storage goes: autograd's too.
        weakref.finalize(view, free.append, memory).atexit = False
        return torch.from_numpy(view).view(dtype).view(shape)


def _outline(value: Any) -> Hashable:
    """What the shape of a result may depend on."""
    if isinstance(value, Tensor):
        return (value.shape, value.layout, value.dtype, value.stride() if value.layout is torch.strided else None)
    return tuple(value) if isinstance(value, list) else value
