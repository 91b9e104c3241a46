"""The GCNII layer (Chen et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from everynode.models.layer import Layer
from everynode.models.receptive_field import Hop


class GCNIILayer(Layer):
    r"""GCN with a way back to the opening features and a weight close to the identity.

    .. math:: S^{(l)} = (1 - \alpha) \tilde P f^{(l)} + \alpha f^{(0)}, \qquad
              f^{(l+1)} = \sigma(\beta^{(l)} S^{(l)} W^{(l)} + (1 - \beta^{(l)}) S^{(l)})

    with :math:`\beta^{(l)} = \log(\lambda / l + 1)` for the ``position`` l = 1, 2, ...; :math:`W^{(l)}` starts as the identity.
    """

    def __init__(self, channels: int, *, position: int, alpha: float, lam: float):
        super().__init__(channels)
        self.alpha = alpha
        self.beta = math.log(lam / position + 1.0)

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r""":math:`S = (1 - \alpha) \tilde P f + \alpha f_0`."""
        if hop.origins is not None:
            f_0 = f_0.index_select(0, hop.origins)
        return hop.gcn_operator.blend(f, f_0, self.alpha), ()

    def matrix(self) -> Tensor:
        """:math:`\\beta W + (1 - \\beta) I`, which makes one product of the two terms."""
        return torch.lerp(
            torch.eye(len(self.weight), dtype=self.weight.dtype, device=self.weight.device),
            self.weight,
            self.beta,
        )
