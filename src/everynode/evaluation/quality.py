"""How good predictions are, and how sure one can be of that: scores with 95% intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from everynode.evaluation.metrics import class_areas, expected_calibration_error

#: The normal distribution's 97.5% point.
Z = 1.959964
#: Of fewer nodes than this a mean of surprises has no interval: it would reach from nothing to anything.
FEW = 5
#: Halvings of an interval until its end is known to all digits.
HALVINGS = 60

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Score(NamedTuple):
    """A number and its 95% interval; NaN where there is none.

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
    """A share with Wilson's (1927) interval, which is sensible for few nodes and for shares near 0 and 1.

    >>> tuple(round(x, 3) for x in wilson(9, 10))
    (0.9, 0.596, 0.982)
    """
    share, shrink = right / count, 1 / (1 + Z * Z / count)
    middle = shrink * (share + Z * Z / (2 * count))
    half = shrink * Z * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return Score(share, max(0.0, middle - half), min(1.0, middle + half))


def quality(probabilities: Floats, labels: Ints) -> dict[str, Score]:
    """The scores of n x k ``probabilities`` of nodes with these ``labels``: the metrics of selection, ``nll`` and ``ece``.

    The intervals tell what another draw of nodes would change, not what another training would. A bootstrap is not used: where every
    answer is right, it draws right answers only, and says that it is sure. Instead:

    - accuracy: Wilson's.
    - balanced accuracy: Wilson's of each class, put together as those of independent means (:func:`_together`).
    - macro-F1: F1 is 2J / (1 + J), where J is the share right of all nodes that are of the class or were called so: Wilson's of J. One
      wrong answer lowers two classes, so the variance of the mean is up to twice that of independent ones, and that is taken.
    - AUC: Newcombe's (2006, method 5) of each class. How the classes hang together is not known, so the ends are averaged, which holds
      however they do.
    - negative log-likelihood, which is never negative: Student's on the scale of its logarithm. Where no answer is wrong there is none: a
      wrong one would cost more than any of these nodes, and nothing tells how much.
    - calibration error: none. It is too large on few nodes, by an amount that depends on what it should be.

    >>> found = quality(np.eye(2)[[0, 1, 0, 1]] * 0.8 + 0.1, np.array([0, 1, 0, 1]))  # all right, and four nodes prove little
    >>> print(found["accuracy"], found["balanced_accuracy"], sep=", ")
    1.000 (0.510 to 1.000), 1.000 (0.535 to 1.000)
    """
    n, k = probabilities.shape
    log_p, y = (
        torch.from_numpy(np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))),
        torch.from_numpy(labels),
    )
    predicted = probabilities.argmax(1)
    table = np.bincount(labels * k + predicted, minlength=k * k).reshape(k, k)
    right, truly = table.diagonal(), table.sum(1)
    either = truly + table.sum(0) - right
    found = [wilson(int(a), int(b)) for a, b in zip(right, truly, strict=True) if b]
    jaccard = [wilson(int(a), int(b)) for a, b in zip(right, either, strict=True) if b]
    f1 = [Score(*(2 * j / (1 + j) for j in score)) for score in jaccard]
    areas, sizes = class_areas(log_p, y)
    ranked = [
        _area(float(area), int(size), n - int(size))
        for area, size in zip(areas, sizes, strict=True)
    ]
    return {
        "accuracy": wilson(int(right.sum()), n),
        "balanced_accuracy": _together(found),
        "macro_f1": _together(f1, times=2.0),
        "auc": _together(ranked, times=math.inf) if ranked else Score(math.nan),
        "nll": _positive_mean(-log_p[torch.arange(n), y].numpy(), typical=int(right.sum()) < n),
        "ece": Score(expected_calibration_error(torch.from_numpy(probabilities), y)),
    }


def _together(scores: list[Score], *, times: float = 1.0) -> Score:
    """The mean of some scores: the distances to their ends add up as standard deviations do (MOVER: Newcombe 1998, Zou and Donner 2008).

    ``times``: how much larger than that of independent scores the variance may be. It is never larger than if all were off by their whole
    distance at once, so the ends are never beyond the means of the ends, and stay in [0, 1].
    """
    value, low, high = np.array(scores).T
    middle = float(value.mean())

    def half(distance: Floats) -> float:
        most = float(distance.mean())
        return (
            most
            if math.isinf(times)
            else min(most, math.sqrt(times * float((distance**2).sum())) / len(distance))
        )

    return Score(
        middle, max(0.0, middle - half(value - low)), min(1.0, middle + half(high - value))
    )


def _area(area: float, those: int, others: int) -> Score:
    """An AUC of so many nodes of a class and others, with Newcombe's (2006) interval by his method 5: a score interval, as Wilson's is.

    >>> print(_area(1.0, 7, 7))
    1.000 (0.726 to 1.000)
    """

    def beyond(true: float) -> bool:
        """Whether the area would be too far off, were this the true one."""
        spread = 1 + ((those + others) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return (area - true) ** 2 > Z * Z * true * (1 - true) * spread / (those * others)

    def end(outside: float) -> float:
        inside = area
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
        return inside

    return Score(area, end(0.0), end(1.0))


def _positive_mean(values: Floats, *, typical: bool) -> Score:
    """The mean of values that are not negative; no interval where they are few, not ``typical``, or all the same."""
    n, mean = len(values), float(values.mean())
    if not typical or n < FEW or float(values.std()) <= 1e-12 * mean:
        return Score(mean)
    from scipy.stats import t as student  # half a second to import

    factor = math.exp(
        float(student.ppf(0.975, n - 1)) * float(values.std(ddof=1)) / (mean * math.sqrt(n))
    )
    return Score(mean, mean / factor, mean * factor)
