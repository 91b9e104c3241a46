"""How good predictions are: accuracy, macro-F1, balanced accuracy, AUC, negative log-likelihood, calibration, confusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings take the names from here, and need neither NumPy nor PyTorch
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

#: Bins of the expected calibration error, as in Guo et al. (2017).
ECE_BINS = 15


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of rows whose largest logit is their label's."""
    return (logits.argmax(1) == labels).sum().item() / len(labels)


def macro_f1(logits: Tensor, labels: Tensor) -> float:
    """The mean F1 of the classes that occur among labels or predictions, as scikit-learn has it.

    >>> import torch
    >>> macro_f1(torch.eye(2)[[0, 0, 1, 0]], torch.tensor([0, 0, 1, 1]))  # 0.8 and 0.667
    0.7333333333333334
    """
    table = _confusion(logits, labels)
    right, sizes = table.diagonal(), table.sum(0) + table.sum(1)
    return (2 * right[sizes > 0] / sizes[sizes > 0]).mean().item()


def balanced_accuracy(logits: Tensor, labels: Tensor) -> float:
    """The mean over the classes that occur of the share of their nodes that is found: rare classes count as much as common ones.

    >>> import torch
    >>> balanced_accuracy(torch.eye(2)[[0, 0, 0, 0]], torch.tensor([0, 0, 0, 1]))  # accuracy: 0.75
    0.5
    """
    table = _confusion(logits, labels)
    sizes = table.sum(1)
    return (table.diagonal()[sizes > 0] / sizes[sizes > 0]).mean().item()


def auc(logits: Tensor, labels: Tensor) -> float:
    """The mean over the classes of the area under the ROC curve of the class against the rest; NaN if there is one class only.

    It is the chance that a node of the class gets a higher probability of it than a node of another class. Classes without a node
    (or with all of them) have none and do not count.

    >>> import torch
    >>> auc(torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 0.5]]), torch.tensor([0, 1, 1]))
    1.0
    """
    areas = class_areas(logits, labels)[0]
    return float(areas.mean()) if len(areas) else float("nan")


def class_areas(
    logits: Tensor, labels: Tensor
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The area under the ROC curve of each class that has one, and how many nodes are of that class."""
    import numpy as np

    probabilities = logits.double().softmax(1).cpu().numpy()
    classes = np.arange(probabilities.shape[1])
    positive = labels.cpu().numpy()[:, None] == classes
    count = positive.sum(0)
    counted = (count > 0) & (count < len(positive))
    if not counted.any():
        return np.zeros(0), np.zeros(0, np.int64)
    from scipy.stats import rankdata  # half a second to import, and only who asks for AUC needs it

    ranks = rankdata(probabilities[:, counted], axis=0)
    positive, count = positive[:, counted], count[counted]
    wins = np.where(positive, ranks, 0.0).sum(0) - count * (count + 1) / 2
    return wins / (count * (len(positive) - count)), count


def _confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """How many nodes of each class (rows) got which class (columns)."""
    k = logits.shape[1]
    return (
        (labels * k + logits.argmax(1)).bincount(minlength=k * k).view(k, k).double()
    )  #: What an epoch can be selected by, besides the loss; the more the better.


METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "balanced_accuracy": balanced_accuracy,
    "auc": auc,
}


#: What an epoch can be selected by.
MONITORS = ("loss", *METRICS)


def _negative_log_likelihood(logits: Tensor, labels: Tensor) -> float:
    return -logits.double().log_softmax(1).gather(1, labels[:, None]).mean().item()


def expected_calibration_error(
    probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS
) -> float:
    r"""How far confidence is from accuracy.

    .. math:: ECE = \sum_b \frac{|B_b|}{n} \left| \mathrm{acc}(B_b) - \mathrm{conf}(B_b) \right|

    over ``bins`` bins of equal width of the largest probability (Naeini et al. 2015).

    >>> import torch
    >>> sure = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    >>> round(expected_calibration_error(sure, torch.tensor([0, 1])), 2)  # 90% sure, right half of the time
    0.4
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = right.new_zeros(bins).index_add_(0, bin_of, right - confidence)
    return gap.abs().sum().item() / len(labels)


def scores(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """``accuracy``, ``macro_f1``, ``nll`` and ``ece`` of the rows' logits."""
    probabilities = logits.double().softmax(1)
    return {
        "accuracy": accuracy(logits, labels),
        "macro_f1": macro_f1(logits, labels),
        "nll": _negative_log_likelihood(logits, labels),
        "ece": expected_calibration_error(probabilities, labels),
    }


def confusion(logits: Tensor, labels: Tensor) -> list[list[int]]:
    """How many nodes of each class (rows) got which class (columns)."""
    return [[int(count) for count in row] for row in _confusion(logits, labels).tolist()]
