"""Mutual information between nodes and classes."""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import log_softmax_by_class
from everynode.objectives.term import Step, Term, mean_of
from everynode.settings import Settings, check_settings

#: The share of a new step in the running class marginal of mini-batches: large enough to follow
#: the network, small enough to average out the noise of one step.
RATE = 0.1


def mutual_information(logits: Tensor, *, lam: float = Settings.mi_lambda) -> Tensor:
    r"""Ask each node for a confident prediction, and all nodes together for every class.

    .. math:: \mathcal{L}_{MI} = \frac{1}{|V|} \sum_{i \in V} \sum_{s=1}^{k}
              -\hat y_{i,s} \log \hat y_{i,s} + \lambda \sum_{s=1}^{k} \tilde y_s \log \tilde y_s,
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    Parameters
    ----------
    logits : Tensor
        n x k, of *every* node.
    lam : float
        :math:`\lambda`. 1 is the mutual information proper (Bridle et al., "Unsupervised
        Classifiers, Mutual Information and 'Phantom Targets'", 1991), 2 the paper's choice. The
        larger, the more equal the predicted class sizes.

    Examples
    --------
    >>> import torch
    >>> mutual_information(torch.zeros(3, 2), lam=1.0)  # no information
    tensor(0.)
    >>> mutual_information(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), lam=1.0)  # -log 2: the least
    tensor(-0.6931)
    """
    check_settings("MutualInformation", mi_lambda=lam)
    share = logits.new_full((len(logits),), 1.0 / max(len(logits), 1), dtype=torch.float64)
    return of_log_probabilities(log_softmax_by_class(logits), share, lam)


def of_log_probabilities(
    log_y: Tensor, share: Tensor, lam: float, marginal: Tensor | None = None
) -> Tensor:
    r"""Return the term for k x r log-probabilities and the share of each node.

    With an estimate :math:`m` of the class ``marginal``, the second summand is
    :math:`\lambda \sum_s \tilde y_s (\log m_s + 1)`; with None, the marginal is that of the nodes.
    """
    log_m = None if marginal is None else _log(marginal, log_y.dtype).to(log_y)
    value: Tensor = _MutualInformation.apply(log_y, share.to(log_y), lam, log_m)
    return value


class _MutualInformation(torch.autograd.Function):
    """Value and gradient in closed form: half the passes over the nodes that autograd would make.

    The backward pass is made of differentiable operations, so second derivatives are exact too.
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, log_y: Tensor, share: Tensor, lam: float, log_m: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(log_y, share)
        ctx.lam, ctx.log_m = lam, log_m
        log_y = _bounded(log_y)
        y = log_y.exp()
        own = y @ share
        entropy = -torch.dot((y * log_y).sum(0), share)
        return entropy + lam * torch.dot(own, _log(own) if log_m is None else log_m + 1.0)

    @staticmethod
    def backward(  # type: ignore[no-untyped-def]
        ctx, grad: Tensor
    ) -> tuple[Tensor, None, None, None]:
        log_y, share = ctx.saved_tensors
        log_y = _bounded(log_y)
        y = log_y.exp()
        log_mean = _log(y @ share) if ctx.log_m is None else ctx.log_m
        # dL / d log y_is = share_i y_is (lambda (log y~_s + 1) - log y_is - 1)
        inner = (ctx.lam * (log_mean + 1.0) - 1.0)[:, None] - log_y
        return y * inner * (grad * share), None, None, None


def _log(mean: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return the logarithm, bounded: 0 log 0 is 0 for a class that is never predicted."""
    return mean.clamp_min(torch.finfo(dtype or mean.dtype).tiny).log()


def _bounded(log_y: Tensor) -> Tensor:
    """Bound log-probabilities from below: p log p is 0 for a class with a logit of -infinity."""
    return log_y.clamp_min(math.log(torch.finfo(log_y.dtype).tiny))


class MutualInformation(Term):
    r""":func:`mutual_information` as a term.

    The class marginal :math:`\tilde y` stands inside a logarithm, so that of one mini-batch would
    be biased. There the term takes a running mean :math:`m` over the steps, and is linear in the
    step's own marginal :math:`\tilde y^b` around it,
    :math:`\lambda \sum_s (\tilde y^b_s (\log m_s + 1) - m_s)`. With :math:`m = \tilde y`, its
    gradient over an epoch equals the full graph's.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: ``default_weight``.
    lam : float
        :math:`\lambda`, see :func:`mutual_information`.

    Attributes
    ----------
    marginal : Tensor
        The running class marginal of mini-batches.
    steps : Tensor
        The number of steps in it.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[MutualInformation(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'mi': 0.5}
    """

    name = "mi"
    default_weight = Settings.mi
    marginal: Tensor
    steps: Tensor

    def __init__(self, weight: float | None = None, *, lam: float = Settings.mi_lambda):
        super().__init__(weight)
        check_settings("MutualInformation", mi_lambda=lam)
        self.lam = lam
        self.register_buffer("marginal", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Start the running marginal with equal classes."""
        k = graph.num_classes
        self.marginal = torch.full((k,), 1.0 / max(k, 1), dtype=torch.float64)
        return self

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the r x k logits of one pass."""
        return self.evaluate(Step([logits], sample))

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean over the passes; all passes together move the running marginal once."""
        share = step.sample.node_share
        if step.sample.is_full:
            return mean_of([of_log_probabilities(log_y, share, self.lam) for log_y in step.log_y])
        if self.training:
            with torch.no_grad():
                own = torch.stack([log_y.exp() @ share.to(log_y) for log_y in step.log_y]).mean(0)
                own = step.processes.add_up(own.to(torch.float64, copy=True))
                self.update(own, step.sample.coverage)
        marginal = self.marginal.to(share.device)
        value = mean_of(
            [of_log_probabilities(log_y, share, self.lam, marginal) for log_y in step.log_y]
        )
        # The constant counts once in all processes together.
        return value - self.lam * marginal.sum().item() / step.processes.size

    def update(self, own: Tensor, coverage: float) -> None:
        """Move the running marginal to that of a step; at first it is the mean of all steps."""
        rate = max(RATE, coverage, 1.0 / (int(self.steps) + 1))
        self.marginal.lerp_(own.to(self.marginal), rate)
        self.steps += 1
