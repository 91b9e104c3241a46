r"""How the layers' S and its movements are made, for :mod:`everynode.models.gradient_cosine`.

What exists once per half has shape 2 x n x c, or 2 x edges. Dots in formulas mean movements: what S would gain in one unit of time if
the parameters moved along that half's direction.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from everynode.models.gat import GATLayer
from everynode.models.known_gradient import Known, times
from everynode.models.layer import Layer
from everynode.models.receptive_field import Hop, Level
from everynode.sparse import SparseMatrix, sddmm

#: For each parameter: something of its shape for each half, so 2 x its shape.
ByParameter = dict[nn.Parameter, Tensor]


class Mixing(Protocol):
    """How a layer makes S of its input x and of the opening features f_0."""

    def back(
        self, down: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        """From the gradients at u = S M to those at x. Those at f_0 and at S's own parameters are added to what is there."""
        ...

    def move(self, moved: Tensor, moved_0: Tensor, directions: ByParameter, known: Known) -> Tensor:
        """The movement of S with those of x, f_0 and the parameters; and, for ``known``, how the gradients of :meth:`back` move."""
        ...


def mixing(layer: Layer, hop: Hop, inputs: Level, made_of: tuple[Tensor, ...]) -> Mixing:
    """That of a layer, over a hop from some ``inputs``; ``made_of``: what its :meth:`Layer.mix` has said of the training pass."""
    return (
        Attention(layer, hop, inputs, *made_of)
        if isinstance(layer, GATLayer)
        else Propagation(layer.alpha, hop)
    )


class Propagation:
    r"""GCN's and GCNII's :math:`S = (1 - \alpha) \tilde P x + \alpha f_0`: linear, so that its gradients do not move."""

    def __init__(self, alpha: float, hop: Hop):
        self.alpha, self.hop = alpha, hop

    def back(
        self, down: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        r""":math:`(1 - \alpha) \tilde P^\top g`, with the gradient :math:`g = d M^\top` at S."""
        operator = self.hop.gcn_operator.transpose
        out = down.new_empty(2, operator.shape[0], down.shape[2])
        for half, (y, d) in enumerate(
            zip(out, down, strict=True)
        ):  # one after the other, so that a half is still in the cache
            g = d @ matrix.T
            if at_f_0 is not None and self.hop.origins is None:
                at_f_0[half].add_(g, alpha=self.alpha)
            elif at_f_0 is not None:
                at_f_0[half].addmm_(self.hop.choice.transpose.csr, g, alpha=self.alpha)
            y.addmm_(operator.csr, g, beta=0.0, alpha=1.0 - self.alpha)
        return out

    def move(self, moved: Tensor, moved_0: Tensor, directions: ByParameter, known: Known) -> Tensor:
        r""":math:`(1 - \alpha) \tilde P \dot x + \alpha \dot f_0`."""
        if not self.alpha:
            return self.hop.gcn_operator.products(moved)
        operator, origins = self.hop.gcn_operator, self.hop.origins
        out = moved.new_empty(2, operator.shape[0], moved.shape[2])
        for y, x, x_0 in zip(out, moved, moved_0, strict=True):
            if origins is None:
                y.copy_(x_0)
            else:
                torch.index_select(x_0, 0, origins, out=y)
            y.addmm_(operator.csr, x, beta=self.alpha, alpha=1.0 - self.alpha)
        return out


class Attention:
    r"""GAT's :math:`S = A x`, where A has the softmax of the scores :math:`e_{ij} = \mathrm{LeakyReLU}(t_i + s_j)` in every row.

    :math:`[t, s] = x D` is n x 2, with :math:`D = \tilde W a^\top`. A gradient at A, one number per edge, is centred in every row to
    become one at e: :math:`\bar e = A \odot C, \; C = \bar A - \sum_j A \odot \bar A`. And A moves in the same way with e:
    :math:`\dot A = A \odot (\dot e - \sum_j A \odot \dot e)`.
    """

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
        self.made_of = x, direction, scores, attention  # of the whole graph
        self.pattern = hop.looped_adjacency.pattern
        self.by_row, self.by_column = hop.sums
        self.x, self.direction = inputs.pick(x), direction
        self.matrix = SparseMatrix(self.pattern, hop.pick(attention))
        # LeakyReLU's factor, at the edges
        self.slope = (
            (hop.pick(scores) > 0)
            .to(x.dtype)
            .mul_(1.0 - layer.negative_slope)
            .add_(layer.negative_slope)
        )

    def back(
        self, down: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        r""":math:`A^\top g + \bar p D^\top`, with the gradients :math:`g = d M^\top` at S and :math:`\bar p` at x D."""
        layer, a = self.layer, self.matrix.values
        at_s = (down.flatten(0, 1) @ matrix.T).view_as(down)
        at_a = torch.stack([sddmm(self.pattern, g, self.x) for g in at_s])
        self.at_s, self.centred = (
            at_s,
            at_a.sub_(self._per_edge(self.by_row.product_by_column(a * at_a))),
        )
        at_e = (a * self.centred).mul_(self.slope)
        self.at_p = at_s.new_zeros(2, len(self.x), 2)
        self.at_p[:, :, 1] = self.by_column.product_by_column(at_e)
        at_t = self.by_row.product_by_column(at_e)
        if self.hop.targets is None:
            self.at_p[:, :, 0] = at_t
        else:
            self.at_p[:, self.hop.targets, 0] = at_t
        self.at_d = self.x.T @ self.at_p
        gradients[layer.attention_weight] += self.at_d @ layer.a
        gradients[layer.a] += self.at_d.mT @ layer.attention_weight
        return self.matrix.transpose.products(at_s).baddbmm_(
            self.at_p, self.direction.T.expand(2, -1, -1)
        )

    def move(self, moved: Tensor, moved_0: Tensor, directions: ByParameter, known: Known) -> Tensor:
        r""":math:`A \dot x + \dot A x`."""
        layer, a, c = self.layer, self.matrix.values, self.x.shape[1]
        moved_w, moved_v = directions[layer.attention_weight], directions[layer.a]
        moved_d = (moved_w @ layer.a.T).add_(layer.attention_weight @ moved_v.mT)
        moved_p = (
            (moved.view(-1, c) @ self.direction)
            .view(2, -1, 2)
            .baddbmm_(self.x.expand(2, -1, -1), moved_d)
        )
        moved_t, moved_s = moved_p.unbind(2)
        if self.hop.targets is not None:
            moved_t = moved_t.index_select(1, self.hop.targets)
        moved_e = (
            self._per_edge(moved_t)
            .add_(moved_s.index_select(1, self.pattern.column))
            .mul_(self.slope)
        )
        moved_a = moved_e.sub_(self._per_edge(self.by_row.product_by_column(a * moved_e))).mul_(a)
        result = self.matrix.products(moved)
        moved_matrices = [SparseMatrix(self.pattern, values) for values in moved_a]
        for out, matrix in zip(result, moved_matrices, strict=True):
            out.addmm_(matrix.csr, self.x)

        # How the gradients move, summed over the halves: with A x for A and x, with the softmax for e, with x D for x and D, and with
        # D itself.
        x, direction, scores, attention = self.made_of
        at_x = torch.addbmm(self.x, self.at_p, moved_d.mT, beta=0.0)
        for matrix, g in zip(moved_matrices, self.at_s, strict=True):
            at_x.addmm_(matrix.transpose.csr, g)
        turned = moved_a.mul_(self.centred)
        turned = turned.sub_(self._per_edge(self.by_row.product_by_column(turned)).mul_(a)).sum(0)
        known.add(
            attention,
            sddmm(self.pattern, self.at_s[0], moved[0])
            + sddmm(self.pattern, self.at_s[1], moved[1]),
            self._spread,
        )
        known.add(scores, turned, self._spread)
        known.add(x, at_x, self.inputs.spread)
        known.add(direction, moved.view(-1, c).T @ self.at_p.view(-1, 2))
        known.add(
            layer.attention_weight,
            torch.addbmm(layer.attention_weight, self.at_d, moved_v, beta=0.0),
        )
        known.add(layer.a, torch.addbmm(layer.a, self.at_d.mT, moved_w, beta=0.0))
        return result

    def _per_edge(self, by_target: Tensor) -> Tensor:
        """2 x targets to 2 x edges."""
        return by_target.index_select(1, self.pattern.row)

    def _spread(self, at_edges: Tensor, factor: float) -> Tensor:
        return self.hop.spread(times(at_edges, factor))
