"""GAT as the paper writes it: one matrix for the attention, another for the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everynode.dense_products import add_product, multiply, product
from everynode.models.edge_list import EdgeList
from everynode.models.known_gradient import KnownGradient, times
from everynode.models.layer import Layer
from everynode.models.layer_derivatives import ByParameter
from everynode.models.network import Network
from everynode.models.receptive_field import Hop, Level
from everynode.sparse import Pattern, SparseMatrix, sddmm, spmm


class GATLayer(Layer):
    r"""One propagation with learned edge weights and one head.

    After `Graph Attention Networks <https://arxiv.org/abs/1710.10903>`_ (Velickovic et al. 2018):

    .. math:: \alpha_{ij} =
              \frac{\exp(\mathrm{LeakyReLU}(a^\top [\tilde W f_i \| \tilde W f_j]))}
              {\sum_{p \in N_i} \exp(\mathrm{LeakyReLU}(a^\top [\tilde W f_i \| \tilde W f_p]))},
              \qquad f^{(l+1)} = \mathrm{ReLU}(S f^{(l)} W^{(l)}), \quad S_{ij} = \alpha_{ij}

    :math:`a \in R^{2c}`. A node also attends to itself, as in the original GAT; otherwise an
    isolated node would lose its features. :math:`W` starts as the identity, :math:`\tilde W` and
    :math:`a` with Glorot. PyG's ``GATConv`` is the special case :math:`\tilde W = W`. The weight of
    an edge multiplies its exponential.

    Parameters
    ----------
    channels : int
        Width of the input and of the output.
    negative_slope : float
        Slope of LeakyReLU below 0.
    position : int
        Not used.
    generator : torch.Generator, optional
        Source of the initial weights.

    Attributes
    ----------
    attention_weight : Parameter
        :math:`\tilde W`.
    a : Parameter
        The two halves of :math:`a`, 2 x c.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> from everynode.models.receptive_field import Hop
    >>> f = torch.ones(20, 4)
    >>> GATLayer(4)(f, f, Hop(generate(20, 40, 8, 3))).shape
    torch.Size([20, 4])
    """

    def __init__(
        self,
        channels: int,
        *,
        negative_slope: float = 0.2,
        position: int = 1,
        generator: torch.Generator | None = None,
    ):
        super().__init__(channels)
        self.attention_weight = nn.Parameter(torch.empty(channels, channels))
        self.a = nn.Parameter(torch.empty(2, channels))
        self.negative_slope = negative_slope
        for parameter in (self.attention_weight, self.a):
            nn.init.xavier_uniform_(parameter, generator=generator)

    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        r"""Return :math:`S = \alpha f`.

        Its derivatives need f, :math:`\tilde W a^\top`, and for each edge the score (after
        LeakyReLU) and the attention.
        """
        adjacency = hop.looped_adjacency
        pattern = adjacency.pattern
        # a' [W f_i || W f_j] is one number per target plus one per source: no edges x channels.
        direction = self.attention_weight @ self.a.T
        target, source = multiply(f, direction).unbind(1)
        target = hop.target_rows(target)
        scores = nn.functional.leaky_relu(
            target[pattern.row] + source[pattern.column], self.negative_slope
        )
        # The logarithm of an edge's weight is 0 in a graph without weights.
        attention = edge_softmax(scores + adjacency.values.to(scores.dtype).log(), pattern)
        return spmm(pattern, attention, f), (f, direction, scores, attention)

    def derivatives(self, hop: Hop, inputs: Level, saved: tuple[Tensor, ...]) -> Attention:
        """Return the derivatives of attention."""
        return Attention(self, hop, inputs, *saved)

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        """Apply the layer with plain torch operations."""
        at_target, at_source = (f @ (self.attention_weight @ self.a.T)).unbind(1)
        scores = nn.functional.leaky_relu(
            at_target[edges.target] + at_source[edges.source], self.negative_slope
        )
        attention = edges.softmax(scores + edges.weight.log())
        return torch.relu(edges.propagate(attention, f) @ self.matrix())


def edge_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """Return the softmax of the entries' scores over each row of the pattern."""
    top = scores.new_full((pattern.shape[0],), -torch.inf).scatter_reduce(
        0, pattern.row, scores.detach(), "amax"
    )
    exponential = (scores - top[pattern.row]).exp()
    total = scores.new_zeros(pattern.shape[0]).index_add(0, pattern.row, exponential)
    return exponential / total[pattern.row]


class Attention:
    r"""The derivatives of GAT's :math:`S = A x`.

    Each row of A holds the softmax of the scores :math:`e_{ij} = \mathrm{LeakyReLU}(t_i + s_j)`.
    :math:`[t, s] = x D` is n x 2, with :math:`D = \tilde W a^\top`. A gradient at A is one number
    per edge. Centered in every row, it becomes the gradient at e:
    :math:`\bar e = A \odot C, \; C = \bar A - \sum_j A \odot \bar A`. A moves with e in the same
    way: :math:`\dot A = A \odot (\dot e - \sum_j A \odot \dot e)`.

    Parameters
    ----------
    layer : GATLayer
        The layer.
    hop : Hop
        The edges of the receptive field.
    inputs : Level
        The nodes that the hop starts from.
    x, direction, scores, attention : Tensor
        The input, D, e and A of the training pass, for the whole graph.

    Attributes
    ----------
    saved : tuple of Tensor
        The values of the training pass.
    pattern, matrix : Pattern, SparseMatrix
        The entries of A within the receptive field, and A.
    by_row, by_column : SparseMatrix
        Sum the entries of A by row and by column.
    slope : Tensor
        The factor of LeakyReLU at each edge.
    """

    reads_opening = False

    def __init__(
        self,
        layer: GATLayer,
        hop: Hop,
        inputs: Level,
        x: Tensor,
        direction: Tensor,
        scores: Tensor,
        attention: Tensor,
    ):
        self.layer, self.hop, self.inputs = layer, hop, inputs
        self.saved = x, direction, scores, attention
        self.pattern = hop.looped_adjacency.pattern
        self.by_row, self.by_column = hop.sums
        self.x, self.direction = inputs.pick(x), direction
        self.matrix = SparseMatrix(self.pattern, hop.pick(attention), once=True)
        # The factor of LeakyReLU at each edge.
        slope = layer.negative_slope
        self.slope = (hop.pick(scores) > 0).to(x.dtype).mul_(1.0 - slope).add_(slope)

    def backward(
        self, at_u: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        r"""Return :math:`A^\top g + \bar p D^\top`.

        :math:`g = d M^\top` is the gradient at S and :math:`\bar p` the gradient at x D.
        """
        layer, a = self.layer, self.matrix.values
        at_s = product(at_u.flatten(0, 1), matrix.T).view_as(at_u)
        at_a = torch.stack([sddmm(self.pattern, g, self.x) for g in at_s])
        row_sums = self.by_row.product_by_column(a * at_a)
        self.at_s, self.centered = at_s, at_a.sub_(self._per_edge(row_sums))
        at_e = (a * self.centered).mul_(self.slope)
        self.at_p = at_s.new_zeros(2, len(self.x), 2)
        self.at_p[:, :, 1] = self.by_column.product_by_column(at_e)
        at_t = self.by_row.product_by_column(at_e)
        if self.hop.targets is None:
            self.at_p[:, :, 0] = at_t
        else:
            self.at_p[:, self.hop.targets, 0] = at_t
        at_p = self.at_p.transpose(0, 1).reshape(-1, 4)
        self.at_d = product(self.x.T, at_p).view(-1, 2, 2).transpose(0, 1)
        gradients[layer.attention_weight] += self.at_d @ layer.a
        gradients[layer.a] += self.at_d.mT @ layer.attention_weight
        at_x = torch.stack([self.matrix.transposed_into(g) for g in at_s])
        for of_half, at_half in zip(at_x, self.at_p, strict=True):
            add_product(of_half, at_half, self.direction.T)
        return at_x

    def move(
        self, moved: Tensor, moved_0: Tensor, directions: ByParameter, gradient: KnownGradient
    ) -> Tensor:
        r"""Return :math:`A \dot x + \dot A x`."""
        layer, a, c = self.layer, self.matrix.values, self.x.shape[1]
        moved_w, moved_v = directions[layer.attention_weight], directions[layer.a]
        moved_d = (moved_w @ layer.a.T).add_(layer.attention_weight @ moved_v.mT)
        moved_p = product(moved.view(-1, c), self.direction).view(2, -1, 2)
        # One product for both halves: x is read once.
        of_x = product(self.x, moved_d.permute(1, 0, 2).reshape(c, 4))
        moved_p += of_x.view(-1, 2, 2).transpose(0, 1)
        moved_t, moved_s = moved_p.unbind(2)
        if self.hop.targets is not None:
            moved_t = moved_t.index_select(1, self.hop.targets)
        moved_e = self._per_edge(moved_t).add_(moved_s.index_select(1, self.pattern.column))
        moved_e.mul_(self.slope)
        row_sums = self.by_row.product_by_column(a * moved_e)
        moved_a = moved_e.sub_(self._per_edge(row_sums)).mul_(a)
        result = self.matrix.products(moved)
        moved_matrices = [SparseMatrix(self.pattern, v, once=True) for v in moved_a]
        for out, matrix in zip(result, moved_matrices, strict=True):
            matrix.into(self.x, base=out, weight=1.0, out=out)
        self._add_movements(moved, moved_a, moved_matrices, moved_d, directions, gradient)
        return result

    def _add_movements(
        self,
        moved: Tensor,
        moved_a: Tensor,
        moved_matrices: list[SparseMatrix],
        moved_d: Tensor,
        directions: ByParameter,
        gradient: KnownGradient,
    ) -> None:
        """Add the movement of the gradients, summed over the halves, to ``gradient``.

        The gradients move with A x (at A and x), with the softmax (at e), with x D (at x and D),
        and with D itself (at its two factors). Uses up ``moved_a``.
        """
        layer, a, c = self.layer, self.matrix.values, self.x.shape[1]
        x, direction, scores, attention = self.saved
        at_p = self.at_p.transpose(0, 1).reshape(-1, 4)
        at_x = product(at_p, moved_d.transpose(1, 2).reshape(4, c))
        for matrix, g in zip(moved_matrices, self.at_s, strict=True):
            at_x += matrix.transposed_into(g)
        at_a = sddmm(self.pattern, self.at_s[0], moved[0])
        at_a = at_a + sddmm(self.pattern, self.at_s[1], moved[1])
        at_e = moved_a.mul_(self.centered)
        row_sums = self.by_row.product_by_column(at_e)
        at_e = at_e.sub_(self._per_edge(row_sums).mul_(a)).sum(0)
        moved_w, moved_v = directions[layer.attention_weight], directions[layer.a]
        at_w = torch.addbmm(layer.attention_weight, self.at_d, moved_v, beta=0.0)
        gradient.add(attention, at_a, self._spread)
        gradient.add(scores, at_e, self._spread)
        gradient.add(x, at_x, self.inputs.spread)
        gradient.add(direction, product(moved.view(-1, c).T, self.at_p.view(-1, 2)))
        gradient.add(layer.attention_weight, at_w)
        gradient.add(layer.a, torch.addbmm(layer.a, self.at_d.mT, moved_w, beta=0.0))

    def _per_edge(self, by_target: Tensor) -> Tensor:
        """Repeat 2 x targets to 2 x edges."""
        return by_target.index_select(1, self.pattern.row)

    def _spread(self, at_edges: Tensor, factor: float) -> Tensor:
        return self.hop.spread(times(at_edges, factor))


class GAT(Network):
    """A :class:`~everynode.models.network.Network` of :class:`GATLayer`.

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
    layers : list of GATLayer
        The propagation layers.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> GAT(8, 3, num_layers=2, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    layer = GATLayer
