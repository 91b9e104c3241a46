"""The choice of kernels, and their threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from everynode.datasets import generate
from everynode.sparse import SparseMatrix, compiled

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_which_arrays_have_kernels() -> None:
    values, x = torch.ones(3), torch.ones(3, 16)
    assert compiled.kernels_for(values, x)
    assert not compiled.kernels_for(values, x[:, :15])  # few columns
    assert not compiled.kernels_for(values, x.double())
    assert not compiled.kernels_for(values.half(), x.half())
    assert not compiled.kernels_for(values.to("meta"), x)


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH_THREADS", 0)
    operator: SparseMatrix = generate(50, 200, 8, 3).gcn_operator
    x = torch.randn(50, 32)
    torch.set_num_threads(1)
    alone = operator @ x
    torch.set_num_threads(3)
    assert torch.equal(operator @ x, alone)


def test_zeros_of_dropout_are_left_out() -> None:
    operator: SparseMatrix = generate(50, 200, 8, 3).gcn_operator
    values = operator.values.clone()
    values[::2] = 0.0
    dropped = operator.with_values(values)
    assert dropped.nonzeros.pattern.nnz == len(values) // 2
    assert operator.nonzeros is operator
    x, y = torch.randn(50, 16), torch.randn(50, 16)
    torch.testing.assert_close(dropped.nonzeros @ x, dropped.to_dense() @ x)
    torch.testing.assert_close(dropped.transposed_into(y), dropped.to_dense().T @ y)
