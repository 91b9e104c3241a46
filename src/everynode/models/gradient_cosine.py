r"""The cosine of two gradients and its own gradient, without autograd.

Cross-validating gradients need it in every step. Autograd would go through the network once for
each half's gradient and then back through all of that: more than a thousand operations. Here both
halves travel together, over the receptive field of the labeled nodes only, along the values of
the training pass:

A. backward: the gradients :math:`g_p` of the two halves' cross-entropies;
B. their cosine, and its derivatives :math:`v_p = \partial \cos / \partial g_p`;
C. forward: the movement of every value when the parameters move along :math:`v_p`, written with a
   dot;
D. the movement of the gradients, :math:`\sum_p H_p v_p = \partial \cos / \partial \theta`.

A layer is :math:`u = S M` with :math:`M = (1 - \beta) I + \beta W`. With :math:`d_p` the gradient
at u, the gradients at S and M are :math:`d_p M^\top` and :math:`S^\top d_p`. Their movement has
two parts. The first follows from the movement of :math:`d_p`. The second is
:math:`\sum_p d_p \dot M_p^\top` and :math:`\sum_p \dot S_p^\top d_p`, and only this one is
computed here. Autograd receives it at the S and M of the training pass
(:class:`~everynode.models.known_gradient.KnownGradient`) and carries it back together with the
rest of the objective, at no extra cost. The layers bring the derivatives of S
(:mod:`everynode.models.layer_derivatives`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from everynode.dense_products import add_product, product
from everynode.models.known_gradient import KnownGradient
from everynode.models.layer import LayerTrace
from everynode.models.layer_derivatives import ByParameter, LayerDerivatives
from everynode.models.receptive_field import Level, ReceptiveField
from everynode.numerics import meaningful
from everynode.sparse import SparseMatrix, drop, where_positive

if TYPE_CHECKING:
    from everynode.models.network import Network


@dataclass(frozen=True)
class NetworkTrace:
    """The values of a training pass. Autograd keeps almost all of them anyway.

    Attributes
    ----------
    dropouts : dict
        Probability and noise of each dropout, by place: 0 is the input.
    features : SparseMatrix or Tensor
        The features after their dropout.
    opened : Tensor
        The output of the opening layer after ReLU.
    layers : list of LayerTrace
        The values of each layer.
    last, logits : Tensor
        The input and the output of the closing layer.
    """

    dropouts: dict[int, tuple[float, Tensor]]
    features: SparseMatrix | Tensor
    opened: Tensor
    layers: list[LayerTrace]
    last: Tensor
    logits: Tensor

    def mask(self, output: Tensor, place: int, level: Level) -> ActivationMask:
        """Return the ReLU and dropout between two layers; ``output``: the output of the ReLU."""
        output = level.pick(output)
        if place not in self.dropouts:
            return ActivationMask(output, None)
        p, noise = self.dropouts[place]
        return ActivationMask(output, drop(output.sign(), p, level.pick(noise)))


class ActivationMask(NamedTuple):
    """A ReLU, followed by a dropout or not.

    Attributes
    ----------
    output : Tensor
        The output of the ReLU.
    factor : Tensor or None
        The derivative of ReLU and dropout; None: no dropout follows.
    """

    output: Tensor
    factor: Tensor | None

    def apply(self, x: Tensor) -> Tensor:
        """Multiply gradients or movements (2 x n x c) by the derivative, in place."""
        return where_positive(self.output, x) if self.factor is None else x.mul_(self.factor)


class SharedHalves(NamedTuple):
    """The two halves when each of several processes holds some of their nodes.

    Attributes
    ----------
    totals : tuple of float, optional
        Number of nodes (or total weight) of each half in all processes; None: this process has all.
    add_up : Callable[[Tensor], object], optional
        Sums a tensor over all processes, in place; None: there is one process.
    """

    totals: tuple[float, float] | None = None
    add_up: Callable[[Tensor], object] | None = None


class GradientCosine:
    """The sweeps through a network along its last training pass, over a receptive field.

    Parameters
    ----------
    network : Network
        The network.
    parameters : list of Parameter
        All of its parameters.
    trace : NetworkTrace
        The values of the training pass, for all nodes.
    field : ReceptiveField
        The receptive field of the labeled nodes.
    derivatives : sequence of LayerDerivatives
        Those of each layer, over this receptive field.
    features : SparseMatrix or Tensor
        The features of the first level, after dropout.

    Attributes
    ----------
    opening, layers, closing
        The parts of the network.
    levels : sequence of Level
        The nodes of the receptive field before and after each layer.
    mixed : list of Tensor
        S of each layer, for the nodes of its level.
    masks : list of ActivationMask
        ReLU and dropout after the opening layer and each further layer.
    last, logits : Tensor
        The input and the output of the closing layer, for the labeled nodes.
    reads_opening : bool
        Whether a layer reads the opening features.
    """

    @torch.no_grad()
    def __init__(
        self,
        network: Network,
        parameters: list[nn.Parameter],
        trace: NetworkTrace,
        field: ReceptiveField,
        derivatives: Sequence[LayerDerivatives],
        features: SparseMatrix | Tensor,
    ):
        self.opening, self.closing = network.opening, network.closing
        self.layers, self.derivatives = list(network.layers), derivatives
        # The opening weights are most of the parameters. They come first: no zeros for them.
        self.parameters = list(dict.fromkeys([self.opening.weight, *parameters]))
        self.trace, self.levels = trace, field.levels
        self.features = features if isinstance(features, Tensor) else features.nonzeros
        self.mixed = [
            level.pick(layer.mixed)
            for level, layer in zip(field.levels[1:], trace.layers, strict=True)
        ]
        outputs = [trace.opened, *(layer.output for layer in trace.layers)]
        self.masks = [
            trace.mask(output, place, level)
            for place, (output, level) in enumerate(zip(outputs, field.levels, strict=True), 1)
        ]
        self.last = self.levels[-1].pick(trace.last)
        self.logits = self.levels[-1].pick(trace.logits)
        self.reads_opening = any(d.reads_opening for d in derivatives)

    def cosine(
        self,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None = None,
        shared: SharedHalves | None = None,
        factor: float = 1.0,
    ) -> Tensor:
        """Return ``factor`` times the cosine, with its gradient attached.

        ``labels``: classes of the labeled nodes; ``halves``: positions among them; ``weight``: of
        each class.
        """
        gradient = KnownGradient()
        with torch.no_grad():
            value = self._sweep(labels, halves, weight, shared or SharedHalves(), factor, gradient)
        return gradient.attach(value)

    def _sweep(
        self,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None,
        shared: SharedHalves,
        factor: float,
        gradient: KnownGradient,
    ) -> Tensor:
        """Return the value and add its gradient to ``gradient``."""
        y = torch.softmax(self.logits, dim=1)
        share = y.new_zeros(2, len(y), 1)  # each node's weight in each half's mean
        for shares, half, total in zip(share, halves, shared.totals or (None, None), strict=True):
            own = y.new_ones(len(half)) if weight is None else weight[labels[half]]
            shares[half, 0] = (own / (own.sum() if total is None else total)).to(shares.dtype)
        residual = y.scatter_add(1, labels[:, None], y.new_full((len(y), 1), -1.0))
        at_logits = share * residual  # 2 x n x k
        both, gradients = self._zeros()
        at_u = self._backward(at_logits, gradients)
        if shared.add_up:
            shared.add_up(both)

        # B. With a = 1 / (|g_1| |g_2|): v_1 = a g_2 - cos / |g_1|^2 g_1; for v_2, swap 1 and 2.
        (square_1, dot), (_, square_2) = (both @ both.T).tolist()
        if not meaningful(square_1, square_2, both.dtype):
            gradient.add(self.trace.logits, torch.zeros_like(self.trace.logits))
            return y.new_zeros(())
        # Two roots: the product might overflow.
        a = 1.0 / (math.sqrt(square_1) * math.sqrt(square_2))
        value = a * dot
        turn = y.new_tensor([[-value / square_1, a], [a, -value / square_2]])
        # Everything below is linear in the directions, so the factor costs nothing here.
        directions = self._by_parameter((factor * turn) @ both)
        moved = self._forward(at_u, directions, gradient)

        # D, at the closing layer: the softmax turns moved logits into a moved gradient.
        n, k = y.shape
        w, v = self.closing.weight, directions[self.closing.weight]
        z = product(moved.flatten(0, 1), w).view(2, n, k)
        z.baddbmm_(self.last.expand(2, -1, -1), v).add_(directions[self.closing.bias][:, None])
        moved_at_logits = (z - (y * z).sum(2, keepdim=True)).mul_(y).mul_(share).sum(0)
        moved_at_last = torch.addbmm(self.last, at_logits, v.mT, beta=0.0)
        gradient.add(self.trace.logits, moved_at_logits, self.levels[-1].spread)
        gradient.add(self.trace.last, moved_at_last, self.levels[-1].spread)
        gradient.add(w, product(moved.flatten(0, 1).T, at_logits.view(2 * n, k)))
        return y.new_tensor(factor * value)

    def _backward(self, at_logits: Tensor, gradients: ByParameter) -> list[Tensor]:
        """A. Fill in both halves' gradients; return those at u (2 x n x c), last layer first."""
        _, n, k = at_logits.shape
        gradients[self.closing.weight].baddbmm_(self.last.T.expand(2, -1, -1), at_logits)
        gradients[self.closing.bias] += at_logits.sum(1)
        # Not -1 in a view: a process may hold no nodes.
        c = len(self.closing.weight)
        down = product(at_logits.view(2 * n, k), self.closing.weight.T).view(2, n, c)
        down = self.masks[-1].apply(down)
        opened = self.masks[0].output
        at_f_0 = down.new_zeros(2, *opened.shape) if self.reads_opening else None
        at_u: list[Tensor] = []
        for index in reversed(range(len(self.layers))):
            layer, s = self.layers[index], self.mixed[index]
            at_u.append(down)
            for of_half, at_half in zip(gradients[layer.weight], down, strict=True):
                add_product(of_half, s.T, at_half, layer.beta)
            matrix = self.trace.layers[index].matrix
            at_x = self.derivatives[index].backward(down, matrix, at_f_0, gradients)
            down = self.masks[index].apply(at_x)
        if at_f_0 is not None:
            down += where_positive(opened, at_f_0)
        w = gradients[self.opening.weight]
        if isinstance(self.features, Tensor):
            for of_half, at_rows in zip(w, down, strict=True):
                add_product(of_half, self.features.T, at_rows, keep=0.0)
        else:
            for of_half, at_rows in zip(w, down, strict=True):
                self.features.transposed_into(at_rows, out=of_half)
        gradients[self.opening.bias] += down.sum(1)
        return at_u

    def _forward(
        self, at_u: list[Tensor], directions: ByParameter, gradient: KnownGradient
    ) -> Tensor:
        """C, and D at the layers. Return the movement of the closing layer's input; empty at_u."""
        v = directions[self.opening.weight]
        if isinstance(self.features, Tensor):
            moved_0 = v.new_empty(2, len(self.features), v.shape[2])
            for of_half, direction in zip(moved_0, v, strict=True):
                add_product(of_half, self.features, direction, keep=0.0)
        else:
            moved_0 = self.features.products(v)
        moved_0 += directions[self.opening.bias][:, None]
        first = self.masks[0]
        if not self.reads_opening:
            moved = first.apply(moved_0)
        else:
            moved = moved_0 if first.factor is None else moved_0 * first.factor
            where_positive(first.output, moved_0)
        c = moved.shape[2]
        for index, (layer, trace) in enumerate(zip(self.layers, self.trace.layers, strict=True)):
            down, s, v = at_u.pop(), self.mixed[index], directions[layer.weight]
            moved_s = self.derivatives[index].move(moved, moved_0, directions, gradient).view(-1, c)
            at_s = product(down[0], v[0].T, layer.beta)
            add_product(at_s, down[1], v[1].T, layer.beta)
            gradient.add(trace.mixed, at_s, self.levels[index + 1].spread)
            gradient.add(layer.weight, product(moved_s.T, down.view(-1, c), layer.beta))
            # u moves by S's movement times M plus S times M's movement: one product per half.
            moved = product(moved_s, trace.matrix).view_as(down)
            for of_half, direction in zip(moved, v, strict=True):
                add_product(of_half, s, direction, layer.beta)
            self.masks[index + 1].apply(moved)
        return moved

    def _zeros(self) -> tuple[Tensor, ByParameter]:
        """Return two long vectors, one per half, and views of them by parameter.

        All zero but for the opening weights, which are written later.
        """
        both = self.last.new_empty(2, sum(parameter.numel() for parameter in self.parameters))
        both[:, self.opening.weight.numel() :] = 0.0
        return both, self._by_parameter(both)

    def _by_parameter(self, both: Tensor) -> ByParameter:
        parts = both.split([parameter.numel() for parameter in self.parameters], dim=1)
        return {
            parameter: part.view(2, *parameter.shape)
            for parameter, part in zip(self.parameters, parts, strict=True)
        }
