"""GRAND: diffusion of node features over continuous time (Chamberlain et al. 2021)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import require
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.fagcn import SignedHop
from everynode.models.feature_network import FeatureNetwork, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class GRANDDiffusion(FeatureNetwork):
    r"""Linear diffusion along edges that are weighed once by attention.

    From `GRAND: Graph Neural Diffusion <https://arxiv.org/abs/2106.10934>`_, the variant GRAND-l:

    .. math:: f(0) = x W_0 + b_0, \qquad
              \dot f(t) = \sigma(\alpha) (A - I) f(t) + \beta f(0), \qquad
              z = \mathrm{ReLU}(f(T))\, W + b

    .. math:: A_{ij} = \frac{1}{H} \sum_{h=1}^{H} \mathrm{softmax}_{j \in N_i \cup \{i\}}
              \frac{(f_i(0) K_h + k_h)^\top (f_j(0) Q_h + q_h)}{\sqrt{d_k}}

    :math:`\alpha, \beta` are learned and start at 0; K and Q start near 0, so the attention starts
    uniform. :math:`\sigma` is the sigmoid. Explicit Euler solves the equation in equal steps of at
    most 1; the authors have an adaptive solver (dopri5), Adamax, and on some graphs a rewired
    graph. Their settings: on Cora 80 channels, T = 18.3, learning rate 0.0229, weight decay 0.0051,
    dropout 0.5 on the features and 0.05 at the end, 8 heads; on Citeseer 80, 7.9, 0.0086, 0.1,
    0.68, 0.75 and 8; on Pubmed 128, 12.9, 0.0147, 0.0018, 0.5, 0.07 and 1.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    diffusion_time : float
        T, the end of the diffusion.
    attention_heads : int
        H, the number of heads, a divisor of ``hidden_channels``.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout before the last layer.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`. ``num_layers`` has no effect.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    keys, queries : Linear
        K and Q of all heads, side by side.
    alpha, beta : Parameter
        The speed of the diffusion before the sigmoid, and the weight of the source.
    time, heads : float, int
        ``diffusion_time`` and ``attention_heads``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GRANDDiffusion(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        diffusion_time: float = Settings.diffusion_time,
        attention_heads: int = Settings.attention_heads,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("GRANDDiffusion", diffusion_time=diffusion_time)
        width, heads = self.hidden_channels, attention_heads
        good, expected = heads >= 1 and width % heads == 0, f"a divisor of hidden_channels={width}"
        require(good, "attention_heads", "GRANDDiffusion", expected, heads)
        self.time, self.heads = diffusion_time, heads
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, width, generator=generator)
        self.keys, self.queries = (Linear(width, width, generator=generator) for _ in range(2))
        with torch.no_grad():
            for layer in (self.keys, self.queries):
                layer.weight.fill_(1e-5)
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(()))
        self.closing = Linear(width, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: SignedHop) -> Tensor:
        """Return the logits."""
        first = f = self.opening(self.drop_features(x))
        attention = self.attention(first, hops)
        steps = math.ceil(self.time)
        tau, speed = self.time / steps, torch.sigmoid(self.alpha)
        for _ in range(steps):
            f = f + tau * (speed * (hops.propagate(attention, f) - f) + self.beta * first)
        logits: Tensor = self.closing(self.drop(torch.relu(f), self.layer_dropout))
        return logits

    def attention(self, f: Tensor, hops: SignedHop) -> Tensor:
        """Return the mean attention of the heads, one value for each entry."""
        keys, queries = self.keys(f), self.queries(f)
        n, size = len(f), self.hidden_channels // self.heads
        products = keys[hops.target] * queries[hops.source]
        scores = products.view(-1, self.heads, size).sum(2) / math.sqrt(size)
        index = hops.target[:, None].expand_as(scores)
        top = scores.new_full((n, self.heads), -torch.inf)
        top = top.scatter_reduce(0, index, scores.detach(), "amax")
        values = (scores - top[hops.target]).exp()
        total = values.new_zeros(n, self.heads).index_add(0, hops.target, values)
        return (values / total[hops.target]).mean(1)

    def hops_of(self, graph: Graph | Batch) -> SignedHop:
        """Return the edges with self-loops."""
        return SignedHop.of(full_graph_only(self, graph).looped_adjacency)

    def plain_hops(self, edges: EdgeList) -> SignedHop:
        """Return the same edges in plain torch operations."""
        return SignedHop(edges.target, edges.source, edges.weight, edges.propagate)
