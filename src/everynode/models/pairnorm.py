"""PairNorm: centered and scaled rows after each convolution (Zhao and Akoglu 2020)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import Propagation, full_graph_only
from everynode.models.plain_gcn import PlainGCN
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class PairNorm(PlainGCN):
    r"""GCN that keeps the distances between nodes through many layers.

    From `PairNorm: Tackling Oversmoothing in GNNs <https://arxiv.org/abs/1909.12223>`_, the
    variant PairNorm-SI:

    .. math:: \tilde f = \tilde D^{-1} \tilde A f^{(l)} W^{(l)} + b^{(l)}, \qquad
              \tilde f^c_i = \tilde f_i - \frac{1}{n} \sum_{j=1}^{n} \tilde f_j, \qquad
              f^{(l+1)}_i = \mathrm{ReLU}\Big(s \frac{\tilde f^c_i}{\| \tilde f^c_i \|_2}\Big)

    The last convolution is not normalized. The mean is over all nodes. The authors' settings: 64
    channels, dropout 0.6, learning rate 0.005, weight decay 5e-4, s = 1 or 10.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    pairnorm_scale : float
        The length s of each row.
    **options
        See :class:`~everynode.models.plain_gcn.PlainGCN`.

    Attributes
    ----------
    norm : torch_geometric.nn.PairNorm
        The normalization after each layer except the last.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> PairNorm(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        pairnorm_scale: float = Settings.pairnorm_scale,
        **options: Any,
    ):
        from torch_geometric.nn import PairNorm as Normalization  # takes seconds to import

        super().__init__(num_features, num_classes, **options)
        check_settings("PairNorm", pairnorm_scale=pairnorm_scale)
        self.norm = Normalization(scale=pairnorm_scale, scale_individually=True)

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        layers: Any = self.layers
        first, *others = layers
        f: Tensor = hops(self.drop_features(x) @ first.weight) + first.bias
        for layer in others:
            f = self.drop(torch.relu(self.norm(f)), self.layer_dropout)
            f = hops(f @ layer.weight) + layer.bias
        return f

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`\tilde D^{-1} \tilde A`."""
        return full_graph_only(self, graph).mean_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        degree = edges.weight.new_zeros(edges.num_nodes).index_add(0, edges.target, edges.weight)
        return partial(edges.propagate, edges.weight / degree[edges.target])
