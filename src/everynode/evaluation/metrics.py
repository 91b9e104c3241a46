"""Metrics: one registry with one spelling.

A metric is one entry of :data:`METRICS`. Early stopping, the records of runs, the intervals and the
tables of every report are derived from it. NumPy and PyTorch are imported when a metric is
computed, because :mod:`everynode.settings` needs only the names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everynode.evaluation.intervals import (
    Score,
    area_score,
    mean_score,
    positive_mean_score,
    wilson,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

#: Bins of the expected calibration error, as in Guo et al. (2017).
ECE_BINS = 15


@dataclass(frozen=True)
class Metric:
    """A number that measures the quality of predictions.

    Parameters
    ----------
    name : str
        The name in settings, records and files.
    title : str
        The name in tables.
    description : str
        A short explanation for reports.
    function : callable
        Maps logits (n x k) and labels (n) to the number.
    percent : bool
        Whether tables show it in percent.
    higher_is_better : bool
        Whether a higher value is better.
    monitor : bool
        Whether early stopping can follow it (higher must be better).
    recorded : bool
        Whether the record of every run contains it.
    interval : callable, optional
        Maps logits and labels to a :class:`Score` with its 95% interval.

    Examples
    --------
    >>> import torch
    >>> METRICS["accuracy"](torch.eye(2), torch.tensor([0, 0]))
    0.5
    """

    name: str
    title: str
    description: str
    function: Callable[[Tensor, Tensor], float]
    percent: bool = True
    higher_is_better: bool = True
    monitor: bool = False
    recorded: bool = False
    interval: Callable[[Tensor, Tensor], Score] | None = None

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        """Return the number."""
        return self.function(logits, labels)

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return f"{self.title}, %" if self.percent else self.title

    @property
    def factor(self) -> int:
        """The factor that tables multiply it by."""
        return 100 if self.percent else 1

    @property
    def digits(self) -> int:
        """The number of decimals in tables."""
        return 1 if self.percent else 3

    def score(self, logits: Tensor, labels: Tensor) -> Score:
        """Return the number with its 95% interval, or without one if the metric has none."""
        if self.interval is None:
            return Score(self.function(logits, labels))
        return self.interval(logits, labels)


# ------------------------------------------------------------------ the numbers


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Return the share of rows with the largest logit at the label."""
    return (logits.argmax(1) == labels).sum().item() / len(labels)


def macro_f1(logits: Tensor, labels: Tensor) -> float:
    """Return the mean F1 of the classes that occur among labels or predictions.

    >>> import torch
    >>> macro_f1(torch.eye(2)[[0, 0, 1, 0]], torch.tensor([0, 0, 1, 1]))  # 0.8 and 0.667
    0.7333333333333334
    """
    table = _confusion(logits, labels)
    right, sizes = table.diagonal(), table.sum(0) + table.sum(1)
    return (2 * right[sizes > 0] / sizes[sizes > 0]).mean().item()


def balanced_accuracy(logits: Tensor, labels: Tensor) -> float:
    """Return the mean recall of the classes that occur: rare classes count as much as common ones.

    >>> import torch
    >>> balanced_accuracy(torch.eye(2)[[0, 0, 0, 0]], torch.tensor([0, 0, 0, 1]))  # accuracy: 0.75
    0.5
    """
    table = _confusion(logits, labels)
    sizes = table.sum(1)
    return (table.diagonal()[sizes > 0] / sizes[sizes > 0]).mean().item()


def matthews(logits: Tensor, labels: Tensor) -> float:
    """Return the correlation of predicted and true classes (Matthews 1975, Gorodkin 2004).

    It is 0 for predictions that ignore the node, even with uneven classes; 1 is perfect.

    >>> import torch
    >>> matthews(torch.eye(2)[[0, 0, 1, 0]], torch.tensor([0, 0, 1, 1]))
    0.5773502691896258
    >>> matthews(torch.eye(2)[[0, 0, 0, 0]], torch.tensor([0, 0, 0, 1]))
    0.0
    """
    table = _confusion(logits, labels)
    total, right = table.sum(), table.diagonal().sum()
    true, predicted = table.sum(1), table.sum(0)
    spread = (total**2 - predicted @ predicted) * (total**2 - true @ true)
    if not spread:
        return 0.0
    return ((right * total - predicted @ true) / spread.sqrt()).item()


def auc(logits: Tensor, labels: Tensor) -> float:
    """Return the mean one-against-rest area under the ROC curve; NaN with a single class.

    The area is the probability that a node of the class is ranked above a node of another class. A
    class without nodes, or with all nodes, has no area and does not count.

    >>> import torch
    >>> auc(torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 0.5]]), torch.tensor([0, 1, 1]))
    1.0
    """
    areas = class_areas(logits, labels)[0]
    return float(areas.mean()) if len(areas) else math.nan


def class_areas(
    logits: Tensor, labels: Tensor
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the area under the ROC curve of each class that has one, and the size of the class."""
    import numpy as np

    probabilities = logits.double().softmax(1).cpu().numpy()
    classes = np.arange(probabilities.shape[1])
    positive = labels.cpu().numpy()[:, None] == classes
    count = positive.sum(0)
    counted = (count > 0) & (count < len(positive))
    if not counted.any():
        return np.zeros(0), np.zeros(0, np.int64)
    from scipy.stats import rankdata  # half a second to import

    ranks = rankdata(probabilities[:, counted], axis=0)
    positive, count = positive[:, counted], count[counted]
    wins = np.where(positive, ranks, 0.0).sum(0) - count * (count + 1) / 2
    return wins / (count * (len(positive) - count)), count


def negative_log_likelihood(logits: Tensor, labels: Tensor) -> float:
    """Return the mean of -log p(label)."""
    return _surprise(logits, labels).mean().item()


def calibration_error(logits: Tensor, labels: Tensor) -> float:
    """Return the expected calibration error of the logits' softmax."""
    return expected_calibration_error(logits.double().softmax(1), labels)


def expected_calibration_error(
    probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS
) -> float:
    r"""Return the expected calibration error: the mean gap between confidence and accuracy.

    .. math:: ECE = \sum_b \frac{|B_b|}{n} \left| \mathrm{acc}(B_b) - \mathrm{conf}(B_b) \right|

    over ``bins`` bins of equal width of the largest probability (Naeini et al. 2015).

    >>> import torch
    >>> sure = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    >>> round(expected_calibration_error(sure, torch.tensor([0, 1])), 2)  # 90% sure, half right
    0.4
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = right.new_zeros(bins).index_add_(0, bin_of, right - confidence)
    return gap.abs().sum().item() / len(labels)


def confusion(logits: Tensor, labels: Tensor) -> list[list[int]]:
    """Count the nodes of each class (rows) by predicted class (columns)."""
    return [[int(count) for count in row] for row in _confusion(logits, labels).tolist()]


def _confusion(logits: Tensor, labels: Tensor) -> Tensor:
    k = logits.shape[1]
    return (labels * k + logits.argmax(1)).bincount(minlength=k * k).view(k, k).double()


def _surprise(logits: Tensor, labels: Tensor) -> Tensor:
    return -logits.double().log_softmax(1).gather(1, labels[:, None])[:, 0]


# ------------------------------------------------------------------ their intervals


def _accuracy_score(logits: Tensor, labels: Tensor) -> Score:
    return wilson(int((logits.argmax(1) == labels).sum()), len(labels))


def _class_scores(right: Tensor, sizes: Tensor) -> list[Score]:
    pairs = zip(right.tolist(), sizes.tolist(), strict=True)
    return [wilson(int(hits), int(size)) for hits, size in pairs if size]


def _balanced_accuracy_score(logits: Tensor, labels: Tensor) -> Score:
    table = _confusion(logits, labels)
    return mean_score(_class_scores(table.diagonal(), table.sum(1)))


def _macro_f1_score(logits: Tensor, labels: Tensor) -> Score:
    # F1 = 2J / (1 + J), where J is the Jaccard index: a share, with Wilson's interval.
    # One wrong answer lowers two classes, so the variance at most doubles.
    table = _confusion(logits, labels)
    right = table.diagonal()
    jaccard = _class_scores(right, table.sum(0) + table.sum(1) - right)
    return mean_score([Score(*(2 * j / (1 + j) for j in one)) for one in jaccard], dependence=2.0)


def _auc_score(logits: Tensor, labels: Tensor) -> Score:
    # The dependence of the classes is unknown, so the ends are averaged.
    areas, sizes = class_areas(logits, labels)
    pairs = zip(areas.tolist(), sizes.tolist(), strict=True)
    each = [area_score(area, size, len(labels) - size) for area, size in pairs]
    return mean_score(each, dependence=math.inf) if each else Score(math.nan)


def _nll_score(logits: Tensor, labels: Tensor) -> Score:
    # Without a wrong answer, the cost of wrong answers is unknown: no interval.
    wrong = bool((logits.argmax(1) != labels).any())
    return positive_mean_score(_surprise(logits, labels), typical=wrong)


# ------------------------------------------------------------------ the registry

#: Every metric by name, in the order of the tables.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy", "accuracy", "share of nodes with the right class",
            accuracy, monitor=True, recorded=True, interval=_accuracy_score,
        ),
        Metric(
            "balanced_accuracy", "balanced accuracy",
            "mean recall of the classes: rare classes count as much as common ones",
            balanced_accuracy, monitor=True, interval=_balanced_accuracy_score,
        ),
        Metric(
            "macro_f1", "macro F1", "mean over the classes of precision and recall combined",
            macro_f1, monitor=True, recorded=True, interval=_macro_f1_score,
        ),
        Metric(
            "auc", "AUC",
            "how well the probabilities rank the nodes of a class above the others; 50 is chance",
            auc, monitor=True, interval=_auc_score,
        ),
        Metric(
            "mcc", "Matthews correlation",
            "correlation of predicted and true classes; 0 is chance, also if classes are uneven",
            matthews, percent=False, monitor=True,
        ),
        Metric(
            "nll", "negative log-likelihood",
            "how improbable the model finds the true labels; lower is better",
            negative_log_likelihood, percent=False, higher_is_better=False, recorded=True,
            interval=_nll_score,
        ),
        # Its bias on few nodes is unknown, so it has no interval.
        Metric(
            "ece", "calibration error", "gap between confidence and accuracy; lower is better",
            calibration_error, higher_is_better=False, recorded=True,
        ),
    )
}  # fmt: skip

#: The losses that ``monitor`` takes: the log-loss, and the one after temperature scaling
#: (:func:`everynode.evaluation.calibrated_loss.calibrated_loss`).
LOSSES = ("loss", "calibrated_loss")

#: The names that ``monitor`` takes: what selects the best epoch on the validation nodes.
MONITORS = (*LOSSES, *(name for name, metric in METRICS.items() if metric.monitor))

#: The metrics in the record of every run.
RECORDED = tuple(name for name, metric in METRICS.items() if metric.recorded)


def scores(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Return the recorded metrics of some rows.

    >>> import torch
    >>> list(scores(torch.eye(2), torch.tensor([0, 1])))
    ['accuracy', 'macro_f1', 'nll', 'ece']
    """
    return {name: METRICS[name](logits, labels) for name in RECORDED}
