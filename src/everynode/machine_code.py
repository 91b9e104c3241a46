"""Machine code of compiled kernels: compiled once per machine, kept on disk, loaded by llvmlite.

Loading takes some milliseconds; numba alone takes a third of a second to import and set itself up.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from everynode.errors import DataError
from everynode.storage.atomic import write_atomically

C_TYPES: dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "d": ctypes.c_double}
#: The bytes of the digest in front of the machine code on disk.
DIGEST = hashlib.sha256().digest_size
#: A kernel as a function of tensors and numbers.
Function = Callable[..., None]
#: The LLVM assembly of each kernel, and the name of its function there.
Assembly = dict[str, tuple[str, str]]


def load(
    arguments: Mapping[str, str], key: object, assembly: Callable[[], Assembly | None]
) -> dict[str, Function] | None:
    """Return kernels by name.

    None without llvmlite, if ``NUMBA_DISABLE_JIT`` is set, without ``assembly``, or if the code
    needs another library.

    Parameters
    ----------
    arguments : mapping
        The arguments of each kernel: tensors as addresses (p), sizes (i) and numbers (d). numba's
        two additional pointers in front of them, of a result and an error, count too.
    key : object
        Everything that the code depends on, except the compiler and the processor.
    assembly : callable
        Makes the assembly, if no code is kept.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return None
    try:
        import llvmlite.binding as llvm  # only now: a training without kernels needs none
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
    name = file_name(llvm, key)
    code = _read(name)
    if code is None:
        texts = assembly()
        code = None if texts is None else compile_kernels(llvm, machine, texts)
        if code is None:
            return None
        _keep(name, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return {kernel: _function(engine, kernel, types) for kernel, types in arguments.items()}


def has(feature: str) -> bool:
    """Whether the processor has a feature, such as avx512f; False without llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return False
    return bool(llvm.get_host_cpu_features().get(feature))


def compile_kernels(llvm: Any, machine: Any, assembly: Assembly) -> bytes | None:
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


def _function(engine: Any, kernel: str, types: str) -> Function:
    """Return a kernel as a function of tensors and numbers; an integer may stand for an address."""
    prototype = ctypes.CFUNCTYPE(None, *[C_TYPES[letter] for letter in types])
    native = prototype(engine.get_function_address(kernel))

    def call(*arguments: Tensor | float) -> None:
        native(*[a.data_ptr() if isinstance(a, Tensor) else a for a in arguments])

    call.engine = engine  # type: ignore[attr-defined] # owns the memory of the code
    return call


def file_name(llvm: Any, key: object) -> str:
    """Return a file name that changes with the key, the compiler and the processor."""
    of_machine = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    version = importlib.import_module("llvmlite").__version__
    content = repr((key, version, *of_machine, features))
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
