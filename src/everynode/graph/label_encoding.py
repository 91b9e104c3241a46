"""Labels in the manner of scikit-learn, where those of some nodes are missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from everynode.errors import DataError
from everynode.graph.validation import UNLABELLED, is_missing


def encode(y: Any) -> tuple[np.ndarray, list[Any]]:
    """Class indices with -1 for unlabelled, and the classes in order. Numbers are classes by their value, not indices.

    >>> codes, classes = encode([7, None, 3, 7])
    >>> codes.tolist(), classes
    ([1, -1, 0, 1], [3, 7])
    """
    y = as_row(y)
    missing = unlabelled(y)
    if (
        y.dtype.kind == "O" and (known := np.array(y[~missing].tolist())).dtype.kind in "iufb"
    ):  # numbers beside None
        y = np.where(missing, 0, y).astype(known.dtype)
    if len(y[~missing]):
        check_classification_targets(y[~missing])
    classes = np.unique(y[~missing])
    codes = np.full(len(y), UNLABELLED, dtype=np.int64)
    codes[~missing] = np.searchsorted(classes, y[~missing])
    return codes, classes.tolist()


def as_row(y: Any) -> np.ndarray:
    """Labels as an array of one dimension."""
    if type(y).__module__.partition(".")[0] == "pandas" and not isinstance(
        getattr(y, "dtype", None), np.dtype | None
    ):
        y = y.to_numpy(
            dtype=object
        )  # of pandas' own types, which NumPy would make fractions of where one is missing
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
    """The classes as an array in which each is what it was: NumPy would make text of a number beside text, and rows of tuples.

    >>> in_order(["a", "b"]), in_order([1, "a"])
    (array(['a', 'b'], dtype='<U1'), array([1, 'a'], dtype=object))
    """
    made = (
        np.asarray(classes)
        if len({type(c) for c in classes}) < 2
        and not any(isinstance(c, tuple | list) for c in classes)
        else None
    )
    if made is None:
        made = np.empty(len(classes), dtype=object)
        made[:] = [tuple(c) if isinstance(c, list) else c for c in classes]  # JSON knows no tuples
    return made


def unlabelled(y: np.ndarray) -> np.ndarray:
    """Which labels are -1, None, NaN, or empty text, as in a file."""
    if y.dtype.kind == "O":
        return np.array(
            [
                is_missing(v) or v == "" or (isinstance(v, int) and v == UNLABELLED)
                for v in y.tolist()
            ],
            dtype=bool,
        )
    if y.dtype.kind == "U":
        return np.asarray(y == "")
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    return missing | (y == UNLABELLED) if y.dtype.kind in "if" else missing
