"""The GCNII layer (Chen et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from everynode.graph import Graph


class GCNIILayer(nn.Module):
    r"""GCN with a way back to the opening features and a weight close to the identity.

    .. math:: S^{(l)} = (1 - \alpha) \tilde P f^{(l)} + \alpha f^{(0)}, \qquad
              f^{(l+1)} = \sigma(\beta^{(l)} S^{(l)} W^{(l)} + (1 - \beta^{(l)}) S^{(l)})

    with :math:`\beta^{(l)} = \log(\lambda / l + 1)` for the ``position`` l = 1, 2, ...; :math:`W^{(l)}` starts as the identity.
    """

    def __init__(self, channels: int, *, position: int, alpha: float, lam: float):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(channels))
        self.alpha = alpha
        self.beta = math.log(lam / position + 1.0)

    def forward(self, f: Tensor, f_0: Tensor, graph: Graph) -> Tensor:
        """n x c features ``f`` and opening features ``f_0`` to n x c features."""
        s = torch.lerp(graph.gcn_operator @ f, f_0, self.alpha)
        return torch.relu(torch.lerp(s, s @ self.weight, self.beta))
