"""SAGE: separate weights for a node and the mean of its neighbors (Hamilton et al. 2017)."""

from __future__ import annotations

from functools import partial

from everynode.models.edge_list import EdgeList
from everynode.models.receptive_field import Hop
from everynode.models.residual_network import ResidualHop, ResidualNetwork, itself


class SAGE(ResidualNetwork):
    r"""GraphSAGE with residual connections and LayerNorm.

    From `Inductive Representation Learning on Large Graphs <https://arxiv.org/abs/1706.02216>`_,
    in the residual network of :class:`~everynode.models.residual_network.ResidualNetwork`:

    .. math:: h^{(l+1)} = h^{(l)} + \mathrm{ReLU}([u,\; D^{-1} A u] W_l + b_l)

    :math:`D^{-1} A` is the mean over the neighbors, which excludes the node. Separate weights for
    the node make the network suitable for heterophilic graphs.

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
    >>> SAGE(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def hop(self, hop: Hop) -> ResidualHop:
        """Return the mean over the neighbors."""
        return ResidualHop([hop.neighbor_operator.__matmul__], hop.target_rows)

    def plain_hop(self, edges: EdgeList) -> ResidualHop:
        """Return the same mean in plain torch operations."""
        return ResidualHop([partial(edges.propagate, edges.neighbor_weight())], itself)
