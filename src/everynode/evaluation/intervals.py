"""Scores with 95% intervals. NumPy and PyTorch are imported when a score is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

#: The 97.5% quantile of the normal distribution.
Z = 1.959964
#: The mean log-likelihood of fewer nodes has no interval: it would be almost unbounded.
FEW = 5


class Score(NamedTuple):
    """A number and its 95% interval.

    Attributes
    ----------
    value : float
        The number.
    low, high : float
        The ends of the interval; NaN without an interval.

    Examples
    --------
    >>> print(Score(0.9, 0.596, 0.982), "or", Score(0.02))
    0.900 (0.596 to 0.982) or 0.020 (no interval)
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "none"
        between = "no interval" if math.isnan(self.low) else f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.value:.3f} ({between})"


def wilson(right: int, count: int) -> Score:
    """Return a share with Wilson's (1927) interval, which holds for few nodes and near 0 and 1.

    >>> tuple(round(x, 3) for x in wilson(9, 10))
    (0.9, 0.596, 0.982)
    """
    share, shrink = right / count, 1 / (1 + Z * Z / count)
    middle = shrink * (share + Z * Z / (2 * count))
    half = shrink * Z * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return Score(share, max(0.0, middle - half), min(1.0, middle + half))


def mean_score(scores: Sequence[Score], *, dependence: float = 1.0) -> Score:
    """Return the mean of some scores with an interval.

    The distances to the ends are combined like standard deviations (MOVER: Newcombe 1998, Zou and
    Donner 2008).

    Parameters
    ----------
    scores : sequence of Score
        Scores in [0, 1], such as one per class.
    dependence : float
        Upper bound on the ratio of the variance to that of independent scores. Infinity averages
        the ends, which is valid under any dependence and gives the widest interval.
    """
    n = len(scores)
    middle = math.fsum(score.value for score in scores) / n

    def half(distances: list[float]) -> float:
        widest = math.fsum(distances) / n
        if math.isinf(dependence):
            return widest
        return min(widest, math.sqrt(dependence * math.fsum(d * d for d in distances)) / n)

    low = middle - half([score.value - score.low for score in scores])
    high = middle + half([score.high - score.value for score in scores])
    return Score(middle, max(0.0, low), min(1.0, high))


def area_score(area: float, positive: int, negative: int) -> Score:
    """Return an AUC with Newcombe's (2006, method 5) score interval.

    ``positive`` and ``negative`` are the numbers of nodes inside and outside the class.

    >>> print(area_score(1.0, 7, 7))
    1.000 (0.726 to 1.000)
    """
    from scipy.optimize import brentq

    def excess(true: float) -> float:
        """Return the excess distance of the observed area from a true area; negative inside."""
        spread = (1 - true) / (2 - true) + true / (1 + true)
        variance = true * (1 - true) * (1 + ((positive + negative) / 2 - 1) * spread)
        return (area - true) ** 2 - Z * Z * variance / (positive * negative)

    # At 0 and 1 the variance vanishes, and the area itself would be a root: start just inside.
    inside = min(max(area, 1e-12), 1 - 1e-12)

    def end(outside: float) -> float:
        return outside if area == outside else float(brentq(excess, inside, outside, xtol=1e-15))

    return Score(area, end(0.0), end(1.0))


def positive_mean_score(values: Tensor, *, typical: bool) -> Score:
    """Return the mean of values >= 0 with Student's interval on the scale of the logarithm.

    There is no interval for fewer than :data:`FEW` values, for equal values, and for values that
    are not ``typical`` of another sample.
    """
    n, mean = len(values), values.mean().item()
    if not typical or n < FEW or values.std(correction=0).item() <= 1e-12 * mean:
        return Score(mean)
    from scipy.stats import t as student

    factor = math.exp(
        float(student.ppf(0.975, n - 1)) * values.std().item() / (mean * math.sqrt(n))
    )
    return Score(mean, mean / factor, mean * factor)
