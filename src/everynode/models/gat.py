"""The GAT layer as the paper writes it: one matrix for the attention, another for the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.models.layer import Layer
from everynode.models.receptive_field import Hop
from everynode.sparse import Pattern, spmm


class GATLayer(Layer):
    r"""One propagation with learned edge weights, one head (after Velickovic et al. 2018).

    .. math:: \alpha_{ij} = \frac{\exp(\mathrm{LeakyReLU}(a^\top [\tilde W f_i \| \tilde W f_j]))}
              {\sum_{p \in N_i} \exp(\mathrm{LeakyReLU}(a^\top [\tilde W f_i \| \tilde W f_p]))}, \qquad
              f^{(l+1)} = \sigma(S f^{(l)} W^{(l)}), \quad S_{ij} = \alpha_{ij}

    :math:`a \in R^{2c}`. A node attends to itself too, as in the original GAT (by the letter of the paper's :math:`N_i` it does not; but
    then an isolated node would lose its features). :math:`W` starts as the identity, :math:`\tilde W` and :math:`a` with Glorot. PyG's
    ``GATConv`` is the special case :math:`\tilde W = W`. An edge's weight, where there is one, multiplies its exponential.
    """

    def __init__(
        self,
        channels: int,
        *,
        negative_slope: float = 0.2,
        generator: torch.Generator | None = None,
    ):
        super().__init__(channels)
        self.attention_weight = nn.Parameter(torch.empty(channels, channels))
        self.a = nn.Parameter(torch.empty(2, channels))
        self.negative_slope = negative_slope
        for parameter in (self.attention_weight, self.a):
            nn.init.xavier_uniform_(parameter, generator=generator)

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r""":math:`S = \alpha f`, made of f, of :math:`\tilde W a^\top`, and of each edge's score (after LeakyReLU) and its softmax."""
        adjacency = hop.looped_adjacency
        pattern = adjacency.pattern
        # a' [W f_i || W f_j] is a sum of one number per target and one per source: nothing of size edges x channels.
        direction = self.attention_weight @ self.a.T
        target, source = (f @ direction).unbind(1)
        if hop.targets is not None:
            target = target[hop.targets]
        scores = nn.functional.leaky_relu(
            target[pattern.row] + source[pattern.column], self.negative_slope
        )
        # Plus the logarithm of the edge's weight, of 1 where edges have none.
        attention = edge_softmax(scores + adjacency.values.to(scores.dtype).log(), pattern)
        return spmm(pattern, attention, f), (f, direction, scores, attention)


def edge_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """The softmax of the entries' scores over each row of the pattern."""
    top = scores.new_full((pattern.shape[0],), -torch.inf).scatter_reduce(
        0, pattern.row, scores.detach(), "amax"
    )
    exponential = (scores - top[pattern.row]).exp()
    total = scores.new_zeros(pattern.shape[0]).index_add(0, pattern.row, exponential)
    return exponential / total[pattern.row]
