"""The delicate numerics, in one place: entropies of confident predictions and the cosine of vanishing gradients.

``p * log p``, ``torch.special.entr`` and ``xlogy`` have NaN gradients once a softmax saturates; working on logits with
``log_softmax`` and ``logsumexp`` does not (Bridle et al. 1991 use the same quantities; see also BoTorch's ``safe_math``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def log_softmax_by_class(logits: Tensor) -> Tensor:
    """The log-softmax of n x k logits as k x n: over long rows torch's kernels are vectorised, over k columns they are not."""
    return torch.log_softmax(logits.T.contiguous(), dim=0)


def entropy_of_columns(log_y: Tensor) -> Tensor:
    """The entropy :math:`-\\sum_s \\hat y_s \\log \\hat y_s` of each node's prediction, in nats, from k x n log-probabilities.

    >>> entropy_of_columns(log_softmax_by_class(torch.tensor([[0.0, 0.0], [1000.0, 0.0]])))
    tensor([0.6931, 0.0000])
    """
    return (log_y.exp() * -log_y).sum(0)


def log_class_mass(log_y: Tensor) -> Tensor:
    """:math:`\\log \\sum_i \\hat y_{i,s}` from k x n log-probabilities: a sum over nodes, so it adds up over batches and machines."""
    return torch.logsumexp(log_y, dim=1)


def entropy_of_mass(log_mass: Tensor, count: int) -> Tensor:
    """The entropy of the mean prediction :math:`\\tilde y_s`, from the log of the class mass of ``count`` nodes."""
    log_mean = log_mass - math.log(count)
    return -(log_mean.exp() * log_mean).sum()


class _Cosine(torch.autograd.Function):
    """The cosine of two lists of tensors taken as two long vectors. The backward pass is made of differentiable operations."""

    @staticmethod
    def forward(ctx, *both: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*both)
        dot, norm_a, norm_b = dots_and_norms(both[: len(both) // 2], both[len(both) // 2 :])
        return dot / (norm_a * norm_b) if meaningful(norm_a, norm_b) else dot.new_zeros(())

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, ...]:  # type: ignore[no-untyped-def]
        both = ctx.saved_tensors
        half = len(both) // 2
        dot, norm_a, norm_b = dots_and_norms(both[:half], both[half:])
        if not meaningful(norm_a, norm_b):
            return tuple(torch.zeros_like(x) for x in both)
        cross = grad / (norm_a * norm_b)
        own_a, own_b = -cross * dot / norm_a.square(), -cross * dot / norm_b.square()
        for_a = [cross * b + own_a * a for a, b in zip(both[:half], both[half:], strict=True)]
        for_b = [cross * a + own_b * b for a, b in zip(both[:half], both[half:], strict=True)]
        return (*for_a, *for_b)


def dots_and_norms(a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The dot product and the norms of two lists of tensors, each taken as one long vector."""
    a, b = [x.reshape(-1) for x in a], [x.reshape(-1) for x in b]
    dots = [torch.dot(x, y) for x, y in zip(a + a + b, b + a + b, strict=True)]
    dot, squared_a, squared_b = torch.stack(dots).view(3, -1).sum(1)
    return dot, squared_a.sqrt(), squared_b.sqrt()


def meaningful(norm_a: Tensor, norm_b: Tensor) -> bool:
    """Whether the squares of the norms are so far from underflow that a quotient of them can be trusted."""
    info = torch.finfo(norm_a.dtype)
    low, high = sorted((norm_a.item(), norm_b.item()))
    return low**2 > info.tiny / info.eps and high**2 < info.max


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
    a, b = (torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True, materialize_grads=True) for loss in losses)
    return cosine(a, b)
