"""Probabilities that mean what they say: one temperature for all logits, chosen on validation nodes (Guo et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from everynode.metrics import ECE_BINS

#: No temperature is chosen outside of these, and none from fewer nodes.
LOWEST, HIGHEST = 0.05, 20.0
FEWEST = 10


def temperature(logits: Tensor, labels: Tensor) -> float:
    r"""The T with which :math:`\mathrm{softmax}(x / T)` has the smallest negative log-likelihood on these nodes.

    .. math:: \min_T \; \frac{1}{n} \sum_i \Big( \log \sum_s e^{x_{i,s} / T} - \sum_s t_{i,s} \, x_{i,s} / T \Big),
              \qquad t_{i,s} = \frac{n \, [y_i = s] + 1}{n + k}

    One number for all classes keeps their order, so no prediction changes. The targets :math:`t` are Platt's (1999), which stop short of
    certainty: without them a few validation nodes, all of them right, would ask for T = 0. In 1/T the function is convex: its minimum is
    where its derivative changes sign, and is found by halving. Fewer than ``FEWEST`` nodes say too little: then it is 1.

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])  # 98% sure, right three times in four
    >>> round(torch.softmax(logits / temperature(logits.repeat(99, 1), torch.tensor([0, 0, 0, 1]).repeat(99)), 1)[0, 0].item(), 2)
    0.75
    """
    x = logits.double()
    n, k = x.shape
    if n < FEWEST:
        return 1.0
    target = (n * torch.nn.functional.one_hot(labels, k) + 1.0) / (n + k)
    pull = (target * x).sum(1).mean()

    def slope(inverse: float) -> float:
        return ((torch.softmax(inverse * x, dim=1) * x).sum(1).mean() - pull).item()

    low, high = 1 / HIGHEST, 1 / LOWEST
    while high - low > 1e-9 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 1 / low


@dataclass(frozen=True)
class Bin:
    """Nodes of about the same confidence: how sure the model is of them on average, and how often it is right."""

    count: int
    confidence: float
    accuracy: float


def reliability(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> list[Bin]:
    """The bins of the expected calibration error that have a node, by rising confidence.

    >>> reliability(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    [Bin(count=2, confidence=0.9, accuracy=0.5)]
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    made = []
    for index in bin_of.unique().tolist():
        inside = bin_of == index
        made.append(Bin(int(inside.sum()), round(confidence[inside].mean().item(), 6), right[inside].mean().item()))
    return made
