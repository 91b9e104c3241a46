"""Temperature scaling on validation nodes (Guo et al. 2017), and reliability diagrams.

Paper: `On Calibration of Modern Neural Networks <https://arxiv.org/abs/1706.04599>`_.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from everynode.evaluation.metrics import ECE_BINS

#: The range of temperatures.
LOWEST, HIGHEST = 0.05, 20.0
#: The least and the largest number of nodes that compare the average with each fold.
LEAST_TO_COMPARE, MOST_TO_COMPARE = 30, 10_000
#: The least share of the temperature that is left: where labeled nodes differ from the others,
#: folds disagree because they do not know.
SHARPEST = 0.6
#: The standard deviation of the normal prior on the logarithm of the temperature.
SPREAD = 0.5


class HeldOut(NamedTuple):
    """Out-of-fold predictions of the validation nodes.

    The networks did not train on these labels. The class prior uses the class shares that are
    estimated from them.

    Attributes
    ----------
    nodes : Tensor
        The validation nodes.
    log_probabilities : Tensor
        Their log-probabilities before the temperature.
    """

    nodes: Tensor
    log_probabilities: Tensor


def temperature(logits: Tensor, labels: Tensor) -> float:
    r"""Return the temperature T of :math:`\mathrm{softmax}(x / T)` that fits these labels best.

    It is the posterior mode under a normal prior on :math:`\log T`:

    .. math:: \min_T \; \sum_i \Big( \log \sum_s e^{x_{i,s} / T} - x_{i,y_i} / T \Big)
              + \frac{(\log T)^2}{2 \cdot 0.5^2}

    One temperature for all classes keeps their order, so no prediction changes. The prior matters
    with few nodes: if all predictions are right, maximum likelihood would give T = 0.

    >>> logits = torch.tensor([[4.0, 0.0]]).repeat(4, 1)  # 98% sure, right three times in four
    >>> t = temperature(logits.repeat(999, 1), torch.tensor([0, 0, 0, 1]).repeat(999))
    >>> round(torch.softmax(logits / t, 1)[0, 0].item(), 2)
    0.75
    """
    x = logits.double()

    def loss(log_t: float) -> float:
        return (
            torch.nn.functional.cross_entropy(x / math.exp(log_t), labels, reduction="sum").item()
            + 0.5 * (log_t / SPREAD) ** 2
        )

    if not math.isfinite(loss(0.0)):  # no temperature helps
        return 1.0
    # There may be two minima: search around the best point of a grid.
    points = torch.linspace(math.log(LOWEST), math.log(HIGHEST), 61).tolist()
    best = min(range(61), key=lambda i: loss(points[i]))
    around = points[max(best - 1, 0)], points[min(best + 1, 60)]
    return round(
        math.exp(minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8}).x),
        6,
    )


def temperature_of_average(
    folds: Sequence[Tensor], divisor: float, delivered: Tensor | None = None
) -> float:
    r"""Return the temperature of the mean probabilities of several folds, or of ``delivered``.

    Out-of-fold predictions calibrate single folds. The mean :math:`\bar p` of the folds is less
    confident and more accurate, so the same temperature would leave it under-confident. For
    calibrated folds :math:`p_k`, the label of a node has the probability :math:`S = \mathrm{E}
    \|p_k\|^2` on average, under each fold and so under their mean. The mean itself claims only
    :math:`\bar S = \mathrm{E} \|\bar p\|^2`. Stretched by :math:`(S - 1/c) / (\bar S - 1/c)` away
    from the uniform distribution over c classes, it is right on average. The temperature gives the
    same sharpness:

    .. math:: \mathrm{E} \|q\|^2 = \frac 1 c + \frac{(S - 1/c)^2}{\bar S - 1/c}

    No label is needed.

    Parameters
    ----------
    folds : sequence of Tensor
        The log-probabilities of each fold, for nodes without a training label.
    divisor : float
        The temperature that calibrates single folds.
    delivered : Tensor, optional
        The log-probabilities of a model that learned from the labels of all folds, and is sharper
        than their mean. None: the mean of the folds.

    Examples
    --------
    >>> sure = torch.tensor([[0.9, 0.1]]).log()
    >>> round(temperature_of_average([sure, sure], 1.0), 3)
    1.0
    >>> temperature_of_average([sure, torch.tensor([[0.3, 0.7]]).log(), sure], 1.0) < 1
    True
    """
    highest = divisor / SHARPEST
    if delivered is None:
        delivered = torch.logsumexp(torch.stack(list(folds)), dim=0) - math.log(len(folds))
        highest = divisor

    def sharpness(p: Tensor) -> float:
        return (p * p).sum(-1).mean().item() - 1 / p.shape[-1]

    each = torch.softmax(torch.stack(list(folds)) / divisor, dim=-1)
    least = torch.finfo(torch.float64).tiny
    target = sharpness(each) ** 2 / max(sharpness(each.mean(0)), least)
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(40):
        middle = (low + high) / 2
        sharper = sharpness(torch.softmax(delivered / math.exp(middle), dim=1)) > target
        low, high = (middle, high) if sharper else (low, middle)
    return max(min(round(math.exp(low), 6), highest), SHARPEST * divisor)


def nodes_without(taught: Tensor, num_nodes: int) -> Tensor:
    """Return the nodes without a training label, or a sample of them.

    >>> nodes_without(torch.tensor([0, 2]), 4).tolist()
    [1, 3]
    """
    rest = torch.ones(num_nodes, dtype=torch.bool)
    rest[taught.cpu()] = False
    nodes = rest.nonzero()[:, 0]
    return nodes[:: math.ceil(len(nodes) / MOST_TO_COMPARE) or 1].to(taught.device)


@dataclass(frozen=True)
class Bin:
    """Nodes of similar confidence.

    Attributes
    ----------
    count : int
        The number of nodes.
    confidence, accuracy : float
        Their mean confidence, and their accuracy.
    """

    count: int
    confidence: float
    accuracy: float


def chance_error(probabilities: Tensor, bins: int = ECE_BINS) -> float:
    r"""Return the calibration error that calibrated probabilities show by chance, on average.

    The share of right nodes in a bin is noisy, so the error is positive even without any
    miscalibration (Bröcker and Smith 2007). With the confidence :math:`c_i` of node i and normal
    noise it is

    .. math:: \frac 1 n \sqrt{2 / \pi} \sum_b \Big( \sum_{i \in b} c_i (1 - c_i) \Big)^{1/2}

    >>> few = torch.tensor([[0.8, 0.2]]).repeat(25, 1)
    >>> round(chance_error(few), 3), round(chance_error(few.repeat(100, 1)), 3)
    (0.064, 0.006)
    """
    confidence = probabilities.double().max(1).values
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    variance = confidence.new_zeros(bins).index_add_(0, bin_of, confidence * (1 - confidence))
    return math.sqrt(2 / math.pi) * variance.sqrt().sum().item() / len(confidence)


def reliability(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> list[Bin]:
    """Return the non-empty bins of the expected calibration error, by rising confidence.

    >>> reliability(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    [Bin(count=2, confidence=0.9, accuracy=0.5)]
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    filled = []
    for index in bin_of.unique().tolist():
        inside = bin_of == index
        filled.append(
            Bin(
                int(inside.sum()),
                round(confidence[inside].mean().item(), 6),
                right[inside].mean().item(),
            )
        )
    return filled
