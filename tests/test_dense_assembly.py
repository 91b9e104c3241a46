"""The kernel of dense products compiles for any processor; its results: test_dense_products.py."""

from __future__ import annotations

import pytest

from everynode import machine_code
from everynode.dense_assembly import TYPES, assembly

llvm = pytest.importorskip("llvmlite.binding")


@pytest.mark.parametrize("dtype", TYPES)
def test_the_kernel_needs_no_library(dtype: str) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    assert machine_code.compile_kernels(llvm, machine, assembly(dtype))
