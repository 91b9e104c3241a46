"""The delicate numerics, in one place: entropies of confident predictions and the cosine of vanishing gradients.

``p * log p``, ``torch.special.entr`` and ``xlogy`` have NaN gradients once a softmax saturates; working on logits with
``log_softmax`` and ``logsumexp`` does not (Bridle et al. 1991 use the same quantities; see also BoTorch's ``safe_math``).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def entropy_of_rows(logits: Tensor) -> Tensor:
    """The entropy :math:`-\\sum_s \\hat y_s \\log \\hat y_s` of each row's softmax, in nats.

    >>> entropy_of_rows(torch.tensor([[0.0, 0.0], [1000.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    log_y = torch.log_softmax(logits, dim=-1)
    return (log_y.exp() * -log_y).sum(-1)


def log_class_mass(logits: Tensor) -> Tensor:
    """:math:`\\log \\sum_i \\hat y_{i,s}`: a sum over nodes, so it adds up (in the log) over batches and machines."""
    return torch.logsumexp(torch.log_softmax(logits, dim=-1), dim=0)


def entropy_of_mass(log_mass: Tensor, count: int) -> Tensor:
    """The entropy of the mean prediction :math:`\\tilde y_s`, from the log of the class mass of ``count`` nodes."""
    log_mean = log_mass - math.log(count)
    return -(log_mean.exp() * log_mean).sum()


def safe_cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine of two vectors; zero, with zero gradient, where either vanishes.

    >>> safe_cosine(torch.zeros(3), torch.ones(3))
    tensor(0.)
    """
    # Norms are taken of rescaled vectors: squaring gradients of 1e-25 in float32 would underflow to a cosine of 0 / 0.
    scale_a, scale_b = a.detach().abs().max(), b.detach().abs().max()
    tiny = torch.finfo(a.dtype).tiny
    if not (scale_a > tiny and scale_b > tiny):
        return (a.sum() + b.sum()) * 0.0
    a, b = a / scale_a, b / scale_b
    return (a @ b) / (a.norm() * b.norm())
