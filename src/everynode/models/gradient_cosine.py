r"""Cross-validating gradients by hand.

Autograd would go through the network once for each half's gradient and then back through all of that again, more than a thousand
operations. Here both halves travel together, over the receptive field of the labelled nodes only and along the values of the training
pass itself:

A. back: the gradients :math:`g_p` of the two halves' cross-entropies;
B. their cosine, and its derivatives :math:`v_p = \partial \cos / \partial g_p`;
C. forward: the movement of every value when the parameters move along :math:`v_p`, written with a dot;
D. how the gradients move then, which is :math:`\sum_p H_p v_p = \partial \cos / \partial \theta`.

A layer is :math:`u = S M` with :math:`M = (1 - \beta) I + \beta W`. With :math:`d_p` the gradient at u, those at S and M are
:math:`d_p M^\top` and :math:`S^\top d_p`. They move because :math:`d_p` does, and by :math:`\sum_p d_p \dot M_p^\top` and
:math:`\sum_p \dot S_p^\top d_p` of their own. Only the latter are worked out here. Their way back through the network is that of every
other gradient: so they are handed to autograd (:class:`~everynode.models.known_gradient.Known`) at the S and M of the training pass, and take
the way back together with the rest of the objective, for nothing. How S is made is the business of :mod:`everynode.models.layer_derivatives`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from everynode.models.known_gradient import Known
from everynode.models.layer import Step
from everynode.models.layer_derivatives import ByParameter, mixing
from everynode.models.receptive_field import Field, Level
from everynode.numerics import meaningful
from everynode.sparse import SparseMatrix, drop, where_positive

if TYPE_CHECKING:
    from everynode.models.network import Network


@dataclass(frozen=True)
class Trace:
    """The values that a training pass went through, almost all of which autograd keeps anyway."""

    #: By place, counted from the input: the probability and the noise of its dropout, where there is one.
    dropouts: dict[int, tuple[float, Tensor]]
    #: The features after their dropout, and what the opening layer made of them, after ReLU.
    features: SparseMatrix | Tensor
    opened: Tensor
    steps: list[Step]
    #: What went into the closing layer, and what came out.
    last: Tensor
    logits: Tensor

    def gate(self, f: Tensor, place: int, level: Level) -> Gate:
        """What ReLU and dropout let through between a layer and the next, from the result ``f`` of the ReLU."""
        f = level.pick(f)
        if place not in self.dropouts:
            return Gate(f, None)
        p, noise = self.dropouts[place]
        return Gate(f, drop(f.sign(), p, level.pick(noise)))


class Gate(NamedTuple):
    """ReLU and dropout: ReLU's result and, if there was dropout, the ``factor`` of both."""

    result: Tensor
    factor: Tensor | None

    def cut(self, x: Tensor) -> Tensor:
        """What they let through of gradients or movements (2 x n x c), in place."""
        return where_positive(self.result, x) if self.factor is None else x.mul_(self.factor)


class Shared(NamedTuple):
    """How two halves are shared out among processes: each has some of their nodes."""

    #: How many nodes (or how much weight) the halves have in all processes together; None: those at hand are all.
    totals: tuple[float, float] | None = None
    #: Makes a tensor, in place, the sum of those of all processes; None if there is one only.
    add_up: Callable[[Tensor], object] | None = None


class Curvature:
    """The sweeps through a network, along the values of its last training pass, over a receptive field."""

    @torch.no_grad()
    def __init__(
        self,
        network: Network,
        parameters: list[nn.Parameter],
        trace: Trace,
        field: Field,
        features: SparseMatrix | Tensor,
    ):
        """``parameters``: all of the network's; ``features``: those of the field's first level, after their dropout."""
        self.opening, self.layers, self.closing = network.opening, network.stack, network.closing
        # The opening weights are by far the most parameters. They come first, so that the rest can be written to without them.
        self.parameters = list(dict.fromkeys([self.opening.weight, *parameters]))
        self.trace, self.levels, self.features = trace, field.levels, features
        steps = trace.steps
        self.mixings = [
            mixing(layer, hop, level, step.made_of)
            for layer, hop, level, step in zip(
                self.layers, field.hops, field.levels[:-1], steps, strict=True
            )
        ]
        self.mixed = [
            level.pick(step.mixed) for level, step in zip(field.levels[1:], steps, strict=True)
        ]
        results = [trace.opened, *(step.result for step in steps)]
        self.gates = [
            trace.gate(f, place, level)
            for place, (f, level) in enumerate(zip(results, field.levels, strict=True), start=1)
        ]
        self.last, self.logits = (
            self.levels[-1].pick(trace.last),
            self.levels[-1].pick(trace.logits),
        )
        self.has_way_back = any(
            layer.alpha for layer in self.layers
        )  # GCNII, to the result of the opening layer

    def cosine(
        self,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None = None,
        shared: Shared | None = None,
        factor: float = 1.0,
    ) -> Tensor:
        """``factor`` times the cosine of the gradients of two halves' cross-entropies, itself with a gradient.

        ``labels``: those of the nodes in question; ``halves``: positions among these; ``weight``: of each class, None for all the same.
        """
        known = Known()
        with torch.no_grad():
            value = self._sweep(labels, halves, weight, shared or Shared(), factor, known)
        return known.function(value)

    def _sweep(
        self,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None,
        shared: Shared,
        factor: float,
        known: Known,
    ) -> Tensor:
        """The value; its gradient goes to ``known``."""
        y = torch.softmax(self.logits, dim=1)
        share = y.new_zeros(2, len(y), 1)  # each node's weight in each half's mean
        for shares, half, total in zip(share, halves, shared.totals or (None, None), strict=True):
            own = y.new_ones(len(half)) if weight is None else weight[labels[half]]
            shares[half, 0] = (own / (own.sum() if total is None else total)).to(shares.dtype)
        residual = y.scatter_add(1, labels[:, None], y.new_full((len(y), 1), -1.0))
        top = share * residual  # 2 x n x k: the gradient at the logits
        both, gradients = self._nothing()
        downs = self._back(top, gradients)
        if shared.add_up:
            shared.add_up(both)

        # B. With a = 1 / (|g_1| |g_2|): v_1 = a g_2 - cos / |g_1|^2 g_1, and the same with 1 and 2 exchanged.
        (square_1, dot), (_, square_2) = (both @ both.T).tolist()
        if not meaningful(square_1, square_2, both.dtype):
            known.add(self.trace.logits, torch.zeros_like(self.trace.logits))
            return y.new_zeros(())
        a = 1.0 / (
            math.sqrt(square_1) * math.sqrt(square_2)
        )  # not the root of a product, which might overflow
        value = a * dot
        turn = y.new_tensor([[-value / square_1, a], [a, -value / square_2]])
        directions = self._by_parameter(
            (factor * turn) @ both
        )  # all that follows is linear in them: here the factor costs nothing
        moved = self._forth(downs, directions, known)

        # D, at the closing layer. The softmax turns the movement of the logits into that of the gradient there.
        n, k = y.shape
        w, v = self.closing.weight, directions[self.closing.weight]
        z = (
            (moved.flatten(0, 1) @ w)
            .view(2, n, k)
            .baddbmm_(self.last.expand(2, -1, -1), v)
            .add_(directions[self.closing.bias][:, None])
        )
        turned = (z - (y * z).sum(2, keepdim=True)).mul_(y).mul_(share).sum(0)
        known.add(self.trace.logits, turned, self.levels[-1].spread)
        known.add(
            self.trace.last, torch.addbmm(self.last, top, v.mT, beta=0.0), self.levels[-1].spread
        )
        known.add(w, moved.flatten(0, 1).T @ top.view(2 * n, k))
        return y.new_tensor(factor * value)

    def _back(self, top: Tensor, gradients: ByParameter) -> list[Tensor]:
        """A. Fill in the gradients of both halves, and return, for each layer, those at its u (2 x n x c)."""
        _, n, k = top.shape
        gradients[self.closing.weight].baddbmm_(self.last.T.expand(2, -1, -1), top)
        gradients[self.closing.bias] += top.sum(1)
        c = len(
            self.closing.weight
        )  # not -1 in a view: a process that shares the halves may have none of their nodes
        down = self.gates[-1].cut((top.view(2 * n, k) @ self.closing.weight.T).view(2, n, c))
        opened = self.gates[0].result
        at_f_0 = down.new_zeros(2, *opened.shape) if self.has_way_back else None
        downs: list[Tensor] = []
        for index in reversed(range(len(self.layers))):
            layer, s = self.layers[index], self.mixed[index]
            downs.append(down)
            gradients[layer.weight].baddbmm_(s.T.expand(2, -1, -1), down, alpha=layer.beta)
            down = self.gates[index].cut(
                self.mixings[index].back(down, self.trace.steps[index].matrix, at_f_0, gradients)
            )
        if at_f_0 is not None:
            down += where_positive(opened, at_f_0)
        w = gradients[self.opening.weight]
        if isinstance(self.features, Tensor):
            w.baddbmm_(self.features.T.expand(2, -1, -1), down, beta=0.0)
        else:
            self.features.transpose.products(down, w)
        gradients[self.opening.bias] += down.sum(1)
        return downs

    def _forth(self, downs: list[Tensor], directions: ByParameter, known: Known) -> Tensor:
        """C, and D at the layers. The movement of what goes into the closing layer (2 x n x c); the ``downs`` are used up."""
        v = directions[self.opening.weight]
        moved_0 = (
            self.features @ v if isinstance(self.features, Tensor) else self.features.products(v)
        )
        moved_0 += directions[self.opening.bias][:, None]
        first = self.gates[0]
        if not self.has_way_back:
            moved = first.cut(moved_0)
        else:
            moved = moved_0 if first.factor is None else moved_0 * first.factor
            where_positive(first.result, moved_0)
        c = moved.shape[2]
        for index, (layer, step) in enumerate(zip(self.layers, self.trace.steps, strict=True)):
            down, s, v = downs.pop(), self.mixed[index], directions[layer.weight]
            moved_s = self.mixings[index].move(moved, moved_0, directions, known).view(-1, c)
            known.add(
                step.mixed,
                torch.addbmm(s, down, v.mT, beta=0.0, alpha=layer.beta),
                self.levels[index + 1].spread,
            )
            known.add(layer.weight, (moved_s.T @ down.view(-1, c)).mul_(layer.beta))
            moved = (moved_s @ step.matrix).view_as(down)
            for of_half, direction in zip(
                moved, v, strict=True
            ):  # a batched product would copy s for each
                of_half.addmm_(s, direction, alpha=layer.beta)
            self.gates[index + 1].cut(moved)
        return moved

    def _nothing(self) -> tuple[Tensor, ByParameter]:
        """For each half a zero for each parameter (but the opening weights): as two long vectors, and as views of these by parameter."""
        both = self.last.new_empty(2, sum(parameter.numel() for parameter in self.parameters))
        both[:, self.opening.weight.numel() :] = 0.0
        return both, self._by_parameter(both)

    def _by_parameter(self, both: Tensor) -> ByParameter:
        parts = both.split([parameter.numel() for parameter in self.parameters], dim=1)
        return {
            parameter: part.view(2, *parameter.shape)
            for parameter, part in zip(self.parameters, parts, strict=True)
        }
