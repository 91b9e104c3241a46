"""Machine code: its file names, and what is refused. Keeping and loading: test_kernel_code.py."""

from __future__ import annotations

import pytest
import torch

from everynode import machine_code

llvm = pytest.importorskip("llvmlite.binding")
ADD_ONE = """define void @f(i64 %n, ptr %x) {
  %p = getelementptr i64, ptr %x, i64 %n
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  ret void
}"""


def test_a_function_takes_tensors_and_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    made: list[str] = []

    def assembly() -> machine_code.Assembly:
        made.append("made")
        return {"add_one": (ADD_ONE, "f")}

    x = torch.tensor([5, 6])
    for _ in range(2):
        functions = machine_code.load({"add_one": "ip"}, "a test", assembly)
        assert functions
        functions["add_one"](1, x)
    assert x.tolist() == [5, 8]
    assert made == ["made"]


def test_another_key_has_another_file() -> None:
    keys = [("source", "float32"), ("source", "float64"), ("changed", "float32")]
    assert len({machine_code.file_name(llvm, key) for key in keys}) == 3


def test_code_that_calls_other_libraries_is_refused() -> None:
    machine = llvm.Target.from_default_triple().create_target_machine()
    text = "define i32 @f() {{\n {} ret i32 0\n}}\n{}"
    call = text.format("call void @NRT_Free()\n", "declare void @NRT_Free()")
    assert machine_code.compile_kernels(llvm, machine, {"kernel": (call, "f")}) is None
    assert machine_code.compile_kernels(llvm, machine, {"kernel": (text.format("", ""), "f")})


def test_features_of_the_processor() -> None:
    assert not machine_code.has("a feature that no processor has")
