"""Delicate numerics: entropies of confident predictions, cosines of vanishing gradients.

``p * log p``, ``torch.special.entr`` and ``xlogy`` have NaN gradients once a softmax saturates.
Working on logits with ``log_softmax`` and ``logsumexp`` avoids this; compare BoTorch's
``safe_math`` (https://github.com/pytorch/botorch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from everynode.errors import UsageError


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """Treat subnormal numbers (below 1e-38 in float32) as 0 in this thread.

    A CPU takes up to 100 times as long for them, and deep networks are full of them: the gradients
    of a GCNII with 64 layers fall to 1e-20, and Adam squares them. Sums with other numbers do not
    change.
    """
    before = subnormals_are_flushed()  # the caller's own choice
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def subnormals_are_flushed() -> bool:
    """Return whether this thread treats subnormal numbers as 0.

    >>> with subnormals_flushed():
    ...     subnormals_are_flushed()
    True
    """
    return torch.tensor(torch.finfo(torch.float32).tiny).mul(0.5).item() == 0.0


def log_softmax_by_class(logits: Tensor) -> Tensor:
    """Return the log-softmax of n x k logits as k x n, in single precision at least.

    torch's kernels are vectorized over long rows, but not over k columns.
    """
    return torch.log_softmax(logits.T.contiguous(), dim=0, dtype=at_least_single(logits.dtype))


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """Return the precision to compute in: single, or the given one if it is higher.

    A sum over all nodes needs single precision, and sparse products have no lower one.

    >>> at_least_single(torch.bfloat16), at_least_single(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def mean_prediction(y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean probability :math:`\\tilde y_s` of each class, and its logarithm.

    ``y`` holds k x n probabilities. For a class with mean 0 the logarithm is taken of the smallest
    number, so that :math:`\\tilde y \\log \\tilde y` and its derivative are 0, not NaN.

    >>> mean_prediction(torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    (tensor([1., 0.]), tensor([  0.0000, -87.3365]))
    """
    mean = y.mean(1)
    return mean, mean.clamp_min(torch.finfo(y.dtype).tiny).log()


def gradient_cosine(losses: Sequence[Tensor], parameters: Sequence[Tensor]) -> Tensor:
    """Return the cosine between the gradients of two losses; it is differentiable itself.

    Parameters
    ----------
    losses
        The two losses.
    parameters
        The parameters; the gradients over all of them form one vector. A parameter that a loss does
        not depend on has a gradient of zero.
    """
    a, b = (
        torch.autograd.grad(
            loss, parameters, create_graph=True, allow_unused=True, materialize_grads=True
        )
        for loss in losses
    )
    if any(gradient.layout != torch.strided for gradient in (*a, *b)):
        raise UsageError(
            "Cross-validating gradients need dense gradients: "
            "build the embedding with sparse=False, or pass cvg=0."
        )
    return cosine(a, b)


def cosine(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """Return the cosine of two lists of tensors, each taken as one long vector.

    It is 0, with gradient 0, if either vector vanishes.

    >>> cosine([torch.ones(2), torch.zeros(1)], [torch.ones(2), torch.ones(1)])
    tensor(0.8165)
    >>> cosine([torch.zeros(3)], [torch.ones(3)])
    tensor(0.)
    """
    result: Tensor = _Cosine.apply(*a, *b)
    return result


class _Cosine(torch.autograd.Function):
    """Cosine of two lists of tensors; its backward pass is differentiable again."""

    @staticmethod
    def forward(ctx, *both: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*both)
        dot, square_a, square_b = dots(both[: len(both) // 2], both[len(both) // 2 :])
        if not meaningful(square_a.item(), square_b.item(), dot.dtype):
            return dot.new_zeros(())
        return dot / (square_a.sqrt() * square_b.sqrt())

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, ...]:  # type: ignore[no-untyped-def]
        both = ctx.saved_tensors
        half = len(both) // 2
        dot, square_a, square_b = dots(both[:half], both[half:])
        if not meaningful(square_a.item(), square_b.item(), dot.dtype):
            return tuple(torch.zeros_like(x) for x in both)
        cross = grad / (square_a.sqrt() * square_b.sqrt())
        own_a, own_b = -cross * dot / square_a, -cross * dot / square_b
        grad_a = [cross * b + own_a * a for a, b in zip(both[:half], both[half:], strict=True)]
        grad_b = [cross * a + own_b * b for a, b in zip(both[:half], both[half:], strict=True)]
        return (*grad_a, *grad_b)


def dots(a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return a . b, a . a and b . b of two lists of tensors, each taken as one long vector."""
    a, b = [x.reshape(-1) for x in a], [x.reshape(-1) for x in b]
    products = [torch.dot(x, y) for x, y in zip(a + a + b, b + a + b, strict=True)]
    ab, aa, bb = torch.stack(products).view(3, -1).sum(1)
    return ab, aa, bb


def meaningful(square_a: float, square_b: float, dtype: torch.dtype) -> bool:
    """Return whether two squared norms are far enough from underflow to divide by them."""
    info = torch.finfo(dtype)
    low, high = sorted((square_a, square_b))
    return low > info.tiny / info.eps and high < info.max
