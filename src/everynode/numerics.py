"""The delicate numerics, in one place: entropies of confident predictions and the cosine of vanishing gradients.

``p * log p``, ``torch.special.entr`` and ``xlogy`` have NaN gradients once a softmax saturates; working on logits with
``log_softmax`` and ``logsumexp`` does not (Bridle et al. 1991 use the same quantities; see also BoTorch's ``safe_math``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from everynode.errors import UsageError


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """Within this block, numbers below the smallest normal one (1e-38 in float32) are 0 in this thread's arithmetic.

    A CPU takes up to a hundred times as long for them, and deep networks are full of them: through 64 layers of GCNII that keep half of
    what they are given, gradients come to 1e-20, and Adam squares them. Nothing that counts in a sum with other numbers is lost.
    """
    before = subnormals_are_flushed()  # somebody's own choice
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def subnormals_are_flushed() -> bool:
    """Whether this thread's arithmetic takes numbers below the smallest normal one for 0.

    >>> with subnormals_flushed():
    ...     subnormals_are_flushed()
    True
    """
    return torch.tensor(torch.finfo(torch.float32).tiny).mul(0.5).item() == 0.0


def log_softmax_by_class(logits: Tensor) -> Tensor:
    """The log-softmax of n x k logits as k x n: over long rows torch's kernels are vectorised, over k columns they are not.

    Logits in half precision give single.
    """
    return torch.log_softmax(logits.T.contiguous(), dim=0, dtype=at_least_single(logits.dtype))


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """The precision to compute in: a sum over all nodes needs single, and there are no sparse products in less.

    >>> at_least_single(torch.bfloat16), at_least_single(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def mean_prediction(y: Tensor) -> tuple[Tensor, Tensor]:
    """The mean probability :math:`\\tilde y_s` of each class over the nodes, from k x n probabilities, and its logarithm.

    A class that nobody predicts has a mean of 0. Its logarithm is then that of the smallest number there is, so that
    :math:`\\tilde y \\log \\tilde y` and its derivative are 0 as they should be, and not 0 times infinity.

    >>> mean_prediction(torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    (tensor([1., 0.]), tensor([  0.0000, -87.3365]))
    """
    mean = y.mean(1)
    return mean, mean.clamp_min(torch.finfo(y.dtype).tiny).log()


class _Cosine(torch.autograd.Function):
    """The cosine of two lists of tensors taken as two long vectors. The backward pass is made of differentiable operations."""

    @staticmethod
    def forward(ctx, *both: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*both)
        dot, square_a, square_b = dots(both[: len(both) // 2], both[len(both) // 2 :])
        return (
            dot / (square_a.sqrt() * square_b.sqrt())
            if meaningful(square_a.item(), square_b.item(), dot.dtype)
            else dot.new_zeros(())
        )

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, ...]:  # type: ignore[no-untyped-def]
        both = ctx.saved_tensors
        half = len(both) // 2
        dot, square_a, square_b = dots(both[:half], both[half:])
        if not meaningful(square_a.item(), square_b.item(), dot.dtype):
            return tuple(torch.zeros_like(x) for x in both)
        cross = grad / (square_a.sqrt() * square_b.sqrt())
        own_a, own_b = -cross * dot / square_a, -cross * dot / square_b
        for_a = [cross * b + own_a * a for a, b in zip(both[:half], both[half:], strict=True)]
        for_b = [cross * a + own_b * b for a, b in zip(both[:half], both[half:], strict=True)]
        return (*for_a, *for_b)


def dots(a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The products a . b, a . a and b . b of two lists of tensors, each taken as one long vector."""
    a, b = [x.reshape(-1) for x in a], [x.reshape(-1) for x in b]
    ab, aa, bb = (
        torch.stack([torch.dot(x, y) for x, y in zip(a + a + b, b + a + b, strict=True)])
        .view(3, -1)
        .sum(1)
    )
    return ab, aa, bb


def meaningful(square_a: float, square_b: float, dtype: torch.dtype) -> bool:
    """Whether the squares of two norms are so far from underflow that a quotient of them can be trusted."""
    info = torch.finfo(dtype)
    low, high = sorted((square_a, square_b))
    return low > info.tiny / info.eps and high < info.max


def cosine(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """The cosine of two lists of tensors, each taken as one long vector; zero, with zero gradient, where either vanishes.

    >>> cosine([torch.ones(2), torch.zeros(1)], [torch.ones(2), torch.ones(1)])
    tensor(0.8165)
    >>> cosine([torch.zeros(3)], [torch.ones(3)])
    tensor(0.)
    """
    result: Tensor = _Cosine.apply(*a, *b)
    return result


def gradient_cosine(losses: Sequence[Tensor], parameters: Sequence[Tensor]) -> Tensor:
    """The cosine of two losses' gradients over all parameters, itself differentiable; what a loss does not reach counts as zero."""
    a, b = (
        torch.autograd.grad(
            loss, parameters, create_graph=True, allow_unused=True, materialize_grads=True
        )
        for loss in losses
    )
    if any(gradient.layout != torch.strided for gradient in (*a, *b)):
        raise UsageError(
            "Cross-validating gradients cannot be taken of sparse gradients: make the embedding with sparse=False, or give cvg=0."
        )
    return cosine(a, b)
