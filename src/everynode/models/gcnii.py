"""GCNII: GCN with an initial residual and an identity mapping (Chen et al. 2020)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from everynode.models.edge_list import EdgeList
from everynode.models.layer import Layer
from everynode.models.layer_derivatives import Propagation
from everynode.models.network import Network
from everynode.models.receptive_field import Hop, Level
from everynode.settings import Settings, check_settings


class GCNIILayer(Layer):
    r"""GCN with an initial residual connection and an identity mapping.

    From `Simple and Deep Graph Convolutional Networks <https://arxiv.org/abs/2007.02133>`_:

    .. math:: S^{(l)} = (1 - \alpha) \tilde P f^{(l)} + \alpha f^{(0)}, \qquad
              f^{(l+1)} = \mathrm{ReLU}(\beta^{(l)} S^{(l)} W^{(l)} + (1 - \beta^{(l)}) S^{(l)})

    with :math:`\beta^{(l)} = \log(\lambda / l + 1)`. :math:`W^{(l)}` starts as the identity.

    Parameters
    ----------
    channels : int
        Width of the input and of the output.
    alpha : float
        Share of the opening features.
    lam : float
        :math:`\lambda`, the strength of the weights.
    position : int
        Number :math:`l` of the layer in the network, from 1.
    generator : torch.Generator, optional
        Not used: the initial weights are not random.

    Attributes
    ----------
    beta : float
        :math:`\beta^{(l)}`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> from everynode.models.receptive_field import Hop
    >>> f = torch.ones(20, 4)
    >>> GCNIILayer(4, alpha=0.1, lam=0.5)(f, f, Hop(generate(20, 40, 8, 3))).shape
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
        self.beta = math.log(lam / position + 1.0)

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r"""Return :math:`S = (1 - \alpha) \tilde P f + \alpha f_0`."""
        return hop.gcn_operator.blend(f, hop.opening_rows(f_0), self.alpha), ()

    def derivatives(self, hop: Hop, inputs: Level, saved: tuple[Tensor, ...]) -> Propagation:
        """Return the derivatives of a linear propagation."""
        return Propagation(self.alpha, hop)

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        """Apply the layer with plain torch operations."""
        propagated = edges.propagate(edges.gcn_weight(), f)
        mixed = (1.0 - self.alpha) * propagated + self.alpha * f_0
        return torch.relu(mixed @ self.matrix())


class GCNII(Network):
    """A :class:`~everynode.models.network.Network` of :class:`GCNIILayer`.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    gcnii_alpha : float
        Share of the opening features in each layer.
    gcnii_lambda : float
        Strength of the weight matrices; 0 is the identity.
    **options
        See :class:`~everynode.models.network.Network`.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    layers : list of GCNIILayer
        The propagation layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GCNII(8, 3, num_layers=4, gcnii_alpha=0.2)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    layer: ClassVar[type[Layer]] = GCNIILayer

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        gcnii_alpha: float = Settings.gcnii_alpha,
        gcnii_lambda: float = Settings.gcnii_lambda,
        **options: Any,
    ):
        check_settings("GCNII", gcnii_alpha=gcnii_alpha, gcnii_lambda=gcnii_lambda)
        layer_options = {"alpha": gcnii_alpha, "lam": gcnii_lambda}
        super().__init__(num_features, num_classes, layer_options=layer_options, **options)
