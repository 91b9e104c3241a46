"""Soft labels: cross-entropy with labels that were propagated along the edges (PTA)."""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import at_least_single
from everynode.objectives.term import Step, Term, mean_of

#: Scale of the ramp in epochs: after 1.7 times as many, gamma is 1.
RAMP = 100


def soft_labels(
    logits: Tensor, targets: Tensor, *, epoch: int | None = None, ramp: int = RAMP
) -> Tensor:
    r"""Return the cross-entropy with soft labels, weighted by the network's own predictions.

    Dong et al., "On the Equivalence of Decoupled Graph Convolution Network and Label Propagation",
    2021, https://arxiv.org/abs/2010.12408 (PTA):

    .. math:: \mathcal{L}_{PTA} = -\frac{1}{k} \sum_{i \in V} \sum_{s=1}^{k}
              y^{soft}_{i,s}\, \hat y_{i,s}^{\,\gamma} \log \hat y_{i,s},
              \qquad \gamma = \log(1 + e / \epsilon)

    e is the epoch. No gradient flows through :math:`\hat y^{\,\gamma}`: as training goes on, a soft
    label that the network doubts counts less. The labels are a sum over nodes, not a mean.

    Parameters
    ----------
    logits : Tensor
        n x k, of every node.
    targets : Tensor
        :math:`y^{soft}`, n x k; see :func:`propagated_labels`.
    epoch : int, optional
        The epoch, from 0. None: :math:`\gamma` = 0.
    ramp : int
        :math:`\epsilon`.

    Examples
    --------
    >>> import torch
    >>> soft_labels(torch.zeros(1, 2), torch.tensor([[1.0, 0.5]]))
    tensor(0.5199)
    """
    log_y = torch.log_softmax(logits, 1, dtype=at_least_single(logits.dtype))
    gamma = math.log1p((epoch or 0) / ramp)
    trust = (gamma * log_y.detach()).exp()
    return -(targets.to(log_y) * trust * log_y).sum() / logits.shape[1]


def propagated_labels(graph: Graph, nodes: Tensor, *, alpha: float, steps: int) -> Tensor:
    r"""Return the labels of some nodes, spread along the edges, n x k.

    .. math:: y^{(t+1)} = (1 - \alpha) \, \mathrm{fix}(\tilde P y^{(t)}) + \alpha y^{(0)}

    :math:`y^{(0)}` holds the one-hot labels of the ``nodes``, and fix restores their rows.
    """
    start = torch.zeros(graph.num_nodes, graph.num_classes, dtype=graph.dtype)
    start = start.to(graph.labels.device)
    start[nodes, graph.labels[nodes]] = 1.0
    labels = start
    for _ in range(steps):
        labels = graph.gcn_operator.blend(labels, start, alpha)
        labels[nodes] = start[nodes]
    return labels


class SoftLabels(Term):
    """:func:`soft_labels` as a term. It needs every node at once, so it refuses mini-batches.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1. The authors have 0.05.
    alpha : float
        Share of the training labels in each step of propagation.
    steps : int
        Number of steps.
    ramp : int
        See :func:`soft_labels`.

    Attributes
    ----------
    targets : Tensor
        The propagated labels, n x k.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> graph = generate(20, 40, 8, 3)
    >>> objective = ENC(graph, ce=0, mi=0, tv=0, cvg=0, terms=[SoftLabels(0.05)])
    >>> objective.weights
    {'ce': 0, 'soft_labels': 0.05}
    """

    name = "soft_labels"
    needs = frozenset({"edges", "every_node"})
    targets: Tensor

    def __init__(
        self,
        weight: float | None = None,
        *,
        alpha: float = 0.1,
        steps: int = 10,
        ramp: int = RAMP,
    ):
        super().__init__(weight)
        require(0 <= alpha <= 1, "alpha", "SoftLabels", "in [0, 1]", alpha)
        require(steps >= 0, "steps", "SoftLabels", ">= 0", steps)
        require(ramp >= 1, "ramp", "SoftLabels", ">= 1", ramp)
        self.alpha, self.steps, self.ramp = alpha, steps, ramp
        self.register_buffer("targets", torch.empty(0), persistent=False)

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Propagate the training labels."""
        if not isinstance(graph, Graph):
            raise UsageError(self.refusal)
        nodes = graph.nodes("train", fold)
        self.targets = propagated_labels(graph, nodes, alpha=self.alpha, steps=self.steps)
        return self

    def evaluate(self, step: Step) -> Tensor:
        """Return the term for a step, with the trust of its epoch."""
        self.check_sample(step.sample)
        return mean_of(
            [
                soft_labels(logits, self.targets, epoch=step.epoch, ramp=self.ramp)
                for logits in step.passes
            ]
        )

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the n x k logits of one pass, in the first epoch."""
        return self.evaluate(Step([logits], sample))
