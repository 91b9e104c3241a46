"""The GCN layer (Kipf and Welling 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.backbones.field import Hop


class GCNLayer(nn.Module):
    r"""One propagation with the symmetrically normalised adjacency.

    .. math:: f^{(l+1)} = \sigma(\tilde P f^{(l)} W^{(l)}), \qquad \tilde P = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}

    :math:`\sigma` is ReLU, :math:`W^{(l)}` starts as the identity, and there is no bias.
    """

    alpha, beta = 0.0, 1.0  # a GCNII layer without the way back and with nothing of the identity

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(channels))

    def forward(self, f: Tensor, f_0: Tensor, hop: Hop) -> Tensor:
        """n x c features to n x c features (``f_0``, the opening layer's output, is for GCNII only)."""
        return torch.relu_(hop.gcn_operator @ (f @ self.weight))

    def matrix(self) -> Tensor:
        """What the propagated features are multiplied with."""
        return self.weight
