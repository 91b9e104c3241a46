"""Mutual information between nodes and classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from everynode.errors import require
from everynode.numerics import log_softmax_by_class, mean_prediction


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
    """Value and gradient in closed form: half the passes over the nodes that autograd would make. Exact in its second turn too."""

    @staticmethod
    def forward(ctx, log_y: Tensor, lam: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(log_y)
        ctx.lam = lam
        log_y = _bounded(log_y)
        y = log_y.exp()
        mean, log_mean = mean_prediction(y)
        return torch.dot(y.view(-1), log_y.view(-1)) / -log_y.shape[1] + lam * torch.dot(
            mean, log_mean
        )

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        log_y = _bounded(*ctx.saved_tensors)
        y = log_y.exp()
        _, log_mean = mean_prediction(y)
        # dL / d log y_is = y_is (lambda (log y~_s + 1) - log y_is - 1) / n
        inner = (ctx.lam * (log_mean + 1.0) - 1.0)[:, None] - log_y
        return y * inner * (grad / log_y.shape[1]), None


def _bounded(log_y: Tensor) -> Tensor:
    """Log-probabilities from below: of a class that is ruled out (a logit of minus infinity), p log p is 0, and not 0 times infinity."""
    return log_y.clamp_min(math.log(torch.finfo(log_y.dtype).tiny))


class MutualInformation(nn.Module):
    """:func:`mutual_information` with its :math:`\\lambda` fixed."""

    def __init__(self, *, lam: float = 2.0):
        super().__init__()
        require(lam >= 0, "lam", "MutualInformation", ">= 0", lam)
        self.lam = lam

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return self.by_class(log_softmax_by_class(logits))

    def by_class(self, log_y: Tensor) -> Tensor:
        """The term for the k x n log-probabilities, which other terms need too."""
        return _MutualInformation.apply(log_y, self.lam)
