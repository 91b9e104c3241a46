"""SuperGAT: attention that also learns to predict the edges (Kim and Oh 2021)."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from everynode.models.gatv2 import GATv2
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class SuperGAT(GATv2):
    r"""Attention that is trained to tell edges from pairs of nodes without one.

    From `How to Find Your Friendly Neighborhood: Graph Attention Design with Self-Supervision
    <https://openreview.net/forum?id=Wi5KUNlqWty>`_, the variant MX, with PyG's layer:

    .. math:: \phi_{ij} = \sigma\big((W f_i)^\top W f_j\big), \qquad
              \alpha_{ij} = \mathrm{softmax}_{j \in N_i \cup \{i\}} \big(\mathrm{LeakyReLU}(
              a^\top [W f_i \| W f_j] \, \phi_{ij})\big), \qquad
              f'_i = \sum_{j \in N_i \cup \{i\}} \alpha_{ij} W f_j + b

    The term ``model_loss`` is the sum over the layers of

    .. math:: \mathcal{L}_E = -\frac{1}{|E| + |E^-|} \Big(\sum_{(j, i) \in E} \log \phi_{ij}
              + \sum_{(j, i) \in E^-} \log (1 - \phi_{ij})\Big)

    where E is a random share of the edges, and :math:`E^-` half as many pairs without one, both
    drawn in every pass; over several heads, the products are averaged before :math:`\sigma`. The
    authors' settings: 8 heads of 8 channels, dropout 0.6 everywhere; on Cora learning rate 0.005,
    weight decay 0.0082, weight of the loss 11.35, share of the edges 0.8; on Citeseer 0.005,
    0.0416, 0.0131 and 0.8; on Pubmed 0.01, 2.19e-4, 10.45 and 0.6.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    supergat_edge_share : float
        Share of the edges that the loss draws in each pass.
    **options
        See :class:`~everynode.models.gatv2.GATv2`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> SuperGAT(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        supergat_edge_share: float = Settings.supergat_edge_share,
        **options: Any,
    ):
        check_settings("SuperGAT", supergat_edge_share=supergat_edge_share)
        self._edge_share = supergat_edge_share
        super().__init__(num_features, num_classes, **options)

    def convolution(self, inputs: int, outputs: int, heads: int, *, concat: bool) -> nn.Module:
        """Return a layer; the edges that it gets have self-loops already."""
        from torch_geometric.nn import SuperGATConv  # takes seconds to import

        layer = SuperGATConv(
            inputs, outputs, heads=heads, concat=concat, dropout=self.layer_dropout,
            add_self_loops=False, attention_type="MX", edge_sample_ratio=self._edge_share,
        )  # fmt: skip
        # PyG draws with Python's generator, which neither a seed nor a checkpoint of ours covers.
        layer.negative_sampling = partial(pairs_without_edge, share=0.5 * self._edge_share)
        return layer

    def compute(self, x: SparseMatrix | Tensor, hops: Tensor) -> Tensor:
        """Return the logits."""
        if not self.training:  # forget the last training pass
            for layer in cast(Any, self.layers):
                layer.att_x = layer.att_y = None
        return super().compute(x, hops)

    def own_loss(self) -> Tensor:
        """Return the cross-entropy of the links in the last training pass."""
        layers = cast(Any, self.layers)
        return torch.stack([layer.get_attention_loss() for layer in layers]).sum()


def pairs_without_edge(
    edges: Tensor, num_nodes: int, batch: None = None, *, share: float
) -> Tensor:
    """Return random pairs of nodes that no edge joins, a ``share`` of the number of edges.

    >>> seed = torch.manual_seed(0)
    >>> pairs_without_edge(torch.tensor([[0, 1, 0], [1, 0, 0]]), 2, share=0.4)
    tensor([[1],
            [1]])
    """
    n, number = num_nodes, int(share * edges.shape[1])
    drawn = torch.randint(n * n, (2 * number + 16,), device=edges.device)
    free = drawn[~torch.isin(drawn, edges[0] * n + edges[1])][:number]
    return torch.stack([free // n, free % n])
