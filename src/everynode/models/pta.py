"""PTA: an MLP trained on propagated labels, whose predictions are propagated (Dong et al. 2021)."""

from __future__ import annotations

from torch import Tensor, nn

from everynode.models.appnp import APPNP
from everynode.models.feature_network import Propagation


class PTA(APPNP):
    r"""An MLP that ignores the edges in training; its predictions are propagated afterwards.

    From `On the Equivalence of Decoupled Graph Convolution Network and Label Propagation
    <https://arxiv.org/abs/2010.12408>`_ (Propagation then Training Adaptively):

    .. math:: z = \mathrm{MLP}(x), \qquad p^{(0)} = \mathrm{softmax}(z), \qquad
              p^{(t+1)} = (1 - \alpha) \tilde P p^{(t)} + \alpha p^{(0)}

    Training sees z, and evaluation the logarithm of :math:`p^{(K)}`. The edges come into training
    through the labels: use the term ``soft_labels``
    (:class:`~everynode.objectives.soft_labels.SoftLabels`) in place of cross-entropy (``ce=0``).
    The authors' settings: K = 10, :math:`\alpha` = 0.1, 64 channels, no dropout, learning rate 0.1,
    weight decay 0.005 on the first layer alone (``weight_decay_gnn=0``).

    Parameters
    ----------
    appnp_alpha : float
        Share :math:`\alpha` of the node's own prediction in each step.
    appnp_steps : int
        Number K of steps.
    **options
        See :class:`~everynode.models.mlp.MLP`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> PTA(8, 3, hidden_channels=16).eval()(generate(20, 40, 8, 3)).exp().sum(1).round().unique()
    tensor([1.], grad_fn=<Unique2Backward0>)
    """

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return "rest" (the first layer) and "gnn" (the others), for a weight decay of each."""
        first, *others = self.layers
        return {
            "gnn": [parameter for layer in others for parameter in layer.parameters()],
            "rest": list(first.parameters()),
        }

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the logits of the MLP in training, else the logarithms of the propagated ones."""
        if self.training:
            return z
        return super().spread(z.softmax(1), propagate).clamp_min(1e-30).log()
