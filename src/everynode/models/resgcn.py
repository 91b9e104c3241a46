"""ResGCN: GCN with residual connections and LayerNorm."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from everynode.models.edge_list import EdgeList
from everynode.models.receptive_field import Hop
from everynode.models.residual_network import ResidualHop, ResidualNetwork, itself


class ResGCN(ResidualNetwork):
    r"""GCN with residual connections and LayerNorm.

    `Classic GNNs are Strong Baselines <https://arxiv.org/abs/2406.08993>`_ finds that these two
    additions bring a GCN level with newer models. The architecture is that of
    :class:`~everynode.models.residual_network.ResidualNetwork`:

    .. math:: h^{(l+1)} = h^{(l)} + \mathrm{ReLU}(\tilde P u\, W_l + b_l)

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers, hidden_channels : int
        Depth and width.
    **options
        See :class:`~everynode.models.residual_network.ResidualNetwork`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> ResGCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    parts = 1

    def hop(self, hop: Hop) -> ResidualHop:
        r"""Return the product with :math:`\tilde P`."""
        return ResidualHop([hop.gcn_operator.__matmul__], hop.target_rows)

    def plain_hop(self, edges: EdgeList) -> ResidualHop:
        """Return the same product in plain torch operations."""
        return ResidualHop([partial(edges.propagate, edges.gcn_weight())], itself)

    def inputs(self, own: Tensor, neighbors: list[Tensor]) -> list[Tensor]:
        """Return the propagated values alone: they include the node's own."""
        return neighbors
