"""The sparse products against dense ones."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from everynode.sparse import Pattern, SparseMatrix, sddmm, spmm


@st.composite
def matrices(draw: st.DrawFn) -> scipy.sparse.csr_array:
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    share = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    return scipy.sparse.csr_array(
        rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < share)
    )


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(matrices(), st.integers(1, 4))
def test_products_are_the_dense_ones(matrix: scipy.sparse.csr_array, width: int) -> None:
    sparse, dense = (
        SparseMatrix.from_scipy(matrix, torch.float64),
        torch.from_numpy(matrix.toarray()),
    )
    pattern = sparse.pattern
    rows, columns = dense.shape
    x, a = random(columns, width), random(rows, width, seed=1)
    assert pattern.nnz == matrix.nnz
    close(sparse.to_dense(), dense)
    close(sparse @ x, dense @ x)
    close(sparse.transpose @ a, dense.T @ a)
    close(sparse.blend(x, a, 0.3), 0.7 * (dense @ x) + 0.3 * a)
    close(spmm(pattern, sparse.values, x), dense @ x)
    close(sddmm(pattern, a, x), (a @ x.T)[pattern.row, pattern.column])


@settings(deadline=None, max_examples=60)
@given(matrices())
def test_a_transpose_is_a_transpose_and_its_own_inverse(matrix: scipy.sparse.csr_array) -> None:
    sparse = SparseMatrix.from_scipy(matrix, torch.float64)
    other = sparse.transpose
    close(other.to_dense(), torch.from_numpy(matrix.toarray()).T)
    assert other.shape == sparse.shape[::-1]
    assert other.transpose is sparse
    pattern = sparse.pattern
    assert pattern.transpose.transpose is pattern
    assert torch.equal(sparse.values[pattern.order][pattern.transpose.order], sparse.values)
    assert bool((pattern.transpose.row.diff() >= 0).all())


@settings(deadline=None, max_examples=60)
@given(matrices())
def test_rows_and_columns_of_the_entries(matrix: scipy.sparse.csr_array) -> None:
    coo = matrix.tocoo()
    pattern = SparseMatrix.from_scipy(matrix).pattern
    assert pattern.row.tolist() == coo.row.tolist()
    assert pattern.column.tolist() == coo.col.tolist()
    assert pattern.crow.dtype == pattern.col.dtype == torch.int32


@settings(deadline=None, max_examples=30)
@given(matrices())
def test_to_scipy_and_back(matrix: scipy.sparse.csr_array) -> None:
    back = SparseMatrix.from_scipy(matrix, torch.float64).to_scipy()
    assert (back != matrix).nnz == 0
    assert back.shape == matrix.shape


@pytest.mark.parametrize(
    "kind",
    [
        scipy.sparse.csr_array,
        scipy.sparse.csc_array,
        scipy.sparse.coo_array,
        scipy.sparse.csr_matrix,
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_any_scipy_matrix_of_any_type(kind: type, dtype: type) -> None:
    dense = np.array([[0, 1, 0], [1, 0, 1]]).astype(dtype)
    matrix = SparseMatrix.from_scipy(kind(dense))
    assert matrix.dtype == torch.float32
    assert matrix.to_dense().tolist() == dense.astype(float).tolist()


def test_repeated_entries_are_added_and_stored_zeros_dropped() -> None:
    coo = scipy.sparse.coo_array(([1.0, 2.0, 0.0, 3.0], ([0, 0, 1, 1], [1, 1, 0, 1])), shape=(2, 2))
    matrix = SparseMatrix.from_scipy(coo)
    assert matrix.pattern.nnz == 2
    assert matrix.to_dense().tolist() == [[0.0, 3.0], [0.0, 3.0]]


def test_the_matrix_does_not_change_with_the_arrays_it_was_made_of() -> None:
    source = scipy.sparse.csr_array(np.eye(4))
    matrix = SparseMatrix.from_scipy(source, torch.float64)
    source.data[0], source.indices[0] = 7.0, 3
    assert matrix.to_dense().tolist() == np.eye(4).tolist()


def test_the_arrays_it_was_made_of_are_left_as_they_are() -> None:
    source = scipy.sparse.csr_array(
        (np.array([1.0, 0.0, 2.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3)
    )
    matrix = SparseMatrix.from_scipy(source)
    assert matrix.to_dense().tolist() == [[2.0, 0.0, 1.0]]
    assert source.indices.tolist() == [2, 1, 0]
    assert source.data.tolist() == [1.0, 0.0, 2.0]
    assert source.indptr.tolist() == [0, 3]


def test_another_type_keeps_the_pattern() -> None:
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 0.5], [1.0, 0.0]]))
    double = matrix.to(torch.float64)
    assert double.pattern is matrix.pattern
    assert double.dtype == double.to_dense().dtype == torch.float64
    assert matrix.dtype == torch.float32
    moved = matrix.to("cpu")
    assert moved.to_dense().tolist() == matrix.to_dense().tolist()


def test_what_is_prepared_is_prepared_once() -> None:
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 0.5], [1.0, 0.0]]))
    assert matrix.csr is matrix.csr
    assert matrix.transpose is matrix.transpose
    assert matrix.pattern.row is matrix.pattern.row
    assert matrix.pattern.order is matrix.pattern.order


def test_a_vector_of_no_entries() -> None:
    empty = Pattern(torch.zeros(4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (3, 2))
    values = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    x = random(2, 2).requires_grad_()
    out = spmm(empty, values, x)
    assert out.tolist() == [[0.0, 0.0]] * 3
    grad_values, grad_x = torch.autograd.grad(out.sum(), [values, x])
    assert grad_values.shape == (0,)
    assert grad_x.tolist() == [[0.0, 0.0]] * 2
    assert sddmm(empty, random(3, 2), random(2, 2)).shape == (0,)


def test_columns_that_are_not_contiguous() -> None:
    matrix = SparseMatrix.from_scipy(
        scipy.sparse.csr_array(np.arange(6.0).reshape(2, 3)), torch.float64
    )
    x, a = random(4, 3).T, random(4, 2).T
    close(matrix @ x, matrix.to_dense() @ x)
    close(spmm(matrix.pattern, matrix.values, x), matrix.to_dense() @ x)
    close(sddmm(matrix.pattern, a, x), (a @ x.T)[matrix.pattern.row, matrix.pattern.column])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_products_do_not_see_what_was_in_memory_before(share: float) -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(50, 40)) * (rng.random((50, 40)) < share)
    matrix, x = (
        SparseMatrix.from_scipy(scipy.sparse.csr_array(dense), torch.float64),
        random(40, 16),
    )
    for _ in range(5):
        dirt = [torch.full((50, 16), math.nan, dtype=torch.float64) for _ in range(4)]
        del dirt  # the allocator hands this memory out again
        close(matrix @ x, torch.from_numpy(dense) @ x)
        close(spmm(matrix.pattern, matrix.values, x), torch.from_numpy(dense) @ x)


def test_other_values_in_the_same_places() -> None:
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]]))
    assert matrix.with_values(matrix.values) is matrix
    other = matrix.with_values(torch.tensor([5.0, 7.0]))
    assert other.to_dense().tolist() == [[0.0, 5.0], [7.0, 0.0]]
    assert matrix.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert other.transpose.to_dense().tolist() == [[0.0, 7.0], [5.0, 0.0]]


@pytest.mark.parametrize("once", [False, True])
def test_a_matrix_can_be_sent_to_another_process(once: bool) -> None:
    """A task of a cluster got a matrix without the field ``once``."""
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array(np.eye(3)), torch.float64)
    sent = SparseMatrix(matrix.pattern, matrix.values, symmetric=True, once=once)
    arrived = pickle.loads(pickle.dumps(sent))
    assert (arrived.symmetric, arrived.once) == (True, once)
    close(arrived.nonzeros @ random(3, 2), random(3, 2))
