"""SAGE: own features and the mean of the neighbors apart (Hamilton et al. 2017)."""

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

    :math:`D^{-1} A` is the mean over the neighbors without the node. A node's own features have
    weights of their own, so that the network works where neighbors differ.

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
