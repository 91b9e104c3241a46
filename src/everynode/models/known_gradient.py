"""A value whose gradient is known already, handed to autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: From the gradient at a part of a tensor and a factor to the factor times the gradient at all of it.
Spread = Callable[[Tensor, float], Tensor]


def times(x: Tensor, factor: float) -> Tensor:
    """``factor * x``; the usual factor, 1, costs nothing."""
    return x if factor == 1.0 else x * factor


class Known:
    """Collects the gradient of a value at some tensors, and makes the value a function of these that autograd can go through, once."""

    def __init__(self) -> None:
        self._found: dict[Tensor, tuple[Tensor, Spread]] = {}

    def add(self, tensor: Tensor, gradient: Tensor, spread: Spread = times) -> None:
        """Add to the gradient at a tensor; it may be that of a part only, which ``spread`` brings to all of it."""
        before = self._found.get(tensor)
        self._found[tensor] = (gradient if before is None else before[0] + gradient), spread

    def function(self, value: Tensor) -> Tensor:
        """The value, with this gradient."""
        gradients, spreads = zip(*self._found.values(), strict=True)
        result: Tensor = _Known.apply(value, gradients, spreads, *self._found)
        return result


class _Known(torch.autograd.Function):
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
        return (
            None,
            None,
            None,
            *(spread(g, factor) for g, spread in zip(ctx.saved_tensors, ctx.spreads, strict=True)),
        )
