"""Contrast: an average of models is too sure of unsure nodes, and not sure enough of sure ones.

A mean of calibrated predictions is not calibrated (Ranjan and Gneiting 2010, `Combining Probability
Forecasts <https://doi.org/10.1111/j.1467-9868.2009.00726.x>`_), and one temperature for all nodes
does not mend it. The temperature here follows the entropy of each node, as in `Adaptive Temperature
Scaling <https://arxiv.org/abs/2208.00461>`_ (Balanya et al. 2022), with one parameter.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from torch import Tensor

from everynode.evaluation.calibration import HIGHEST, LOWEST, MOST_TO_COMPARE, SPREAD

#: The standard deviation of the prior on the contrast. The log-temperature of the surest and the
#: least sure node then has the one of the temperature itself.
PRIOR = 2 * SPREAD
#: The largest contrast.
MOST = 4.0


def with_contrast(log_probabilities: Tensor, contrast: float) -> Tensor:
    r"""Return log-probabilities after each node got the temperature of its entropy.

    With the normalized entropy :math:`h_i` of node i (0: sure of one class, 1: all equal):

    .. math:: q_i = \mathrm{softmax}(\log p_i / T_i), \qquad T_i = e^{c (h_i - 1/2)}

    No predicted class changes. As c is not negative, a surer node stays surer.

    Parameters
    ----------
    log_probabilities : Tensor
        One row per node.
    contrast : float
        The contrast c; 0 changes nothing.

    Examples
    --------
    >>> log_p = torch.tensor([[0.6, 0.4], [0.95, 0.05]]).log()
    >>> [round(q, 2) for q in with_contrast(log_p, 1.0).exp()[:, 0].tolist()]
    [0.56, 0.97]
    """
    if contrast == 0:
        return log_probabilities
    return torch.log_softmax(
        log_probabilities / (contrast * (_entropy(log_probabilities) - 0.5)).exp()[:, None], dim=1
    )


def contrast(log_probabilities: Tensor, labels: Tensor) -> float:
    r"""Return the contrast that suits these labels, together with one temperature.

    It is the posterior mode under normal priors, a half-normal one on the contrast:

    .. math:: \min_{T, \; c \ge 0} \; -\sum_i \log q_{i, y_i}(T, c)
              + \frac{(\log T)^2}{2 \cdot 0.5^2} + \frac{c^2}{2}

    Parameters
    ----------
    log_probabilities : Tensor
        Out-of-fold log-probabilities, one row per node.
    labels : Tensor
        The class of each node.

    Examples
    --------
    >>> sure = torch.tensor([[0.8, 0.2]]).log().repeat(100, 1)  # in truth always right
    >>> unsure = torch.tensor([[0.6, 0.4]]).log().repeat(100, 1)  # in truth a coin
    >>> labels = torch.tensor([0] * 100 + [0, 1] * 50)
    >>> contrast(torch.cat([sure, unsure]), labels) > 1
    True
    """
    step = math.ceil(len(labels) / MOST_TO_COMPARE) or 1
    x, y = log_probabilities.detach().double()[::step].cpu(), labels[::step].cpu()
    if x.shape[1] < 2 or not len(x):
        return 0.0
    unsure = _entropy(x) - 0.5

    def loss(values: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        parameters = torch.from_numpy(values).requires_grad_()
        scaled = x / (parameters[0] + parameters[1] * unsure).exp()[:, None]
        total = torch.nn.functional.cross_entropy(scaled, y, reduction="sum")
        total = total + (parameters[0] / SPREAD) ** 2 / 2 + (parameters[1] / PRIOR) ** 2 / 2
        (gradient,) = torch.autograd.grad(total, parameters)
        return total.item(), gradient.numpy()

    if not math.isfinite(loss(np.zeros(2))[0]):
        return 0.0
    bounds = [(math.log(LOWEST), math.log(HIGHEST)), (0.0, MOST)]
    with torch.enable_grad():
        best = minimize(loss, np.array([0.0, 0.1]), jac=True, method="L-BFGS-B", bounds=bounds)
    return round(float(best.x[1]), 4)


def _entropy(log_probabilities: Tensor) -> Tensor:
    """Return the entropy of each row, divided by that of equal probabilities."""
    p = torch.softmax(log_probabilities, dim=1)
    return torch.special.entr(p).sum(1) / math.log(max(p.shape[1], 2))
