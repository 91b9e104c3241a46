"""Labels as scikit-learn takes them, some of them missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from everynode.errors import DataError
from everynode.graph.label_encoding import as_row, encode, in_order, unlabeled


@pytest.mark.parametrize(
    ("labels", "codes", "classes"),
    [
        ([7, None, 3, 7], [1, -1, 0, 1], [3, 7]),
        ([5, -1, 2], [1, -1, 0], [2, 5]),
        (["b", "", "a"], [1, -1, 0], ["a", "b"]),
        ([1.0, np.nan, 0.0], [1, -1, 0], [0.0, 1.0]),
        (pd.Series([2, None, 1], dtype="Int64"), [1, -1, 0], [1, 2]),
        (np.array([None, None]), [-1, -1], []),
    ],
)
def test_classes_and_missing_labels(labels, codes, classes):
    encoded, names = encode(labels)
    assert encoded.tolist() == codes
    assert names == classes
    assert [type(name) for name in names] == [type(name) for name in classes]


def test_shapes():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert as_row([[1], [2]]).tolist() == [1, 2]
    with pytest.raises(DataError, match=r"shape \(1, 2\)"):
        as_row([[1, 2]])


def test_classes_keep_their_types():
    assert in_order([1, "a"]).tolist() == [1, "a"]
    assert in_order([(1, 2), (3, 4)]).tolist() == [(1, 2), (3, 4)]
    assert in_order([[1, 2], [3, 4]]).tolist() == [(1, 2), (3, 4)], "as JSON gives them back"
    assert in_order(["a", "b"]).dtype.kind == "U"


def test_booleans_are_never_missing():
    assert unlabeled(np.array([True, False])).tolist() == [False, False]
