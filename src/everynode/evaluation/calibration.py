"""Probabilities that mean what they say: one temperature for all logits, chosen on validation nodes (Guo et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from everynode.evaluation.metrics import ECE_BINS

#: No temperature is chosen outside of these.
LOWEST, HIGHEST = 0.05, 20.0
#: How far from 0 the logarithm of the temperature is expected to be, before any node is seen.
SPREAD = 0.5


class HeldOut(NamedTuple):
    """Validation nodes, and what networks that had not learned their classes say: the logarithm of each probability, uncalibrated.

    With the class prior, these networks have learned from them how large the classes are.
    """

    nodes: Tensor
    log_probabilities: Tensor


def temperature(logits: Tensor, labels: Tensor) -> float:
    r"""The most probable T for :math:`\mathrm{softmax}(x / T)`, if :math:`\log T` is normal around 0 and these nodes have these labels.

    .. math:: \min_T \; \sum_i \Big( \log \sum_s e^{x_{i,s} / T} - x_{i,y_i} / T \Big) + \frac{(\log T)^2}{2 \cdot 0.5^2}

    One number for all classes keeps their order, so no prediction changes. Without the last part, a few validation nodes that are all
    right would ask for T = 0; with it few nodes move T little, and many as far as they ask for.

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])  # 98% sure, right three times in four
    >>> round(torch.softmax(logits / temperature(logits.repeat(999, 1), torch.tensor([0, 0, 0, 1]).repeat(999)), 1)[0, 0].item(), 2)
    0.75
    """
    x = logits.double()

    def loss(log_t: float) -> float:
        return (
            torch.nn.functional.cross_entropy(x / math.exp(log_t), labels, reduction="sum").item()
            + 0.5 * (log_t / SPREAD) ** 2
        )

    if not math.isfinite(loss(0.0)):  # no temperature would help
        return 1.0
    # There may be two minima: the better one is between the neighbours of the best of many points.
    points = torch.linspace(math.log(LOWEST), math.log(HIGHEST), 61).tolist()
    best = min(range(61), key=lambda i: loss(points[i]))
    around = points[max(best - 1, 0)], points[min(best + 1, 60)]
    return round(
        math.exp(minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8}).x),
        6,
    )


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
        made.append(
            Bin(
                int(inside.sum()),
                round(confidence[inside].mean().item(), 6),
                right[inside].mean().item(),
            )
        )
    return made
