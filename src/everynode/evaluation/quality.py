"""The quality of predictions: every metric with its 95% interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from everynode.evaluation.intervals import Score, wilson
from everynode.evaluation.metrics import METRICS

__all__ = ["Score", "quality", "wilson"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def quality(probabilities: Floats, labels: Ints) -> dict[str, Score]:
    """Return every metric of n x k ``probabilities`` and n ``labels``, with its interval.

    The intervals cover the sampling of nodes, not of trainings. They are not bootstrapped: if every
    answer is right, a bootstrap reports no uncertainty.

    - accuracy: Wilson's interval.
    - balanced accuracy: Wilson's interval per class, combined as independent means.
    - macro-F1: Wilson's interval of the Jaccard index J per class, since F1 is 2J / (1 + J). One
      wrong answer lowers two classes, so the variance of independent means is doubled.
    - AUC: Newcombe's interval (2006, method 5) per class, with averaged ends.
    - negative log-likelihood: Student's interval of its logarithm. None if no answer is wrong:
      the cost of wrong answers is then unknown.
    - calibration error: none. It is biased upwards on few nodes
      (:func:`everynode.evaluation.calibration.chance_error`).

    >>> p, labels = np.eye(2)[[0, 1, 0, 1]] * 0.8 + 0.1, np.array([0, 1, 0, 1])
    >>> scores = quality(p, labels)  # all right, and four nodes prove little
    >>> print(scores["accuracy"], scores["balanced_accuracy"], sep=", ")
    1.000 (0.510 to 1.000), 1.000 (0.535 to 1.000)
    """
    log_p = torch.from_numpy(np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)))
    y = torch.from_numpy(labels)
    return {name: metric.score(log_p, y) for name, metric in METRICS.items()}
