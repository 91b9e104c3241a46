"""How good predictions are: accuracy, macro-F1, negative log-likelihood, calibration, confusion."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

#: Bins of the expected calibration error, as in Guo et al. (2017).
ECE_BINS = 15


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of rows whose largest logit is their label's."""
    return (logits.argmax(1) == labels).sum().item() / len(labels)


def expected_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> float:
    r"""How far confidence is from accuracy.

    .. math:: ECE = \sum_b \frac{|B_b|}{n} \left| \mathrm{acc}(B_b) - \mathrm{conf}(B_b) \right|

    over ``bins`` bins of equal width of the largest probability (Naeini et al. 2015).

    >>> sure = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    >>> round(expected_calibration_error(sure, torch.tensor([0, 1])), 2)  # 90% sure, right half of the time
    0.4
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64, device=labels.device).index_add_(0, bin_of, right - confidence)
    return gap.abs().sum().item() / len(labels)


def scores(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """``accuracy``, ``macro_f1``, ``nll`` and ``ece`` of the rows' logits.

    Macro-F1 is scikit-learn's: the mean over the classes that occur among labels or predictions.
    """
    from sklearn.metrics import f1_score  # a second to import, and only who reports needs it

    probabilities = torch.softmax(logits.double(), dim=1)
    predicted = logits.argmax(1)
    return {
        "accuracy": accuracy(logits, labels),
        "macro_f1": float(f1_score(labels.cpu().numpy(), predicted.cpu().numpy(), average="macro", zero_division=0)),
        "nll": torch.nn.functional.cross_entropy(logits.double(), labels).item(),
        "ece": expected_calibration_error(probabilities, labels),
    }


def confusion(logits: Tensor, labels: Tensor) -> list[list[int]]:
    """How many nodes of each class (rows) got which class (columns)."""
    from sklearn.metrics import confusion_matrix

    k = logits.shape[1]
    table = confusion_matrix(labels.cpu().numpy(), logits.argmax(1).cpu().numpy(), labels=np.arange(k))
    return [[int(count) for count in row] for row in table]
