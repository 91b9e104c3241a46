"""Label encoding as in scikit-learn, with missing labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from everynode.errors import DataError
from everynode.graph.validation import UNLABELED, is_missing


def encode(y: Any) -> tuple[np.ndarray, list[Any]]:
    """Return class indices, with -1 for unlabeled, and the sorted classes.

    Numbers are class names, not indices.

    >>> codes, classes = encode([7, None, 3, 7])
    >>> codes.tolist(), classes
    ([1, -1, 0, 1], [3, 7])
    """
    y = as_row(y)
    missing = unlabeled(y)
    if y.dtype.kind == "O":
        present = np.array(y[~missing].tolist())
        if present.dtype.kind in "iufb":  # numbers beside None
            y = np.where(missing, 0, y).astype(present.dtype)
    if len(y[~missing]):
        check_classification_targets(y[~missing])
    classes = np.unique(y[~missing])
    codes = np.full(len(y), UNLABELED, dtype=np.int64)
    codes[~missing] = np.searchsorted(classes, y[~missing])
    return codes, classes.tolist()


def as_row(y: Any) -> np.ndarray:
    """Return labels as a one-dimensional array."""
    is_pandas = type(y).__module__.partition(".")[0] == "pandas"
    if is_pandas and not isinstance(getattr(y, "dtype", None), np.dtype | None):
        # NumPy would convert pandas' nullable integers to floats if one is missing.
        y = y.to_numpy(dtype=object)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(f"Labels must be one value per node; got an array of shape {y.shape}.")
    return y


def in_order(classes: Sequence[Any]) -> np.ndarray:
    """Return the classes as an array that keeps their types.

    NumPy alone would turn a number beside text into text, and tuples into rows.

    >>> in_order(["a", "b"]), in_order([1, "a"])
    (array(['a', 'b'], dtype='<U1'), array([1, 'a'], dtype=object))
    """
    sequences = any(isinstance(c, tuple | list) for c in classes)
    if len({type(c) for c in classes}) < 2 and not sequences:
        return np.asarray(classes)
    array = np.empty(len(classes), dtype=object)
    array[:] = [tuple(c) if isinstance(c, list) else c for c in classes]  # JSON has no tuples
    return array


def unlabeled(y: np.ndarray) -> np.ndarray:
    """Return a mask of the missing labels: -1, None, NaN, or empty text as in a file."""
    if y.dtype.kind == "O":
        return np.array(
            [
                is_missing(v) or v == "" or (isinstance(v, int) and v == UNLABELED)
                for v in y.tolist()
            ],
            dtype=bool,
        )
    if y.dtype.kind == "U":
        return np.asarray(y == "")
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    return missing | (y == UNLABELED) if y.dtype.kind in "if" else missing
