"""The class prior: all nodes together should use the classes in the shares of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import log_softmax_by_class, mean_prediction
from everynode.objectives.term import Step, Term, mean_of

#: How far one step moves the running means behind the estimated shares.
RATE = 0.1
#: The least share of a class, as a part of an equal share.
LEAST = 0.1


def class_prior(logits: Tensor, shares: Tensor) -> Tensor:
    r"""Ask the mean prediction of all nodes to match the class shares.

    The term is not in the paper, whose MI asks for equal classes.

    .. math:: \mathcal{L}_{PRIOR} = \sum_{s=1}^{k} \tilde y_s \log \frac{\tilde y_s}{p_s},
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    Parameters
    ----------
    logits : Tensor
        n x k, of *every* node.
    shares : Tensor
        :math:`p`, each above 0, with sum 1. For equal shares the term is, up to a constant, the
        summand of :func:`mutual_information` with the factor :math:`\lambda`.

    Examples
    --------
    >>> import torch
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.5, 0.5]))
    tensor(0.)
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.8, 0.2]))
    tensor(0.2231)
    """
    return _divergence(log_softmax_by_class(logits).exp(), shares)


def _divergence(y: Tensor, shares: Tensor) -> Tensor:
    """Return the term for k x n probabilities."""
    mean, log_mean = mean_prediction(y)
    return torch.dot(mean, log_mean - shares.to(mean).log())


def estimated_shares(confusion: Tensor, mean: Tensor, counts: Tensor) -> Tensor:
    r"""Estimate the class shares that explain the predictions, given the confusion of classes.

    Lipton et al., "Detecting and Correcting for Label Shift with Black Box Predictors", 2018,
    https://arxiv.org/abs/1802.03916, with a ridge towards the predictions:

    .. math:: p = \arg\min_p \| C p - \tilde y \|^2 + \frac{1}{c} \| p - \tilde y \|^2

    The shares are scaled to sum 1, and none is below about a tenth of an equal share.

    Parameters
    ----------
    confusion : Tensor
        :math:`C_{rs}`, the mean probability of class r over the nodes of class s.
    mean : Tensor
        :math:`\tilde y`, the mean prediction.
    counts : Tensor
        The number of nodes of each class in the confusion; :math:`c` is the smallest. A class
        without nodes keeps its predicted share.

    Examples
    --------
    >>> import torch
    >>> confusion, mean = torch.tensor([[0.9, 0.3], [0.1, 0.7]]), torch.tensor([0.48, 0.52])
    >>> estimated_shares(confusion, mean, torch.tensor([500, 500]))  # 0.48 = 0.9 * 0.3 + 0.3 * 0.7
    tensor([0.3010, 0.6990])
    >>> estimated_shares(confusion, mean, torch.tensor([1, 1]))  # little data: near the predictions
    tensor([0.4320, 0.5680])
    """
    has_nodes = counts > 0
    if not has_nodes.any():
        return mean
    identity = torch.eye(len(mean)).to(confusion)
    columns = torch.where(has_nodes, confusion, identity)
    normal = columns.T @ columns + identity / counts[has_nodes].min()
    shares = mean + torch.linalg.solve(normal, columns.T @ (mean - columns @ mean))
    shares = shares.clamp_min(0.0) * has_nodes
    scaled = shares / shares.sum().clamp_min(1e-12) * mean[has_nodes].sum()
    shares = torch.where(has_nodes, scaled, mean).clamp_min(LEAST / len(mean))
    return shares / shares.sum()


class ClassPrior(Term):
    """:func:`class_prior` as a term, with known shares or with shares estimated during training.

    Labels are often drawn with equal numbers of each class, so their counts say nothing about the
    graph. The estimate uses the confusion of classes on the *validation* nodes and the predictions
    of all nodes outside training: :func:`estimated_shares` of running means of both, plus the
    classes of the training nodes. A dozen validation nodes of each class is enough. So the labels
    of the validation nodes influence training, if only through the shares: a score on these nodes
    is slightly too good.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    shares : sequence of float, optional
        The share of each class in the graph; None: estimate them.

    Attributes
    ----------
    confusion, mean, steps : Tensor
        The running means behind the estimate, and the number of steps in them.
    val_nodes, train_nodes : Tensor
        The nodes that the estimate is made from.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> term = ClassPrior(0.5, shares=[2, 1, 1])
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[term])
    >>> objective.weights
    {'ce': 1.0, 'prior': 0.5}
    """

    name = "prior"
    needs = frozenset({"every_node"})
    shares: Tensor | None
    val_nodes: Tensor
    train_nodes: Tensor
    confusion: Tensor
    mean: Tensor
    steps: Tensor

    def __init__(
        self, weight: float | None = None, *, shares: Sequence[float] | Tensor | None = None
    ):
        super().__init__(weight)
        raw = None if shares is None else torch.as_tensor(shares, dtype=torch.float64)
        self.register_buffer("shares", None if raw is None else raw / raw.sum())
        self._raw_shares = raw
        for name in ("val_nodes", "train_nodes"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64), persistent=False)
        for name in ("confusion", "mean"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Look up the training and validation nodes, and start the running means."""
        k, raw = graph.num_classes, self._raw_shares
        if raw is not None and not (
            raw.shape == (k,) and (raw > 0).all() and torch.isfinite(raw).all()
        ):
            raise UsageError(
                f"The class prior is a share above 0 for each of the {k} classes. "
                f"Got {raw.tolist()}."
            )
        self.val_nodes, self.train_nodes = graph.nodes("val", fold), graph.nodes("train", fold)
        if raw is None and not len(self.val_nodes):
            raise UsageError(
                "The class prior is estimated from validation nodes, and fold "
                f"{fold} of graph {graph.name!r} has none with a label: "
                "set some apart, pass ENC(graph, terms=[ClassPrior(1.0, shares=[...])]), or leave "
                "out prior."
            )
        #: One-hot classes of the validation nodes, their counts, and those of the training nodes.
        self.truth = nn.functional.one_hot(graph.labels[self.val_nodes], k).cpu().double()
        self.counts = self.truth.sum(0)
        self.train_counts = torch.bincount(graph.labels[self.train_nodes], minlength=k)
        self.train_counts = self.train_counts.cpu().double()
        self.num_others = graph.num_nodes - len(self.train_nodes)
        self.confusion = torch.eye(k, dtype=torch.float64)
        self.mean = torch.full((k,), 1.0 / k, dtype=torch.float64)
        return self

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the n x k logits of one pass."""
        return self.evaluate(Step([logits], sample))

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean over the passes; in training mode the estimate moves first."""
        self.check_sample(step.sample)
        ys = [log_y.exp() for log_y in step.log_y]  # k x n each
        if self.shares is None and self.training:
            self._update([y.detach() for y in ys])
        shares = self.estimate() if self.shares is None else self.shares
        return mean_of([_divergence(y, shares) for y in ys])

    def estimate(self) -> Tensor:
        """Return the current estimate of the shares."""
        of_others = estimated_shares(
            self.confusion.cpu().double(), self.mean.cpu().double(), self.counts
        )
        total = self.num_others + len(self.train_nodes)
        return (of_others * self.num_others + self.train_counts) / total

    def _update(self, ys: Sequence[Tensor]) -> None:
        """Move the running means; at first they are the means of all steps so far."""
        at_val = torch.stack([y[:, self.val_nodes] for y in ys]).mean(0).cpu().double()
        outside = [y.sum(1) - y[:, self.train_nodes].sum(1) for y in ys]
        mean = torch.stack(outside).mean(0).cpu().double() / max(self.num_others, 1)
        if not torch.isfinite(mean).all():  # the training loop skips such a step
            return
        rate = max(RATE, 1.0 / (int(self.steps) + 1))
        confusion = at_val @ self.truth / self.counts.clamp_min(1.0)
        self.confusion.copy_(torch.lerp(self.confusion.cpu().double(), confusion, rate))
        self.mean.copy_(torch.lerp(self.mean.cpu().double(), mean, rate))
        self.steps += 1
