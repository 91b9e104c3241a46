"""Sparse products: equal to dense ones, and differentiable twice."""

from __future__ import annotations

import subprocess
import sys

import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from everynode.sparse import SparseMatrix, sddmm, spmm


def leaf(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.fixture
def matrix() -> SparseMatrix:
    csr = scipy.sparse.random_array((5, 4), density=0.5, random_state=0, format="csr")
    return SparseMatrix.from_scipy(csr, torch.float64)


def test_the_products_are_the_dense_ones(matrix: SparseMatrix) -> None:
    x, a, b = leaf(4, 3, seed=0), leaf(5, 3, seed=1), leaf(4, 3, seed=2)
    pattern = matrix.pattern
    torch.testing.assert_close(spmm(pattern, matrix.values, x), matrix.to_dense() @ x)
    dense = (a @ b.T)[pattern.row, pattern.column]
    torch.testing.assert_close(sddmm(pattern, a, b), dense)


def test_derivatives_of_both_orders(matrix: SparseMatrix) -> None:
    pattern = matrix.pattern
    values = matrix.values.clone().requires_grad_()
    x, base = leaf(4, 2, seed=3), leaf(5, 2, seed=4)
    cases = [
        (lambda v, x: spmm(pattern, v, x), (values, x)),
        (lambda a, b: sddmm(pattern, a, b), (leaf(5, 2, seed=5), leaf(4, 2, seed=6))),
        (lambda x: matrix @ x, (x,)),
        (lambda x: matrix.product(x, 0.3), (x,)),
        (lambda x, base: matrix.blend(x, base, 0.2), (x, base)),
    ]
    for function, inputs in cases:
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


def test_importing_sparse_matrices_warns_of_nothing() -> None:
    code = "import everynode.sparse as s, torch; torch.eye(2).to_sparse_csr()"
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True)
