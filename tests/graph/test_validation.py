"""Checks and repairs of arrays; the messages are tested in test_graph.py."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from everynode.errors import DataError
from everynode.graph.validation import (
    SPARSE_DENSITY,
    check_features,
    encode_labels,
    is_missing,
    tidy_edges,
    tidy_features,
    tidy_split,
)
from everynode.sparse import SparseMatrix


def test_few_non_zeros_become_sparse():
    x = np.zeros((4, 10))
    x[0, : int(40 * SPARSE_DENSITY)] = 1
    for features in (x, scipy.sparse.csr_array(x), torch.tensor(x)):
        matrix = tidy_features(features)
        assert isinstance(matrix, SparseMatrix)
        assert matrix.dtype == torch.float32
    assert isinstance(tidy_features(x + 1), torch.Tensor)
    assert isinstance(tidy_features(scipy.sparse.csr_array(x + 1)), torch.Tensor)
    assert tidy_features(matrix) is matrix


def test_features_are_a_copy():
    x = np.ones((2, 2), dtype=np.float32)
    matrix = tidy_features(x)
    x[:] = 5
    assert float(matrix.sum()) == 4


def test_a_bad_value_is_named_wherever_it_is(monkeypatch):
    monkeypatch.setattr("everynode.graph.validation.ROWS", 3)
    x = torch.ones(10, 2)
    check_features(x)
    x[7, 1] = np.inf
    with pytest.raises(DataError, match="Feature 1 of node 7 is inf"):
        check_features(x)


def test_edges_are_sorted_and_repairs_counted():
    edges = [[3, 0, 1, 1, 2], [2, 1, 0, 0, 2]]
    tidy, weights, repairs = tidy_edges(edges, [1.0, 2.0, 5.0, 3.0, 9.0], 4, directed=False)
    assert tidy.tolist() == [[0, 2], [1, 3]]
    assert weights is not None
    assert weights.tolist() == [5.0, 1.0], "the largest weight stays"
    assert repairs == {"self_loops": 1, "repeated_edges": 1, "one_way_edges": 1}
    assert tidy_edges(np.zeros((2, 0)), None, 0, directed=False)[0].shape == (2, 0)


def test_labels_and_splits():
    codes, classes = encode_labels(np.array([2, 0, -1]), None)
    assert codes is not None
    assert (codes.tolist(), list(classes)) == ([2, 0, -1], [0, 1, 2])
    codes, classes = encode_labels(["b", None, "", "a", float("nan")], None)
    assert codes is not None
    assert (codes.tolist(), list(classes)) == ([1, -1, -1, 0, -1], ["a", "b"])
    assert [is_missing(value) for value in (None, float("nan"), "", 0, False)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    split = tidy_split(([2, 0], np.array([False, True, False]), torch.tensor([], dtype=int)), 3)
    assert [part.tolist() for part in split] == [[0, 2], [1], []]
