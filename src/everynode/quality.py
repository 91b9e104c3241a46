"""How good predictions are, and how sure one can be of that: scores with 95% intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from everynode.metrics import METRICS, expected_calibration_error

#: Samples of a bootstrap; of the slower AUC fewer.
SAMPLES, AUC_SAMPLES = 2000, 200
#: An AUC of more probabilities than this has no interval: sorting them again and again would take minutes.
AUC_AT_MOST = 200_000
#: The normal distribution's 97.5% point.
Z = 1.959964

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Score(NamedTuple):
    """A number and its 95% interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


def wilson(right: int, count: int) -> Score:
    """A share with Wilson's (1927) interval, which is sensible for few nodes and for shares near 0 and 1.

    >>> tuple(round(x, 3) for x in wilson(9, 10))
    (0.9, 0.596, 0.982)
    """
    share, shrink = right / count, 1 / (1 + Z * Z / count)
    middle = shrink * (share + Z * Z / (2 * count))
    half = shrink * Z * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return Score(share, max(0.0, middle - half), min(1.0, middle + half))


def quality(probabilities: Floats, labels: Ints, *, seed: int = 0) -> dict[str, Score]:
    """The scores of n x k ``probabilities`` of nodes with these ``labels``: the metrics of selection, ``nll`` and ``ece``.

    Intervals: Wilson's for accuracy, a bootstrap over the nodes for balanced accuracy, macro-F1 and AUC, Student's for the mean negative
    log-likelihood. They tell what another draw of nodes would change, not what another training would.
    """
    n, k = probabilities.shape
    random = np.random.default_rng(seed)
    log_p, y = torch.from_numpy(np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))), torch.from_numpy(labels)
    value = {name: metric(log_p, y) for name, metric in METRICS.items()}
    predicted = probabilities.argmax(1)
    # Drawing nodes again is drawing cells of the confusion matrix.
    cells = np.bincount(labels * k + predicted, minlength=k * k)
    tables = random.multinomial(n, cells / n, SAMPLES).reshape(SAMPLES, k, k)
    right, truly, called = np.einsum("bss->bs", tables), tables.sum(2), tables.sum(1)
    with np.errstate(invalid="ignore"):
        recall, f1 = right / truly, 2 * right / (truly + called)
    found = {
        "accuracy": wilson(int((predicted == labels).sum()), n),
        "balanced-accuracy": Score(value["balanced-accuracy"], *_middle(np.nanmean(recall, axis=1))),
        "macro-f1": Score(value["macro-f1"], *_middle(np.nanmean(f1, axis=1))),
    }
    areas = []
    if n * k <= AUC_AT_MOST and not math.isnan(value["auc"]):
        for _ in range(AUC_SAMPLES):
            chosen = torch.from_numpy(random.integers(0, n, n))
            areas.append(METRICS["auc"](log_p[chosen], y[chosen]))
    found["auc"] = Score(value["auc"], *_middle(np.array(areas)))
    losses = -log_p[torch.arange(n), y].numpy()
    half = Z * float(losses.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    found["nll"] = Score(float(losses.mean()), float(losses.mean()) - half, float(losses.mean()) + half)
    found["ece"] = Score(expected_calibration_error(torch.from_numpy(probabilities), y))
    return found


def _middle(values: Floats) -> tuple[float, float]:
    """Between what the middle 95% of a bootstrap's values lie."""
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
