"""GPRGNN: the weight of each distance is learned (Chien et al. 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from everynode.models.feature_network import Propagation
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.settings import Settings, check_settings


class GPRGNN(PropagatedMLP):
    r"""An MLP whose predictions are spread with a learned weight for each distance.

    From `Adaptive Universal Generalized PageRank Graph Neural Network
    <https://arxiv.org/abs/2006.07988>`_:

    .. math:: z = \sum_{t=0}^{K} \gamma_t \tilde P^t\, \mathrm{MLP}(x)

    The coefficients start as those of personalized PageRank, :math:`\gamma_t = \alpha (1 -
    \alpha)^t` and :math:`\gamma_K = (1 - \alpha)^K`. Negative ones subtract what neighbors have in
    common, which helps where neighbors differ.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    gprgnn_alpha : float
        Share :math:`\alpha` of the initial coefficients.
    gprgnn_steps : int
        Number K of propagations.
    **options
        See :class:`~everynode.models.mlp.MLP`.

    Attributes
    ----------
    coefficients : Parameter
        The weights :math:`\gamma_0, ..., \gamma_K`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GPRGNN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        gprgnn_alpha: float = Settings.gprgnn_alpha,
        gprgnn_steps: int = Settings.gprgnn_steps,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("GPRGNN", gprgnn_alpha=gprgnn_alpha, gprgnn_steps=gprgnn_steps)
        decay = (1 - gprgnn_alpha) ** torch.arange(gprgnn_steps + 1.0)
        share = torch.full_like(decay, gprgnn_alpha)
        share[-1] = 1.0
        self.coefficients = nn.Parameter(share * decay)

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the weighted sum over the distances."""
        first, *others = self.coefficients.unbind()
        total = first * z
        for coefficient in others:
            z = propagate(z)
            total = total + coefficient * z
        return total
