"""The balanced accuracy of right and wrong answers, with its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from everynode.evaluation.intervals import Score, mean_score, wilson


def mean_recall(right: npt.NDArray[np.bool_], labels: npt.NDArray[np.integer[Any]]) -> Score:
    """Return the balanced accuracy: Wilson's intervals of the classes, combined as means.

    Parameters
    ----------
    right : array of bool
        Whether the answer for each node is right.
    labels : array of int
        The class of each node, from 0.

    Examples
    --------
    >>> score = mean_recall(np.array([True] * 9 + [False]), np.array([0] * 9 + [1]))
    >>> tuple(round(x, 2) for x in score)
    (0.5, 0.35, 0.9)
    """
    sizes = np.bincount(labels)
    hits = np.bincount(labels[right], minlength=len(sizes))
    return mean_score([wilson(int(hits[c]), int(sizes[c])) for c in np.flatnonzero(sizes)])
