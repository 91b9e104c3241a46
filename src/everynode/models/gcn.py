"""GCN: propagation with the normalized adjacency (Kipf and Welling 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.models.edge_list import EdgeList
from everynode.models.layer import Layer
from everynode.models.layer_derivatives import Propagation
from everynode.models.network import Network
from everynode.models.receptive_field import Hop, Level


class GCNLayer(Layer):
    r"""One propagation with the symmetrically normalized adjacency.

    From `Semi-Supervised Classification with Graph Convolutional Networks
    <https://arxiv.org/abs/1609.02907>`_:

    .. math:: f^{(l+1)} = \mathrm{ReLU}(\tilde P f^{(l)} W^{(l)}), \qquad
              \tilde P = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}

    :math:`W^{(l)}` starts as the identity. There is no bias.

    Parameters
    ----------
    channels : int
        Width of the input and of the output.
    position : int
        Not used.
    generator : torch.Generator, optional
        Not used: the initial weights are not random.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> from everynode.models.receptive_field import Hop
    >>> f = torch.ones(20, 4)
    >>> GCNLayer(4)(f, f, Hop(generate(20, 40, 8, 3))).shape
    torch.Size([20, 4])
    """

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r"""Return :math:`S = \tilde P f`."""
        return hop.gcn_operator @ f, ()

    def derivatives(self, hop: Hop, inputs: Level, saved: tuple[Tensor, ...]) -> Propagation:
        """Return the derivatives of a linear propagation."""
        return Propagation(0.0, hop)

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        """Apply the layer with plain torch operations."""
        return torch.relu(edges.propagate(edges.gcn_weight(), f) @ self.matrix())


class GCN(Network):
    """A :class:`~everynode.models.network.Network` of :class:`GCNLayer`.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers, hidden_channels : int
        Number of layers, and their width.
    **options
        See :class:`~everynode.models.network.Network`.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    layers : list of GCNLayer
        The propagation layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GCN(8, 3, num_layers=2, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    layer = GCNLayer
