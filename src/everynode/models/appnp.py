"""APPNP: predict first, then propagate the predictions (Gasteiger et al. 2019)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from everynode.models.feature_network import Propagation
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.settings import Settings, check_settings


class APPNP(PropagatedMLP):
    r"""An MLP whose predictions are spread by personalized PageRank.

    From `Predict then Propagate: Graph Neural Networks meet Personalized PageRank
    <https://arxiv.org/abs/1810.05997>`_:

    .. math:: z^{(0)} = \mathrm{MLP}(x), \qquad
              z^{(t+1)} = (1 - \alpha) \tilde P z^{(t)} + \alpha z^{(0)}

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    appnp_alpha : float
        Share :math:`\alpha` of the node's own prediction in each step.
    appnp_steps : int
        Number of steps.
    **options
        See :class:`~everynode.models.mlp.MLP`.

    Attributes
    ----------
    alpha, steps : float, int
        ``appnp_alpha`` and ``appnp_steps``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> APPNP(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        appnp_alpha: float = Settings.appnp_alpha,
        appnp_steps: int = Settings.appnp_steps,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("APPNP", appnp_alpha=appnp_alpha, appnp_steps=appnp_steps)
        self.alpha, self.steps = appnp_alpha, appnp_steps

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the logits after all steps."""
        own = self.alpha * z
        for _ in range(self.steps):
            z = (1 - self.alpha) * propagate(z) + own
        return z
