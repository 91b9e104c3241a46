"""The compiled kernels of :mod:`everynode.objectives.numba_kernels`, without importing numba."""

from __future__ import annotations

import ctypes
import functools
import importlib
from pathlib import Path
from typing import NamedTuple

from everynode import machine_code
from everynode.machine_code import Assembly, Function

#: The arguments of the kernels. numba's own two come first: a result and an error.
ARGUMENTS = {"shift": "pppiipip", "terms_and_gradient": "pppiipppippipppidddpppp"}


class Kernels(NamedTuple):
    """The two kernels of :mod:`everynode.objectives.numba_kernels`.

    Attributes
    ----------
    shift, terms_and_gradient : callable
        Functions of tensors and numbers.
    """

    shift: Function
    terms_and_gradient: Function


def padded(classes: int) -> int:
    """Return the number of columns of a row in the kernels.

    >>> padded(7), padded(8), padded(9)
    (8, 8, 16)
    """
    return (classes + 7) // 8 * 8


@functools.cache
def kernels(dtype: str) -> Kernels | None:
    """Return the kernels for 'float32' or 'float64'; None where there is no code."""

    def assembly() -> Assembly | None:
        try:
            module = importlib.import_module("everynode.objectives.numba_kernels")
        except ImportError:
            return None
        texts: Assembly = module.to_llvm(dtype)
        return texts

    source = Path(__file__).with_name("numba_kernels.py").read_bytes()
    functions = machine_code.load(ARGUMENTS, (source, dtype), assembly)
    if functions is None:
        return None
    # numba's functions take the addresses of their result and of an error. These have neither.
    unused = ctypes.create_string_buffer(16)
    where = ctypes.addressof(unused), ctypes.addressof(unused) + 8
    bound = [functools.partial(functions[name], *where) for name in ARGUMENTS]
    for function in bound:
        function.unused = unused  # type: ignore[attr-defined] # keeps the memory
    return Kernels(*bound)
