"""Cross-entropy, mutual information and total variation at once: an optimization of ENC.

The three terms share one softmax, and their gradient is computed in the same sweep. On a CPU, in
float32 and float64, compiled kernels do that (:mod:`everynode.objectives.kernel_code`). In all
other cases, for second derivatives, and without numba, the terms' own torch operations do. Both
give the same numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from everynode.graph.sample import Sample
from everynode.objectives.cross_entropy import CrossEntropy
from everynode.objectives.kernel_code import kernels, padded
from everynode.objectives.mutual_information import MutualInformation
from everynode.objectives.term import Step, mean_of
from everynode.objectives.total_variation import TotalVariation

#: The types that the kernels are compiled for, and the names of the kernels.
COMPILED = {torch.float32: "float32", torch.float64: "float64"}
NO_EDGES = {
    dtype: (
        torch.empty(0, dtype=torch.int32, device="cpu"),
        torch.empty(0, dtype=dtype, device="cpu"),
    )
    for dtype in COMPILED
}


@dataclass(eq=False)
class Fused:
    """The terms that the kernels compute together; None is a term without weight.

    Parameters
    ----------
    ce : CrossEntropy
        Cross-entropy.
    mi, tv : MutualInformation or None, TotalVariation or None
        The other terms.
    """

    ce: CrossEntropy
    mi: MutualInformation | None
    tv: TotalVariation | None
    _labels_of: tuple[Sample, Tensor | None] | None = field(default=None, init=False, repr=False)
    _node_weight: Tensor = field(default_factory=lambda: torch.empty(0), init=False, repr=False)

    def is_of(self, terms: Iterable[nn.Module]) -> bool:
        """Whether these are still among the terms of the objective."""
        current = list(terms)
        return all(term is None or term in current for term in (self.ce, self.mi, self.tv))

    def evaluate(
        self, step: Step, weights: Mapping[str, float]
    ) -> tuple[dict[str, Tensor], Tensor] | None:
        """Return each term and their weighted sum; None if the kernels cannot compute them."""
        if not (step.sample.is_full and weights["ce"] == 1.0 and can_compile(step.passes)):
            return None
        alpha, beta = weights.get("mi", 0.0), weights.get("tv", 0.0)
        each = [at_once(logits, step.sample, self, alpha, beta) for logits in step.passes]
        values = {"ce": mean_of([one.ce for one in each])}
        if self.mi:
            values["mi"] = mean_of([one.mi for one in each])
        if self.tv:
            values["tv"] = mean_of([one.tv for one in each])
        return values, mean_of([one.total for one in each])

    def constants(self, sample: Sample, like: Tensor) -> list[Tensor]:
        """Return what does not depend on the predictions, in the types of the kernels.

        These are the edges of TV and their factors, and the labeled nodes, their weights and
        their labels.
        """
        edges = NO_EDGES[like.dtype]
        if self.tv:
            operator = self.tv.operator(sample, like)
            edges = operator.pattern.col, operator.values
        weight = self.ce.class_weight
        if (
            self._labels_of is None
            or self._labels_of[0] is not sample
            or (self._labels_of[1] is not weight)
        ):
            self._labels_of = sample, weight
            self._node_weight = (
                torch.ones(len(sample.labels), dtype=torch.float64)
                if weight is None
                else weight.double()[sample.labels]
            )
        values = *edges, sample.labeled, self._node_weight, sample.labels
        types = torch.int32, like.dtype, torch.int64, torch.float64, torch.int64
        return [x.to(dtype).contiguous() for x, dtype in zip(values, types, strict=True)]


class Values(NamedTuple):
    r"""Each term before weighting, 0 without the term, and their sum.

    The sum is :math:`\mathcal{L}_{CE} + \alpha \mathcal{L}_{MI} + \beta \mathcal{L}_{TV}`.

    Attributes
    ----------
    ce, mi, tv : Tensor
        Each term.
    total : Tensor
        The sum.
    """

    ce: Tensor
    mi: Tensor
    tv: Tensor
    total: Tensor


def fuse(terms: Iterable[nn.Module]) -> Fused | None:
    """Return the terms that can be computed together; None if that saves nothing.

    A subclass of a term may compute something else, so only the exact types count.
    """
    by_type = {type(term): term for term in terms}
    ce, mi, tv = (by_type.get(kind) for kind in (CrossEntropy, MutualInformation, TotalVariation))
    if not isinstance(ce, CrossEntropy) or not (mi or tv):
        return None
    assert mi is None or isinstance(mi, MutualInformation)
    assert tv is None or isinstance(tv, TotalVariation)
    return Fused(ce, mi, tv)


def can_compile(passes: Iterable[Tensor]) -> bool:
    """Whether there are kernels for these logits."""
    return all(x.device.type == "cpu" and x.dtype in COMPILED for x in passes) and (
        all(kernels(COMPILED[x.dtype]) for x in passes)
    )


def at_once(logits: Tensor, sample: Sample, terms: Fused, alpha: float, beta: float) -> Values:
    r"""Return the terms and their sum by the kernels, if they can compute them.

    ``logits``: n x k; ``alpha``, ``beta``: the weights of MI and of TV.
    """
    if not can_compile([logits]):
        return one_by_one(logits, sample, terms, alpha, beta)
    return Values(*_AtOnce.apply(logits, sample, terms, alpha, beta))


def one_by_one(logits: Tensor, sample: Sample, terms: Fused, alpha: float, beta: float) -> Values:
    """Return the same as :func:`at_once` by torch operations, with derivatives of any order."""
    step = Step([logits], sample)
    ce: Tensor = terms.ce(logits, sample)
    mi = terms.mi.evaluate(step) if terms.mi else ce.new_zeros(())
    tv = terms.tv.evaluate(step) if terms.tv else ce.new_zeros(())
    return Values(ce, mi, tv, ce + alpha * mi + beta * tv)


class _AtOnce(torch.autograd.Function):
    """The fields of :class:`Values`; the forward pass computes the gradient of the total too."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, logits: Tensor, sample: Sample, terms: Fused, alpha: float, beta: float
    ) -> tuple[Tensor, ...]:
        compiled = kernels(COMPILED[logits.dtype])
        assert compiled is not None  # or at_once would not have come here
        (n, k), rows = logits.shape, logits.detach().contiguous()
        width = padded(k)
        x, gradient = logits.new_empty(n, width), logits.new_empty(n, k)
        largest, work = logits.new_empty(n), logits.new_empty(n + 2 * width)
        compiled.shift(rows, n, k, x, width, largest)
        y = x.exp()  # by torch, whose exponential is vectorized; numba's is not
        ends, factors, nodes, weights, labels = terms.constants(sample, logits)
        weight, lam = (alpha, terms.mi.lam) if terms.mi else (0.0, 0.0)
        values, mass = logits.new_empty(4), torch.empty(width, dtype=torch.float64)
        compiled.terms_and_gradient(
            rows, n, k, largest, x, y, width, ends, factors, len(ends), nodes, weights, labels,
            len(nodes), weight, lam, beta, work, mass, gradient, values,
        )  # fmt: skip
        if not terms.mi:
            values[1] = 0.0
        ctx.save_for_backward(logits, gradient)
        ctx.rest = sample, terms, alpha, beta
        ctx.set_materialize_grads(False)
        return tuple(value.clone() for value in values)

    @staticmethod
    def backward(  # type: ignore[no-untyped-def]
        ctx, *grads: Tensor | None
    ) -> tuple[Tensor | None, None, None, None, None]:
        logits, gradient = ctx.saved_tensors
        *of_terms, of_total = grads
        again = torch.is_grad_enabled()  # the gradient will be differentiated
        if of_total is not None and not again and of_terms == [None, None, None]:
            return gradient * of_total, None, None, None, None
        with torch.enable_grad():
            x = logits if again else logits.detach().requires_grad_()
            both = zip(one_by_one(x, *ctx.rest), grads, strict=True)
            asked = [
                (value, grad) for value, grad in both if grad is not None and value.requires_grad
            ]
            if not asked:
                return None, None, None, None, None
            (result,) = torch.autograd.grad(
                [value for value, _ in asked], [x], [grad for _, grad in asked], create_graph=again
            )
        return result, None, None, None, None
