"""The compiled kernels of :mod:`everynode.objectives.numba_kernels`, without importing numba.

numba compiles them once per machine. Their machine code is kept on disk, and llvmlite loads it
within milliseconds, where numba takes a third of a second to import and set itself up.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from everynode.errors import DataError
from everynode.storage.atomic import write_atomically

#: The arguments of the kernels: tensors as addresses (p), sizes (i) and numbers (d).
ARGUMENTS = {"shift": "piipip", "terms_and_gradient": "piipppippipppidddpppp"}
C_TYPES: dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "d": ctypes.c_double}
#: The bytes of the digest in front of the machine code on disk.
DIGEST = hashlib.sha256().digest_size


class Kernels(NamedTuple):
    """The two kernels, and the memory of their code.

    Attributes
    ----------
    shift, terms_and_gradient : callable
        The kernels of :mod:`everynode.objectives.numba_kernels`.
    engine : object
        The owner of the memory.
    """

    shift: Callable[..., None]
    terms_and_gradient: Callable[..., None]
    engine: Any


def padded(classes: int) -> int:
    """Return the number of columns of a row in the kernels.

    >>> padded(7), padded(8), padded(9)
    (8, 8, 16)
    """
    return (classes + 7) // 8 * 8


@functools.cache
def kernels(dtype: str) -> Kernels | None:
    """Return the kernels for 'float32' or 'float64'.

    None without numba, if ``NUMBA_DISABLE_JIT`` is set, or if their code needs another library.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return None
    try:
        import llvmlite.binding as llvm  # only now: a training without these terms needs none
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
    name = _file_name(llvm, dtype)
    code = _read(name)
    if code is None:
        try:
            module = importlib.import_module("everynode.objectives.numba_kernels")
        except ImportError:
            return None
        code = _compile(llvm, machine, module.to_llvm(dtype))
        if code is None:
            return None
        _keep(name, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    shift, terms_and_gradient = (_function(engine, kernel) for kernel in ARGUMENTS)
    return Kernels(shift, terms_and_gradient, engine)


def _compile(llvm: Any, machine: Any, assembly: dict[str, tuple[str, str]]) -> bytes | None:
    """Return the object code of the kernels; None if it calls functions that may be missing."""
    whole = llvm.parse_assembly("")
    for kernel, (text, native_name) in assembly.items():
        part = llvm.parse_assembly(text)
        for function in part.functions:
            if not function.is_declaration and function.name != native_name:
                function.linkage = "internal"
        part.get_function(native_name).name = kernel
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(part, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        whole.link_in(part)
    needed = [f.name for f in whole.functions if f.is_declaration]
    # A missing symbol would end the process. Intrinsics become instructions or calls of libm.
    if not all(name.startswith("llvm.") for name in needed):
        return None
    code: bytes = machine.emit_object(whole)
    return code


def _function(engine: Any, kernel: str) -> Callable[..., None]:
    """Return a kernel as a function of tensors and numbers.

    numba's functions take the addresses of their result and of an error first. These kernels have
    neither.
    """
    types = [C_TYPES[letter] for letter in ARGUMENTS[kernel]]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)
    native = prototype(engine.get_function_address(kernel))
    unused = ctypes.create_string_buffer(16)
    result = ctypes.addressof(unused)

    def call(*arguments: Tensor | float) -> None:
        native(
            result, result + 8, *[a.data_ptr() if isinstance(a, Tensor) else a for a in arguments]
        )

    call.unused = unused  # type: ignore[attr-defined] # keeps the memory
    return call


def _file_name(llvm: Any, dtype: str) -> str:
    """Return a file name that changes with the source, the compiler and the processor."""
    source = Path(__file__).with_name("numba_kernels.py").read_bytes()
    of_machine = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    version = importlib.import_module("llvmlite").__version__
    content = repr((source, version, *of_machine, features, dtype))
    return f"kernels-{hashlib.sha256(content.encode()).hexdigest()[:32]}.o"


def _folders() -> Iterator[Path]:
    """Yield the folders for machine code: beside the source, or in the home of the user."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield Path(__file__).parent / "__pycache__"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    yield Path(base).expanduser() / "everynode"


def _read(name: str) -> bytes | None:
    """Return kept machine code; None without an undamaged file."""
    for folder in _folders():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            continue
        digest, code = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def _keep(name: str, code: bytes) -> None:
    """Write machine code to the first folder that takes it."""
    for folder in _folders():
        try:
            write_atomically(folder / name, hashlib.sha256(code).digest() + code)
        except DataError:  # no writable folder, or a full disk: the next process compiles again
            continue
        return
