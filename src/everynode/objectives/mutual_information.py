"""Mutual information between nodes and classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from everynode.errors import require
from everynode.numerics import entropy_of_columns, entropy_of_mass, log_class_mass, log_softmax_by_class


def mutual_information(logits: Tensor, *, lam: float = 2.0) -> Tensor:
    r"""Each node should be sure of its class, and all nodes together should use all classes.

    .. math:: \mathcal{L}_{MI} = \frac{1}{|V|} \sum_{i \in V} \sum_{s=1}^{k} -\hat y_{i,s} \log \hat y_{i,s}
              + \lambda \sum_{s=1}^{k} \tilde y_s \log \tilde y_s,
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    ``logits``: n x k, of *every* node. ``lam``: :math:`\lambda`; 1 is the mutual information proper (Bridle et al. 1991), 2 the
    paper's choice, and the larger it is, the more equal the predicted class sizes.

    >>> import torch
    >>> mutual_information(torch.zeros(3, 2), lam=1.0)  # knows nothing: no information
    tensor(0.)
    >>> mutual_information(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), lam=1.0)  # -log 2: all that two classes can carry
    tensor(-0.6931)
    """
    return MutualInformation(lam=lam)(logits)


class _MutualInformation(torch.autograd.Function):
    """Value and gradient in closed form: half the passes over the nodes that autograd would make, and exact for its second turn."""

    @staticmethod
    def forward(ctx, logits: Tensor, lam: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(logits)
        ctx.lam = lam
        log_y = log_softmax_by_class(logits)
        return entropy_of_columns(log_y).mean() - lam * entropy_of_mass(log_class_mass(log_y), len(logits))

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        (logits,) = ctx.saved_tensors
        log_y = log_softmax_by_class(logits)
        y = log_y.exp()
        log_mean = log_class_mass(log_y) - math.log(len(logits))
        # With q = lambda log y~ - log y: dL / df_is = y_is (q_is - sum_t y_it q_it) / n.
        q = ctx.lam * log_mean[:, None] - log_y
        q = y * (q - (y * q).sum(0))
        return (q * (grad / len(logits))).T, None


class MutualInformation(nn.Module):
    """:func:`mutual_information` with its :math:`\\lambda` fixed."""

    def __init__(self, *, lam: float = 2.0):
        super().__init__()
        require(lam >= 0, "lam", "MutualInformation", ">= 0", lam)
        self.lam = lam

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return _MutualInformation.apply(logits, self.lam)
