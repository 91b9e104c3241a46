"""Labels in the manner of scikit-learn, where those of some nodes are missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from everynode.tidy import UNLABELLED


def encode(y: Any) -> tuple[np.ndarray, list[Any]]:
    """Class indices with -1 for unlabelled, and the classes in order. Numbers are classes by their value, not indices.

    >>> codes, classes = encode([7, None, 3, 7])
    >>> codes.tolist(), classes
    ([1, -1, 0, 1], [3, 7])
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        y = y[:, 0]
    missing = unlabelled(y)
    if y.dtype.kind == "O" and (known := np.array(y[~missing].tolist())).dtype.kind in "iufb":  # numbers beside None
        y = np.where(missing, 0, y).astype(known.dtype)
    if len(y[~missing]):
        check_classification_targets(y[~missing])
    classes = np.unique(y[~missing])
    codes = np.full(len(y), UNLABELLED, dtype=np.int64)
    codes[~missing] = np.searchsorted(classes, y[~missing])
    return codes, classes.tolist()


def unlabelled(y: np.ndarray) -> np.ndarray:
    """Which labels are -1, None or NaN."""
    if y.dtype.kind == "O":
        return np.array([v is None or v != v or (isinstance(v, int) and v == UNLABELLED) for v in y.tolist()], dtype=bool)
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    return missing | (y == UNLABELLED) if y.dtype.kind in "if" else missing
