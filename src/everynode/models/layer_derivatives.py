r"""The derivatives of a layer's S, for :mod:`everynode.models.gradient_cosine`.

A value that exists once per half has shape 2 x n x c, or 2 x edges. A dot in a formula means a
movement: the change of a value per unit of time when the parameters move along the direction of
that half.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from everynode.dense_products import product
from everynode.models.known_gradient import KnownGradient
from everynode.models.receptive_field import Hop

#: A tensor of shape 2 x the parameter's shape for each parameter: one value for each half.
ByParameter = dict[nn.Parameter, Tensor]


class LayerDerivatives(Protocol):
    """First and second derivatives of S as a function of the layer's input x and of f_0.

    f_0 is the output of the opening layer. S may have parameters.
    """

    @property
    def reads_opening(self) -> bool:
        """Whether S depends on f_0."""
        ...

    def backward(
        self, at_u: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        """Map the gradients at u = S M to those at x.

        Adds the gradients at f_0 to ``at_f_0``, and those of S's own parameters to ``gradients``.
        """
        ...

    def move(
        self, moved: Tensor, moved_0: Tensor, directions: ByParameter, gradient: KnownGradient
    ) -> Tensor:
        """Return the movement of S from those of x, f_0 and the parameters.

        Adds to ``gradient`` the movement of the gradients that :meth:`backward` returned.
        """
        ...


class Propagation:
    r"""The derivatives of :math:`S = (1 - \alpha) \tilde P x + \alpha f_0`, for GCN and GCNII.

    S is linear, so its gradients do not move.

    Parameters
    ----------
    alpha : float
        Share of the opening features.
    hop : Hop
        The edges of the receptive field.
    """

    def __init__(self, alpha: float, hop: Hop):
        self.alpha, self.hop = alpha, hop

    @property
    def reads_opening(self) -> bool:
        """Whether S depends on f_0."""
        return bool(self.alpha)

    def backward(
        self, at_u: Tensor, matrix: Tensor, at_f_0: Tensor | None, gradients: ByParameter
    ) -> Tensor:
        r"""Return :math:`(1 - \alpha) \tilde P^\top g`; :math:`g = d M^\top` is the one at S."""
        operator = self.hop.gcn_operator
        out = at_u.new_empty(2, operator.shape[1], at_u.shape[2])
        # One half after the other: g is still in the cache.
        for half, (y, d) in enumerate(zip(out, at_u, strict=True)):
            g = product(d, matrix.T)
            origins = self.hop.origins
            if at_f_0 is not None and origins is None:
                at_f_0[half].add_(g, alpha=self.alpha)
            elif at_f_0 is not None and origins is not None:
                at_f_0[half].index_add_(0, origins, g, alpha=self.alpha)
            operator.transposed_into(g, 1.0 - self.alpha, out=y)
        return out

    def move(
        self, moved: Tensor, moved_0: Tensor, directions: ByParameter, gradient: KnownGradient
    ) -> Tensor:
        r"""Return :math:`(1 - \alpha) \tilde P \dot x + \alpha \dot f_0`."""
        if not self.alpha:
            return self.hop.gcn_operator.products(moved)
        operator, origins = self.hop.gcn_operator, self.hop.origins
        out = moved.new_empty(2, operator.shape[0], moved.shape[2])
        for y, x, x_0 in zip(out, moved, moved_0, strict=True):
            base = x_0 if origins is None else torch.index_select(x_0, 0, origins, out=y)
            operator.into(x, 1.0 - self.alpha, base=base, weight=self.alpha, out=y)
        return out
