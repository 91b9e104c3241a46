r"""Cross-validating gradients by hand, for networks whose layers are linear between their ReLUs (GCN and GCNII).

Autograd would go through the network once for each half's gradient and then back through all of that again, hundreds of small
operations. Here both halves travel together, over the receptive field of the labelled nodes only, in four sweeps:

A. back: the gradients :math:`g_p` of the two halves' cross-entropies;
B. their cosine, and its derivatives :math:`v_p = \partial \cos / \partial g_p`;
C. forward: how every layer's values move when the weights move along :math:`v_p`;
D. back: how the gradients move then, which is :math:`\sum_p H_p v_p = \partial \cos / \partial \theta`.

A layer is :math:`u = S M` with :math:`S = (1 - \alpha) \tilde P x + \alpha f_0` and :math:`M = (1 - \beta) I + \beta W`
(GCN: :math:`\alpha = 0, \beta = 1`). What exists once per half has shape n x 2 x c: as n x 2c it is one sparse product, as 2n x c one
product with a weight matrix, without a copy. After sweep C the halves need not be told apart and are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from everynode.backbones.field import Hop
from everynode.numerics import dots_and_norms, meaningful
from everynode.sparse import SparseMatrix

if TYPE_CHECKING:
    from everynode.backbones.network import Linear, LinearLayer


#: Something of both halves.
Pair = tuple[Tensor, Tensor]


class _Known(torch.autograd.Function):
    """A value whose gradients are known already."""

    @staticmethod
    def forward(ctx, value: Tensor, gradients: Sequence[Tensor], *parameters: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*gradients)
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        return (None, None, *(grad * g for g in ctx.saved_tensors))


def known(value: Tensor, gradients: dict[nn.Parameter, Tensor]) -> Tensor:
    """``value`` as a differentiable function of the parameters (once: these gradients are numbers)."""
    return _Known.apply(value, list(gradients.values()), *gradients)


class Curvature:
    """One network's pass over a receptive field, kept so that :meth:`cosine` can go through it again and again."""

    @torch.no_grad()
    def __init__(
        self,
        opening: Linear,
        layers: Sequence[LinearLayer],
        closing: Linear,
        features: SparseMatrix | Tensor,
        hops: Sequence[Hop],
        dropout: Callable[[Tensor, int], Tensor],
        scales: Sequence[float],
    ):
        """``features``: after their dropout. ``dropout(x, place)``: x after that place's dropout; ``scales``: its factors, by place."""
        self.opening, self.layers, self.closing, self.features, self.hops = opening, layers, closing, features, hops
        f_0 = torch.relu_(opening(features))
        self.active = _where_positive(f_0, 1.0)  # the opening layer's ReLU
        x = dropout(f_0, 1)
        #: By layer: its S; its M; and the factor of ReLU and dropout between its result u and the next layer's input x.
        self.mixed: list[Tensor] = []
        self.matrices: list[Tensor] = []
        self.factors = [self.active if x is f_0 else _where_positive(x, scales[1])]
        for place, (layer, hop) in enumerate(zip(layers, hops, strict=True), start=2):
            self.mixed.append(_mix(layer, hop, x, f_0))
            self.matrices.append(layer.matrix())
            x = dropout(torch.relu_(self.mixed[-1] @ self.matrices[-1]), place)
            self.factors.append(_where_positive(x, scales[place]))
        self.last = x
        #: The n x k logits of the field's nodes.
        self.logits = closing(x)

    @torch.no_grad()
    def cosine(self, labels: Tensor, halves: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[nn.Parameter, Tensor]]:
        """The cosine of the two halves' cross-entropy gradients, and its gradient for every parameter."""
        n = len(self.logits)
        y = torch.softmax(self.logits, dim=1)
        share = y.new_zeros(n, 2)  # each node's weight in each half's mean
        for p, half in enumerate(halves):
            share[half, p] = 1.0 / len(half)
        residual = y.clone()
        residual[torch.arange(n, device=labels.device), labels] -= 1.0
        top = share[:, :, None] * residual[:, None, :]  # n x 2 x k: the gradient at the logits
        gradients, downs = self._gradients(top)

        # B. With a = 1 / (|g_1| |g_2|): v_1 = a g_2 - cos / |g_1|^2 g_1, and the same with 1 and 2 exchanged.
        dot, norm_1, norm_2 = dots_and_norms([g for g, _ in gradients.values()], [g for _, g in gradients.values()])
        if not meaningful(norm_1, norm_2):
            return dot.new_zeros(()), {parameter: torch.zeros_like(parameter) for parameter in gradients}
        value = dot / (norm_1 * norm_2)
        a, b_1, b_2 = (x.item() for x in (1.0 / (norm_1 * norm_2), -value / norm_1.square(), -value / norm_2.square()))
        directions = {
            parameter: ((g_1 * b_1).add_(g_2, alpha=a), (g_2 * b_2).add_(g_1, alpha=a)) for parameter, (g_1, g_2) in gradients.items()
        }
        return value, self._moved_gradients(y, share, top, downs, directions)

    def _gradients(self, top: Tensor) -> tuple[dict[nn.Parameter, Pair], list[Tensor]]:
        """A. The gradients of both halves, and for each layer the gradient at its u (n x 2 x c)."""
        n, _, k = top.shape
        c = self.last.shape[1]
        found: dict[nn.Parameter, Pair] = {}
        found[self.closing.weight] = _pair((self.last.T @ top.view(n, 2 * k)).view(c, 2, k))
        found[self.closing.bias] = _pair(top.sum(0))
        down = (top.view(2 * n, k) @ self.closing.weight.T).view(n, 2, c).mul_(self.factors[-1][:, None])
        opened: Tensor | None = None  # what reaches the opening features on the side, in GCNII
        downs: list[Tensor] = []
        for index in reversed(range(len(self.layers))):
            layer, hop, s, m = self.layers[index], self.hops[index], self.mixed[index], self.matrices[index]
            n = len(s)
            downs.append(down)
            found[layer.weight] = _pair((s.T @ down.view(n, 2 * c)).mul_(layer.beta).view(c, 2, c))
            at_s = (down.view(2 * n, c) @ m.T).view(n, 2 * c)
            opened = _reach_back(layer, hop, at_s, opened, len(self.active))
            down = _spread_back(layer, hop, at_s).view(-1, 2, c).mul_(self.factors[index][:, None])
        if opened is not None:
            down += opened.view_as(down).mul_(self.active[:, None])
        # The opening weights are by far the most: each half by itself keeps what is worked on in the cache.
        found[self.opening.weight] = (_transposed_product(self.features, down[:, 0]), _transposed_product(self.features, down[:, 1]))
        found[self.opening.bias] = _pair(down.sum(0))
        return found, downs[::-1]

    def _moved_gradients(
        self, y: Tensor, share: Tensor, top: Tensor, downs: list[Tensor], directions: dict[nn.Parameter, Pair]
    ) -> dict[nn.Parameter, Tensor]:
        """C and D. The derivative, along each half's direction, of that half's gradient, summed over the halves."""
        n, _, k = top.shape
        c = self.last.shape[1]
        # C. Forward along the directions.
        side = [torch.stack(pair, dim=-2) for pair in (directions[layer.weight] for layer in self.layers)]  # c x 2 x c each
        last, bias = (torch.stack(directions[parameter], dim=-2) for parameter in (self.closing.weight, self.closing.bias))
        moved_0 = torch.stack([self.features @ v for v in directions[self.opening.weight]], dim=1)
        moved_0 += torch.stack(directions[self.opening.bias])
        moved = moved_0.clone() if self.layers[0].alpha else moved_0  # only GCNII needs the opening features later
        moved_0 = moved_0.mul_(self.active[:, None]) if self.layers[0].alpha else moved_0
        moved = moved.mul_(self.factors[0][:, None])
        crossed: list[Tensor] = []  # what the moved S adds to each weight's result; S itself would be large to keep
        for index, (layer, hop) in enumerate(zip(self.layers, self.hops, strict=True)):
            s, m = self.mixed[index], self.matrices[index]
            rows = len(s)
            moved_s = _mix(layer, hop, moved.view(-1, 2 * c), moved_0.view(-1, 2 * c)).view(2 * rows, c)
            crossed.append(moved_s.T @ downs[index].view(2 * rows, c))
            u = (moved_s @ m).view(rows, 2 * c)
            u = u.addmm_(s, side[index].view(c, 2 * c), alpha=layer.beta)
            moved = u.view(rows, 2, c).mul_(self.factors[index + 1][:, None])
        z = (moved.view(2 * n, c) @ self.closing.weight).view(n, 2 * k)
        z = z.addmm_(self.last, last.view(c, 2 * k)).view(n, 2, k).add_(bias)

        # D. Back: the softmax turns z into the movement of the gradient at the logits. From here on the halves are summed.
        turned = y[:, None] * (z - (y[:, None] * z).sum(2, keepdim=True))
        moved_top = (share[:, :, None] * turned).sum(1)
        found: dict[nn.Parameter, Tensor] = {}
        found[self.closing.weight] = (self.last.T @ moved_top).addmm_(moved.view(2 * n, c).T, top.view(2 * n, k))
        found[self.closing.bias] = moved_top.sum(0)
        back = (moved_top @ self.closing.weight.T).addmm_(top.view(n, 2 * k), _stacked(last))
        back *= self.factors[-1]
        opened: Tensor | None = None
        for index in reversed(range(len(self.layers))):
            layer, hop, s, m, down = self.layers[index], self.hops[index], self.mixed[index], self.matrices[index], downs[index]
            rows = len(s)
            found[layer.weight] = crossed[index].addmm_(s.T, back).mul_(layer.beta)
            at_s = (back @ m.T).addmm_(down.view(rows, 2 * c), _stacked(side[index]), alpha=layer.beta)
            opened = _reach_back(layer, hop, at_s, opened, len(self.active))
            back = _spread_back(layer, hop, at_s).mul_(self.factors[index])
        if opened is not None:
            back += opened.mul_(self.active)
        found[self.opening.weight] = _transposed_product(self.features, back)
        found[self.opening.bias] = back.sum(0)
        return found


def _mix(layer: LinearLayer, hop: Hop, x: Tensor, f_0: Tensor) -> Tensor:
    """S = (1 - alpha) P x + alpha f_0."""
    if not layer.alpha:
        return hop.gcn_operator @ x
    return hop.choice.add_product(hop.gcn_operator.product(x, 1.0 - layer.alpha), f_0, layer.alpha)


def _spread_back(layer: LinearLayer, hop: Hop, at_s: Tensor) -> Tensor:
    """The transpose of S's first part: from the gradient at S to that at x."""
    return hop.gcn_operator.transpose.product(at_s, 1.0 - layer.alpha)


def _reach_back(layer: LinearLayer, hop: Hop, at_s: Tensor, opened: Tensor | None, n: int) -> Tensor | None:
    """The transpose of S's second part, added to what has reached the opening features before."""
    if not layer.alpha:
        return None
    if opened is None:
        opened = at_s.new_zeros(n, at_s.shape[1])
    return hop.choice.transpose.add_product(opened, at_s, layer.alpha)


def _transposed_product(features: SparseMatrix | Tensor, g: Tensor) -> Tensor:
    return features.T @ g if isinstance(features, Tensor) else features.transpose @ g


def _where_positive(x: Tensor, factor: float) -> Tensor:
    """``factor`` where x > 0, else 0, for x that is nowhere negative."""
    return x.sign() if factor == 1.0 else x.sign().mul_(factor)


def _pair(both: Tensor) -> Pair:
    """... x 2 x out as the two halves."""
    first, second = both.unbind(-2)
    return first, second


def _stacked(direction: Tensor) -> Tensor:
    """in x 2 x out to 2 out x in: the two halves' transposes, one below the other."""
    return direction.permute(1, 2, 0).reshape(-1, direction.shape[0])
