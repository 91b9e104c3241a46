"""A value with a gradient that was computed before, handed to autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Map the gradient at some rows of a tensor, and a factor, to the scaled gradient at all rows.
Spread = Callable[[Tensor, float], Tensor]


def times(x: Tensor, factor: float) -> Tensor:
    """Return ``factor * x``, without a copy for a factor of 1."""
    return x if factor == 1.0 else x * factor


class KnownGradient:
    """Collects the gradient of a scalar at several tensors, then attaches it to the scalar.

    Examples
    --------
    >>> w = torch.ones(2, requires_grad=True)
    >>> gradient = KnownGradient()
    >>> gradient.add(w, torch.tensor([3.0, 4.0]))
    >>> gradient.attach(torch.tensor(7.0)).backward()
    >>> w.grad
    tensor([3., 4.])
    """

    def __init__(self) -> None:
        self._gradients: dict[Tensor, tuple[Tensor, Spread]] = {}

    def add(self, tensor: Tensor, gradient: Tensor, spread: Spread = times) -> None:
        """Add to the gradient at a tensor; ``spread`` extends a gradient of some of its rows."""
        before = self._gradients.get(tensor)
        self._gradients[tensor] = (gradient if before is None else before[0] + gradient), spread

    def attach(self, value: Tensor) -> Tensor:
        """Return the value as a function of the tensors, differentiable once."""
        gradients, spreads = zip(*self._gradients.values(), strict=True)
        result: Tensor = _Attach.apply(value, gradients, spreads, *self._gradients)
        return result


class _Attach(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, value: Tensor, gradients: Sequence[Tensor], spreads: Sequence[Spread], *tensors: Tensor
    ) -> Tensor:
        ctx.save_for_backward(*gradients)
        ctx.spreads = spreads
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        factor = grad.item()
        pairs = zip(ctx.saved_tensors, ctx.spreads, strict=True)
        return None, None, None, *(spread(gradient, factor) for gradient, spread in pairs)
