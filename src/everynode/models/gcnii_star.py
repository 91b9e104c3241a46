"""GCNII*: GCNII with separate weights for the neighbors and for the initial residual."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.models.edge_list import EdgeList
from everynode.models.gcnii import GCNII, GCNIILayer
from everynode.models.layer import Layer
from everynode.models.receptive_field import Hop


class GCNIIStarLayer(Layer):
    r"""The layer of GCNII*.

    From `Simple and Deep Graph Convolutional Networks <https://arxiv.org/abs/2007.02133>`_,
    section 3, where the variant is called GCNII*:

    .. math:: f^{(l+1)} = \mathrm{ReLU}\big(
              (1 - \alpha) \tilde P f^{(l)} ((1 - \beta^{(l)}) I + \beta^{(l)} W_1^{(l)})
              + \alpha f^{(0)} ((1 - \beta^{(l)}) I + \beta^{(l)} W_2^{(l)})\big)

    with :math:`\beta^{(l)} = \log(\lambda / l + 1)`. Both weights start as the identity, and are
    stored on top of each other in ``weight``, 2c x c. The authors' settings are those of GCNII.

    Parameters
    ----------
    channels : int
        Width of the input and of the output.
    alpha, lam, position, generator
        See :class:`~everynode.models.gcnii.GCNIILayer`.

    Attributes
    ----------
    weight : Parameter
        :math:`W_1` above :math:`W_2`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> from everynode.models.receptive_field import Hop
    >>> f = torch.ones(20, 4)
    >>> GCNIIStarLayer(4, alpha=0.1, lam=0.5)(f, f, Hop(generate(20, 40, 8, 3))).shape
    torch.Size([20, 4])
    """

    def __init__(
        self,
        channels: int,
        *,
        alpha: float,
        lam: float,
        position: int = 1,
        generator: torch.Generator | None = None,
    ):
        super().__init__(channels)
        self.alpha = alpha
        self.beta = GCNIILayer(channels, alpha=alpha, lam=lam, position=position).beta
        self.weight = nn.Parameter(torch.eye(channels).repeat(2, 1))

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r"""Return :math:`[(1 - \alpha) \tilde P f \,\|\, \alpha f_0]`."""
        neighbors = hop.gcn_operator @ f
        return self._joined(neighbors, hop.opening_rows(f_0)), ()

    def matrix(self) -> Tensor:
        r"""Return both matrices :math:`(1 - \beta) I + \beta W`, on top of each other."""
        identity = torch.eye(self.weight.shape[1]).to(self.weight).repeat(2, 1)
        return torch.lerp(identity, self.weight, self.beta)

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        """Apply the layer with plain torch operations."""
        neighbors = edges.propagate(edges.gcn_weight(), f)
        return torch.relu(self._joined(neighbors, f_0) @ self.matrix())

    def _joined(self, neighbors: Tensor, f_0: Tensor) -> Tensor:
        return torch.cat([(1.0 - self.alpha) * neighbors, self.alpha * f_0], 1)


class GCNIIStar(GCNII):
    """A :class:`~everynode.models.gcnii.GCNII` whose layers are :class:`GCNIIStarLayer`.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    **options
        See :class:`~everynode.models.gcnii.GCNII`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GCNIIStar(8, 3, num_layers=4, gcnii_alpha=0.2)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    layer = GCNIIStarLayer
