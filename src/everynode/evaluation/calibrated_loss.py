"""The log-loss after temperature scaling: early stopping should not wait for calibration.

Paper: `Rethinking Early Stopping: Refine, Then Calibrate <https://arxiv.org/abs/2501.19195>`_
(Berta, Holzmüller, Jordan and Bach 2025).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: The standard deviation of the logarithm of the inverse temperature under its gamma prior. The
#: prior is wide: it only keeps the temperature finite if every prediction is right.
SPREAD = 1.5
#: The maximum number of steps, the range of the logarithm, and the precision of the search.
STEPS, RANGE, PRECISION = 30, 9.0, 1e-3


def calibrated_loss(logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> float:
    r"""Return the mean log-loss at the best temperature of these rows.

    .. math:: \min_\beta \; \frac 1 n \sum_i \Big( \log \sum_s e^{\beta x_{i,s}}
              - \beta x_{i,y_i} \Big) + \frac{\beta - 1 - \log \beta}{1.5^2 \, n}

    This is convex in the inverse temperature :math:`\beta`.

    Training first refines the order of the classes and then the confidence. Temperature scaling
    corrects the confidence anyway, so early stopping should follow the refinement alone.

    Parameters
    ----------
    logits : Tensor
        n x k logits.
    labels : Tensor
        The class of each row.
    weight : Tensor, optional
        The weight of each class in the mean.

    Examples
    --------
    >>> sharp = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    >>> labels = torch.tensor([0, 1, 0, 0])  # one in four is wrong
    >>> round(calibrated_loss(sharp, labels), 2), round(calibrated_loss(sharp / 2, labels), 2)
    (0.57, 0.56)
    """
    x, count = logits.double(), len(labels)
    of_row = torch.ones(count).to(x) if weight is None else weight.to(x)[labels]
    of_row = of_row / of_row.sum()
    x = x - x.gather(1, labels[:, None])  # the loss is the log of the sum of exponentials
    prior = 1 / (count * SPREAD**2)
    best, theta, low, high = math.inf, 0.0, -RANGE, RANGE
    for _ in range(STEPS):  # Newton's method, within a bracket of the minimum
        beta = math.exp(theta)
        scaled = beta * x
        best = min(best, (of_row @ scaled.logsumexp(1)).item() + prior * (beta - 1 - theta))
        p = scaled.softmax(1)
        mean = (p * scaled).sum(1)
        slope = (of_row @ mean).item() + prior * (beta - 1)
        variance = (p * scaled**2).sum(1) - mean**2
        curvature = (of_row @ variance).item() + prior * max(beta, 1.0)
        low, high = (low, theta) if slope > 0 else (theta, high)
        nearer = theta - slope / curvature
        nearer = nearer if low < nearer < high else (low + high) / 2
        if abs(nearer - theta) < PRECISION:
            break
        theta = nearer
    return best
