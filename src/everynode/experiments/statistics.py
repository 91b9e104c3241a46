"""Means with intervals, and paired comparisons that account for overlapping folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
#: Differences within this relative tolerance are equal: in floats, 22/37 - 21/37 != 21/37 - 20/37.
RELATIVE_ROUNDING = 1e-12


@dataclass(frozen=True)
class Summary:
    """A mean with its standard deviation and its 95% interval.

    Attributes
    ----------
    count : int
        The number of values.
    mean, std : float
        The mean and the standard deviation (ddof 1).
    low, high : float
        The ends of the interval; NaN for a single value.
    """

    count: int
    mean: float
    std: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; NaN becomes None."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True)
class Paired(Summary):
    """The summary of paired differences.

    Attributes
    ----------
    p_value : float
        The two-sided p-value under the null hypothesis of no difference.
    """

    p_value: float


def summarize(values: Sequence[float], *, test_share: float | None = None) -> Summary:
    """Return mean, standard deviation and Student's 95% interval.

    Parameters
    ----------
    values : sequence of float
        One value per seed, or per fold.
    test_share : float, optional
        Test nodes / training nodes, for folds; see :func:`compare_paired`.

    Examples
    --------
    >>> s = summarize([0.70, 0.72, 0.74])
    >>> round(s.mean, 2), round(s.std, 2), round(s.low, 3), round(s.high, 3)
    (0.72, 0.02, 0.67, 0.77)
    """
    mean, std, half = _interval(values, 1.0 / len(values) + (test_share or 0.0))
    return Summary(len(values), mean, std, mean - half, mean + half)


def compare_paired(
    a: Sequence[float], b: Sequence[float], *, test_share: float | None = None
) -> Paired:
    """Compare ``a`` with ``b`` on the same seeds, or on the same folds of one graph.

    Folds share training nodes, so their scores are not independent. Their mean has the variance
    s^2 (1/n + test/train) instead of s^2/n (Nadeau and Bengio, "Inference for the Generalization
    Error", 2003). ``test_share`` is test nodes / training nodes; None means independent seeds.

    Equal differences other than zero have no p-value: with few test nodes, they occur by chance.
    """
    if len(a) != len(b):
        raise ValueError(f"paired values must have equal length: {len(a)} and {len(b)}")
    difference = [x - y for x, y in zip(a, b, strict=True)]
    factor = 1.0 / len(difference) + (test_share or 0.0)
    mean, std, half = _interval(difference, factor)
    if std > RELATIVE_ROUNDING * max(abs(x) for x in (*a, *b)):
        p_value = float(2 * stats.t.sf(abs(mean) / (std * math.sqrt(factor)), len(difference) - 1))
    else:
        p_value = 1.0 if len(difference) > 1 and not any(difference) else math.nan
    return Paired(len(difference), mean, std, mean - half, mean + half, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979).

    This controls the family-wise error rate, over a whole table.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _interval(values: Sequence[float], factor: float) -> tuple[float, float, float]:
    """Return mean, standard deviation and half the 95% interval for a variance ``factor`` s^2."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan, math.nan
    std = float(np.std(values, ddof=1))
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return mean, std, quantile * std * math.sqrt(factor)
