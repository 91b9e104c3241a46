"""GGCN: signed messages, and a learned scale for degrees (Yan et al. 2022)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, softplus

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.fagcn import WeightedSum
from everynode.models.feature_network import FeatureNetwork, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix, spmm


class DegreeHop(NamedTuple):
    r"""The edges of GGCN.

    Attributes
    ----------
    target, source : Tensor
        The ends of each edge.
    weight : Tensor
        :math:`\tilde P_{ij}` of each edge.
    ratio : Tensor
        :math:`\sqrt{(d_j + 1) / (d_i + 1)} - 1` of each edge.
    propagate : callable
        Sums rows over the edges, from one weight per edge.
    """

    target: Tensor
    source: Tensor
    weight: Tensor
    ratio: Tensor
    propagate: WeightedSum


class GGCNLayer(nn.Module):
    """A layer of :class:`GGCN`, whose docstring has the equation.

    Parameters
    ----------
    inputs, outputs : int
        Number of columns before and after.
    scale : float
        The initial value of the scale, before softplus.
    generator : torch.Generator, optional
        Source of the initial weights.

    Attributes
    ----------
    linear : Linear
        W and b.
    degree : Parameter
        a and a'.
    shares : Parameter
        The numbers whose softmax is :math:`c`.
    """

    def __init__(
        self, inputs: int, outputs: int, scale: float, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        self.linear = Linear(inputs, outputs, generator=generator)
        self.degree = nn.Parameter(torch.tensor([0.5, 0.0]))
        self.shares = nn.Parameter(torch.zeros(3))
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, f: Tensor | SparseMatrix, hops: DegreeHop) -> Tensor:
        """Return the new rows."""
        g = self.linear(f)
        unit = g * (g.square().sum(1, keepdim=True) + 1e-16).rsqrt()
        cosine = (unit[hops.target] * unit[hops.source]).sum(1)
        slope, intercept = self.degree
        weight = hops.weight * softplus(slope * hops.ratio + intercept)
        alike = hops.propagate(weight * torch.relu(cosine), g)
        unlike = hops.propagate(-weight * torch.relu(-cosine), g)
        shares = self.shares.softmax(0)
        mixed = shares[0] * alike + shares[1] * unlike + shares[2] * g
        result: Tensor = softplus(self.scale) * mixed
        return result


class GGCN(FeatureNetwork):
    r"""Messages with the sign of the cosine between two nodes, scaled by their degrees.

    From `Two Sides of the Same Coin: Heterophily and Oversmoothing in Graph Convolutional Neural
    Networks <https://arxiv.org/abs/2102.06462>`_, a layer with :math:`g = f W + b`:

    .. math:: G(f)_i = \mathrm{sp}(s) \Big(c_0 \sum_{j \neq i} \tau_{ij} \tilde P_{ij}
              [\cos(g_i, g_j)]_+ g_j - c_1 \sum_{j \neq i} \tau_{ij} \tilde P_{ij}
              [-\cos(g_i, g_j)]_+ g_j + c_2 g_i\Big)

    .. math:: \tau_{ij} = \mathrm{sp}\Big(a \Big(\sqrt{\tfrac{d_j + 1}{d_i + 1}} - 1\Big) + a'\Big)

    sp is softplus, :math:`c` the softmax of three learned numbers, and s, a, a' are learned in each
    layer. The layers, with learned opening weights and the features x:

    .. math:: h^{(1)} = \mathrm{ELU}(x W_0 + b_0) + \mathrm{ELU}(G_1(x)), \qquad
              h^{(l)} = h^{(l-1)} + \log(\eta / l^3 + 1) \, \mathrm{ELU}(G_l(h^{(l-1)})), \qquad
              z = G_L(h^{(L-1)})

    The authors' settings: learning rate 0.01, and on the ten folds (layers, weight decay, channels,
    dropout, :math:`\eta`) Cora 32, 1e-3, 16, 0.5, 0.9; Citeseer 10, 1e-7, 80, 0.5, 0.02; Pubmed 5,
    1e-5, 32, 0.3, 1.1; Cornell 6, 1e-3, 16, 0.5, 0.7; Texas 2, 1e-3, 16, 0.4.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    ggcn_decay : float
        :math:`\eta`; 0: no decay, the factor is 1.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout after each ELU but the first.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    opening : Linear
        :math:`W_0` and :math:`b_0`.
    layers : nn.ModuleList of GGCNLayer
        The L layers.
    decay : float
        ``ggcn_decay``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GGCN(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        ggcn_decay: float = Settings.ggcn_decay,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("GGCN", ggcn_decay=ggcn_decay)
        self.decay, width = ggcn_decay, self.hidden_channels
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, width, generator=generator)
        self.layers = nn.ModuleList(
            GGCNLayer(
                width if layer else num_features,
                num_classes if layer == self.num_layers - 1 else width,
                2.0 if ggcn_decay else 0.5,
                generator=generator,
            )
            for layer in range(self.num_layers)
        )

    def compute(self, x: SparseMatrix | Tensor, hops: DegreeHop) -> Tensor:
        """Return the logits."""
        x = self.drop_features(x)
        h = elu(self.opening(x))
        first, *others = self.layers
        inner: Tensor = first(x, hops)
        for place, layer in enumerate(others, 1):
            decayed = place > 1 and self.decay
            share = math.log(self.decay / place**3 + 1) if decayed else 1.0
            h = h + share * self.drop(elu(inner), self.layer_dropout)
            inner = layer(h, hops)
        return inner

    def hops_of(self, graph: Graph | Batch) -> DegreeHop:
        """Return the edges, and what depends on their degrees."""
        operator = full_graph_only(self, graph).gcn_operator
        pattern = operator.pattern
        ends = pattern.row, pattern.column
        return degree_hop(*ends, operator.values, partial(spmm, pattern), pattern.shape[0])

    def plain_hops(self, edges: EdgeList) -> DegreeHop:
        """Return the same edges in plain torch operations."""
        ends = edges.target, edges.source
        return degree_hop(*ends, edges.gcn_weight(), edges.propagate, edges.num_nodes)


def degree_hop(
    target: Tensor, source: Tensor, weight: Tensor, propagate: WeightedSum, num_nodes: int
) -> DegreeHop:
    r"""Return the edges without self-loops; ``weight``: the entries of :math:`\tilde P`."""
    loop = target == source
    # A self-loop weighs 1 / (d + 1).
    inverse = weight.new_zeros(num_nodes).index_add(0, target, torch.where(loop, weight, 0.0))
    ratio = (inverse[target] / inverse[source]).sqrt() - 1
    return DegreeHop(target, source, torch.where(loop, 0.0, weight), ratio, propagate)
