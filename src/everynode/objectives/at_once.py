"""Cross-entropy, mutual information and total variation at once: one softmax, and the gradient while everything is at hand.

On a CPU, in float32 and float64, compiled kernels do it (:mod:`everynode.objectives.kernels`); elsewhere, without numba, and for second
derivatives the terms' own torch operations do. Both give the same up to rounding.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from everynode.numerics import log_softmax_by_class
from everynode.objectives.cross_entropy import CrossEntropy
from everynode.objectives.mutual_information import MutualInformation
from everynode.objectives.total_variation import TotalVariation

#: The types that the kernels are compiled for, and their names there.
COMPILED = {torch.float32: "float32", torch.float64: "float64"}


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of the predictions alone; None is a term that is not there."""

    ce: CrossEntropy
    mi: MutualInformation | None
    tv: TotalVariation | None
    _constants: dict[torch.dtype, tuple[np.ndarray, ...]] = field(default_factory=dict, init=False, repr=False)

    def constants(self, dtype: torch.dtype) -> tuple[np.ndarray, ...]:
        """What stays the same from step to step, as the kernels take it: TV's edges and factors; CE's nodes, weights and labels."""
        if dtype not in self._constants:
            no_edges = torch.empty(0, 2, dtype=torch.int32), torch.empty(0, 2, dtype=dtype)
            found = (
                *(self.tv.edges(dtype) if self.tv else no_edges),
                self.ce.nodes, self.ce.node_weight.double(), self.ce.labels.contiguous(),
            )  # fmt: skip
            self._constants[dtype] = tuple(array.numpy() for array in found)
        return self._constants[dtype]


class Values(NamedTuple):
    r"""Each term before weighting, 0 if not there, and :math:`\mathcal{L}_{CE} + \alpha \mathcal{L}_{MI} + \beta \mathcal{L}_{TV}`."""

    ce: Tensor
    mi: Tensor
    tv: Tensor
    total: Tensor


def at_once(logits: Tensor, terms: Terms, alpha: float, beta: float) -> Values:
    r"""The terms and their sum, MI weighted by :math:`\alpha` and TV by :math:`\beta`, for n x k ``logits``; by the kernels if they can."""
    if logits.device.type != "cpu" or logits.dtype not in COMPILED or kernels() is None:
        return one_by_one(logits, terms, alpha, beta)
    return Values(*_AtOnce.apply(logits, terms, alpha, beta))


def one_by_one(logits: Tensor, terms: Terms, alpha: float, beta: float) -> Values:
    """What :func:`at_once` gives, by torch operations: on any device, and differentiable as often as one likes."""
    log_y = log_softmax_by_class(logits)  # once, for both
    ce: Tensor = terms.ce(logits)
    mi = terms.mi.by_class(log_y) if terms.mi else log_y.new_zeros(())
    tv = terms.tv.by_class(log_y) if terms.tv else log_y.new_zeros(())
    return Values(ce, mi, tv, ce + alpha * mi + beta * tv)


@functools.cache
def kernels() -> ModuleType | None:
    """The compiled kernels; None where there is no numba, or where it is not to compile (``NUMBA_DISABLE_JIT``)."""
    try:
        found = importlib.import_module("everynode.objectives.kernels")  # only now, since importing numba takes its time
    except ImportError:
        return None
    return None if found.numba.config.DISABLE_JIT else found


class _AtOnce(torch.autograd.Function):
    """The fields of :class:`Values`. The forward pass finds the gradient of the total too, so that the backward pass only scales it."""

    @staticmethod
    def forward(ctx, logits: Tensor, terms: Terms, alpha: float, beta: float) -> tuple[Tensor, ...]:  # type: ignore[no-untyped-def]
        found = kernels()
        assert found is not None  # or at_once would not have come here
        shift, terms_and_gradient = found.compiled(COMPILED[logits.dtype])
        n, k = logits.shape
        given, x, gradient = logits.detach().contiguous().numpy(), logits.new_empty(n, found.padded(k)), logits.new_empty(n, k)
        shifted, largest = x.numpy(), np.empty(n, given.dtype)
        shift(given, shifted, largest)
        y = x.exp().numpy()  # by torch, whose exponential is vectorised; numba's is not
        weight, lam = (alpha, terms.mi.lam) if terms.mi else (0.0, 0.0)
        ce, mi, tv = terms_and_gradient(
            given, largest, shifted, y, *terms.constants(logits.dtype), weight, lam, beta, gradient.numpy()
        )  # fmt: skip
        mi = mi if terms.mi else 0.0
        ctx.save_for_backward(logits, gradient)
        ctx.rest = terms, alpha, beta
        ctx.set_materialize_grads(False)
        # Where a step of a small graph takes some milliseconds, torch.scalar_tensor for each of the four would be seen.
        return tuple(torch.from_numpy(np.array(value, given.dtype)) for value in (ce, mi, tv, ce + alpha * mi + beta * tv))

    @staticmethod
    def backward(ctx, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None]:  # type: ignore[no-untyped-def]
        logits, gradient = ctx.saved_tensors
        *of_terms, of_total = grads
        again = torch.is_grad_enabled()  # somebody will differentiate the gradient
        if of_total is not None and not again and of_terms == [None, None, None]:
            return gradient * of_total, None, None, None
        with torch.enable_grad():
            x = logits if again else logits.detach().requires_grad_()
            both = zip(one_by_one(x, *ctx.rest), grads, strict=True)
            asked = [(value, grad) for value, grad in both if grad is not None and value.requires_grad]
            if not asked:
                return None, None, None, None
            (result,) = torch.autograd.grad([value for value, _ in asked], [x], [grad for _, grad in asked], create_graph=again)
        return result, None, None, None
