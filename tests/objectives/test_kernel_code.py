"""The machine code of the kernels: compiled once, kept, checked, and loaded without numba."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from everynode import machine_code as module
from everynode.machine_code import DIGEST
from everynode.objectives.kernel_code import kernels

numba_kernels = pytest.importorskip("everynode.objectives.numba_kernels")
fresh = kernels.__wrapped__
STEP = """
import sys, torch
from everynode.datasets import generate
from everynode.objectives import ENC
graph = generate(30, 60, 8, 3)
logits = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
ENC(graph, cvg=0)(logits).backward()
print(float(logits.grad.double().sum()), "numba" in sys.modules)
"""


def shifted(compiled: Any) -> list[list[float]]:
    """Return what the kernel ``shift`` makes of two rows."""
    logits = torch.tensor([[1.0, 3.0], [float("nan"), 0.0]])
    out, largest = torch.empty(2, 8), torch.empty(2)
    compiled.shift(logits, 2, 2, out, 8, largest)
    assert largest[0] == 3.0
    return out.nan_to_num(-7.0).tolist()


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """Start with an empty folder; each compilation takes no time and is counted."""
    assert kernels("float32")
    names: list[str] = []
    monkeypatch.setattr(module, "_keep", lambda name, code: names.append(name))
    read, counted = module._read, list[bytes]()
    monkeypatch.setattr(module, "_read", lambda name: names.append(name))
    monkeypatch.setattr(module, "compile_kernels", lambda *_: None)
    monkeypatch.setattr(numba_kernels, "to_llvm", lambda dtype: {})
    assert fresh("float32") is None
    code = read(names[0])
    assert code
    monkeypatch.undo()

    def compile_again(*_: object) -> bytes:
        counted.append(code)
        return code

    monkeypatch.setattr(module, "compile_kernels", compile_again)
    monkeypatch.setattr(numba_kernels, "to_llvm", lambda dtype: {})
    monkeypatch.setattr(module, "_folders", lambda: iter([tmp_path]))
    return counted


def test_the_code_is_compiled_once_and_kept(compilations: list[bytes], tmp_path: Path) -> None:
    first, second = fresh("float32"), fresh("float32")
    assert len(compilations) == 1
    expected = [[-2.0, 0.0] + [0.0] * 6, [-7.0, -7.0] + [0.0] * 6]
    assert shifted(first) == shifted(second) == shifted(kernels("float32")) == expected
    (file,) = tmp_path.glob("*.o")
    assert len(file.read_bytes()) > DIGEST


@pytest.mark.parametrize("size", [0, DIGEST - 1, DIGEST, -1])
def test_a_damaged_file_is_compiled_again(
    size: int, compilations: list[bytes], tmp_path: Path
) -> None:
    fresh("float32")
    (file,) = tmp_path.glob("*.o")
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    fresh("float32")
    assert len(compilations) == 2
    assert file.read_bytes() == whole


def test_code_that_cannot_be_kept_is_used_all_the_same(
    compilations: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr("everynode.storage.atomic._replace", full)
    assert shifted(fresh("float32")) == shifted(fresh("float32"))
    assert len(compilations) == 2


@pytest.mark.parametrize("why", ["no numba", "no llvmlite", "disabled"])
def test_without_numba(
    why: str, compilations: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "no numba":
        monkeypatch.setitem(sys.modules, "everynode.objectives.numba_kernels", None)
    elif why == "no llvmlite":
        monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    else:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert fresh("float32") is None


def step(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_step_with_kept_code_does_not_import_numba() -> None:
    assert kernels("float32")  # kept from here on
    assert step()[1] == "False"


@pytest.mark.long
def test_a_new_machine_compiles_once(tmp_path: Path) -> None:
    first, second = (step(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    torch_alone = step(NUMBA_DISABLE_JIT="1")
    assert first[0] == second[0]
    assert float(first[0]) == pytest.approx(float(torch_alone[0]), abs=1e-6)
