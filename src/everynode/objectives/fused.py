"""Cross-entropy, mutual information and total variation at once: one softmax, and the gradient while everything is at hand.

On a CPU, in float32 and float64, compiled kernels do it (:mod:`everynode.objectives.numba_kernels`); elsewhere, without numba, and for second
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
NO_EDGES = {
    dtype: (
        torch.empty(0, dtype=torch.int32, device="cpu"),
        torch.empty(0, dtype=dtype, device="cpu"),
    )
    for dtype in COMPILED
}


class Views:
    """NumPy views of tensors, kept from step to step: making them is seen in a step of few milliseconds.

    They are made again when a tensor is another one than last time, or has moved: to memory that processes share, say.
    """

    def __init__(self) -> None:
        self._of: tuple[
            Tensor, ...
        ] = ()  # which, as long as they are here, have their ids to themselves
        self._known: tuple[int, ...] = ()
        self._views: list[np.ndarray] = []

    def __call__(self, *tensors: Tensor) -> list[np.ndarray]:
        """Of these tensors, in their order."""
        known = (*map(id, tensors), *map(Tensor.data_ptr, tensors))
        if known != self._known:
            self._of, self._known, self._views = (
                tensors,
                known,
                [tensor.numpy() for tensor in tensors],
            )
        return self._views

    def __reduce__(self) -> tuple[type[Views], tuple[()]]:
        """For copies and pickles, which need their own."""
        return Views, ()


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of the predictions alone; None is a term that is not there."""

    ce: CrossEntropy
    mi: MutualInformation | None
    tv: TotalVariation | None
    _views: Views = field(default_factory=Views, init=False, repr=False)

    def constants(self, dtype: torch.dtype) -> list[np.ndarray]:
        """What does not depend on the predictions, for the kernels: TV's edges and factors, CE's nodes, their weights, and the labels."""
        edges = self.tv.edges(dtype) if self.tv else NO_EDGES[dtype]
        return self._views(
            *edges, self.ce.nodes, self.ce.node_weight.double(), self.ce.labels.contiguous()
        )


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
        found = importlib.import_module(
            "everynode.objectives.numba_kernels"
        )  # only now, since importing numba takes its time
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
        x, gradient = logits.new_empty(n, found.padded(k)), logits.new_empty(n, k)
        given, shifted = np.ascontiguousarray(logits.numpy(force=True)), x.numpy()
        largest = np.empty(n, given.dtype)
        shift(given, shifted, largest)
        y = x.exp().numpy()  # by torch, whose exponential is vectorised; numba's is not
        weight, lam = (alpha, terms.mi.lam) if terms.mi else (0.0, 0.0)
        ce, mi, tv, total = terms_and_gradient(
            given, largest, shifted, y, *terms.constants(logits.dtype), weight, lam, beta, gradient.numpy()
        )  # fmt: skip
        mi = mi if terms.mi else 0.0
        ctx.save_for_backward(logits, gradient)
        ctx.rest = terms, alpha, beta
        ctx.set_materialize_grads(False)
        return tuple(
            torch.from_numpy(np.array(value, given.dtype)) for value in (ce, mi, tv, total)
        )

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
            asked = [
                (value, grad) for value, grad in both if grad is not None and value.requires_grad
            ]
            if not asked:
                return None, None, None, None
            (result,) = torch.autograd.grad(
                [value for value, _ in asked], [x], [grad for _, grad in asked], create_graph=again
            )
        return result, None, None, None
