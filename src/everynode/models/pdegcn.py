"""PDE-GCN: layers as steps of nonlinear diffusion on the edges (Eliasof et al. 2021)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class Gradient(NamedTuple):
    r"""The gradient of a graph: a weighted difference along each arc.

    Attributes
    ----------
    of : callable
        Returns G f, a row for each arc, from a row for each node.
    transposed : callable
        Returns :math:`G^\top g`, a row for each node, from a row for each arc.
    """

    of: Propagation
    transposed: Propagation


class PDEGCN(FeatureNetwork):
    r"""Diffusion whose flow along each edge is a nonlinear function of the difference.

    From `PDE-GCN: Novel Architectures for Graph Neural Networks Motivated by Partial Differential
    Equations <https://arxiv.org/abs/2108.01938>`_, PDE-GCN\ :sub:`D`:

    .. math:: f^{(0)} = \mathrm{ReLU}(x W_0 + b_0), \qquad
              f^{(l+1)} = f^{(l)} - h\, G^\top \mathrm{ReLU}(G f^{(l)} K_l) K_l^\top, \qquad
              z = f^{(L)} W + b

    .. math:: (G f)_{ij} = \frac{f_i - f_j}{\sqrt{(d_i + 1)(d_j + 1)}}
              \text{ for each arc } (i, j)

    :math:`K_l` starts as the identity. As with the authors, an undirected edge counts in both
    directions. The number of edges times the channels is in memory. The authors' settings, which
    were chosen on test nodes: dropout 0.7; learning rate of the opening and closing layer 0.07, of
    :math:`K_l` 5e-5, weight decay 5e-4 on Cora; 0.07, 2e-6 and 0.003 on Citeseer; 0.03, 3e-5 and
    1e-4 on Pubmed. One of their scripts has 8 layers with h = 15 / 8.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    pdegcn_step : float
        h, the step size of each layer.
    dropout : float
        Dropout on the features and before the last layer.
    layer_dropout : float
        Dropout before each layer.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    kernels : nn.ParameterList
        :math:`K_l` of each layer.
    step : float
        ``pdegcn_step``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> PDEGCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        pdegcn_step: float = Settings.pdegcn_step,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("PDEGCN", pdegcn_step=pdegcn_step)
        self.step, width = pdegcn_step, self.hidden_channels
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, width, generator=generator)
        self.kernels = nn.ParameterList(torch.eye(width) for _ in range(self.num_layers))
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: Gradient) -> Tensor:
        """Return the logits."""
        f = torch.relu(self.opening(self.drop_features(x)))
        for kernel in self.kernels:
            flow = torch.relu(hops.of(self.drop(f, self.layer_dropout)) @ kernel)
            f = f - self.step * hops.transposed(flow @ kernel.T)
        logits: Tensor = self.closing(self.drop(f, self.dropout))
        return logits

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the kernels as the group "gnn", and the first and last matrix apart."""
        rest = [*self.opening.parameters(), *self.closing.parameters()]
        return {"rest": rest, "gnn": list(self.kernels)}

    def hops_of(self, graph: Graph | Batch) -> Gradient:
        """Return the gradient of the graph."""
        graph = full_graph_only(self, graph)
        matrix: SparseMatrix = graph.cached(
            "graph gradient", lambda: _gradient(graph), of_structure=True
        )
        return Gradient(matrix.__matmul__, matrix.transpose.__matmul__)

    def plain_hops(self, edges: EdgeList) -> Gradient:
        """Return the same gradient in plain torch operations."""
        one, other, weight = edges.target, edges.source, edges.gcn_weight()[:, None]

        def transposed(g: Tensor) -> Tensor:
            zeros = g.new_zeros(edges.num_nodes, g.shape[1])
            return zeros.index_add(0, one, weight * g).index_add(0, other, -weight * g)

        return Gradient(lambda f: weight * (f[one] - f[other]), transposed)


def _gradient(graph: Graph) -> SparseMatrix:
    """Return G, arcs x nodes; the row of a self-loop is empty."""
    operator = graph.gcn_operator
    pattern = operator.pattern
    one, other = pattern.row.cpu().numpy(), pattern.column.cpu().numpy()
    weight = operator.values.cpu().double().numpy()
    arcs = np.arange(len(one))
    values = np.concatenate([weight, -weight])
    places = np.concatenate([arcs, arcs]), np.concatenate([one, other])
    matrix = scipy.sparse.coo_array((values, places), shape=(len(one), graph.num_nodes))
    return SparseMatrix.from_scipy(matrix, graph.dtype).to(graph.labels.device)
