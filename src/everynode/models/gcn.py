"""The GCN layer (Kipf and Welling 2017)."""

from __future__ import annotations

from torch import Tensor

from everynode.models.layer import Layer
from everynode.models.receptive_field import Hop


class GCNLayer(Layer):
    r"""One propagation with the symmetrically normalised adjacency.

    .. math:: f^{(l+1)} = \sigma(\tilde P f^{(l)} W^{(l)}), \qquad \tilde P = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}

    :math:`\sigma` is ReLU, :math:`W^{(l)}` starts as the identity, and there is no bias.
    """

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r""":math:`S = \tilde P f`."""
        return hop.gcn_operator @ f, ()
