"""Prediction sets with a promised coverage: conformal prediction with APS, and DAPS on graphs.

Papers: `Classification with Valid and Adaptive Coverage <https://arxiv.org/abs/2006.02544>`_
(Romano et al. 2020, APS); `Conformal Prediction Sets for Graph Neural Networks
<https://proceedings.mlr.press/v202/h-zargarbashi23a.html>`_ (Zargarbashi et al. 2023, DAPS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from everynode.errors import UsageError, require
from everynode.graph import Graph

#: The weights of the neighbors' scores to choose from. 0 is APS.
NEIGHBOR_WEIGHTS = (0.0, 0.25, 0.5, 0.75)
#: With fewer held-out labels, none are set aside to choose the weight, and it is 0.
LEAST_TO_CHOOSE = 100
#: The share of the held-out labels that choose the weight, and the largest number.
SHARE_TO_CHOOSE, MOST_TO_CHOOSE = 0.25, 1000


def least_labels(coverage: float) -> int:
    r"""Return the least number of held-out labels for a coverage, :math:`\lceil c/(1-c) \rceil`.

    >>> least_labels(0.9), least_labels(0.95), least_labels(0.5)
    (9, 19, 1)
    """
    return math.ceil(round(coverage / (1 - coverage), 9))


def aps_scores(probabilities: Tensor, uniform: Tensor) -> Tensor:
    r"""Return the APS score of every class of every node.

    The score is the probability of the classes before it, and a random part of its probability:

    .. math:: s(i, y) = \sum_{j: \; \pi_{i,j} > \pi_{i,y}} \pi_{i,j} + u_i \, \pi_{i,y}

    Parameters
    ----------
    probabilities : Tensor
        n x k. Ties go to the first class.
    uniform : Tensor
        :math:`u`, one number from 0 to 1 for each node.

    Examples
    --------
    >>> p = torch.tensor([[0.5, 0.25, 0.25]])
    >>> aps_scores(p, torch.tensor([0.5])).tolist()
    [[0.25, 0.625, 0.875]]
    """
    ordered, order = probabilities.sort(dim=1, descending=True, stable=True)
    scores = ordered.cumsum(1) - ordered * (1 - uniform[:, None])
    return torch.empty_like(scores).scatter_(1, order, scores)


def neighbor_scores(graph: Graph, probabilities: Tensor) -> Tensor:
    """Return the mean APS score of the neighbors of every node (n x k).

    The random part of a neighbor's score is replaced by its mean, so that it adds no noise. An
    isolated node has its score.
    """
    scores = aps_scores(probabilities, probabilities.new_full((graph.num_nodes,), 0.5))
    operator = graph.neighbor_operator
    means = (operator @ scores.to(graph.dtype)).to(scores.dtype)
    has_neighbors = (operator @ torch.ones_like(scores[:, :1], dtype=graph.dtype)) > 0
    return torch.where(has_neighbors, means, scores)


def conformal_threshold(scores: Tensor, coverage: float, uniform: float = 0.0) -> float:
    r"""Return the conformal threshold of n scores; infinity if it lies above all of them.

    It is the score at rank :math:`\lfloor r \rfloor + [u < r - \lfloor r \rfloor]` with
    :math:`r = (n + 1) c`. A random number u from 0 to 1 makes the coverage exactly c, also with few
    scores; u = 0 rounds the rank up.

    >>> conformal_threshold(torch.arange(1.0, 10.0), 0.9)
    9.0
    >>> [conformal_threshold(torch.arange(1.0, 10.0), 0.85, u) for u in (0.4, 0.6)]
    [9.0, 8.0]
    """
    place = round((len(scores) + 1) * coverage, 9)
    rank = math.floor(place) + (uniform < place - math.floor(place))
    if not rank:
        return -math.inf
    return math.inf if rank > len(scores) else scores.sort().values[rank - 1].item()


@dataclass(frozen=True)
class SetRule:
    """A rule that decides which classes belong to the set of a node.

    Parameters
    ----------
    thresholds : tuple of float
        The largest score of each class.
    neighbor_weight : float
        The weight of the neighbors' scores; 0: APS.
    """

    thresholds: tuple[float, ...]
    neighbor_weight: float = 0.0

    def sets(self, probabilities: Tensor, uniform: Tensor, neighbors: Tensor | None) -> Tensor:
        """Return whether each class belongs to the set of each node (n x k, bool)."""
        scores = _mixed(aps_scores(probabilities, uniform), neighbors, self.neighbor_weight)
        return scores <= scores.new_tensor(self.thresholds)


def calibrate_sets(
    probabilities: Tensor,
    labels: Tensor,
    coverage: float,
    *,
    neighbors: Tensor | None = None,
    per_class: bool = False,
    seed: int = 0,
) -> SetRule:
    r"""Return the rule whose sets contain the true class with probability ``coverage``.

    A new node that is exchangeable with the held-out ones has a set that contains its class with
    probability :math:`c`, over the held-out labels and the random numbers of the seed. The weight
    of the neighbors is chosen on labels that the thresholds do not use.

    Parameters
    ----------
    probabilities : Tensor
        The probabilities of held-out nodes (n x k).
    labels : Tensor
        Their classes.
    coverage : float
        The promised coverage, between 0 and 1.
    neighbors : Tensor, optional
        The mean scores of their neighbors, from :func:`neighbor_scores`. None: APS.
    per_class : bool
        Promise the coverage within each class, with one threshold per class.
    seed : int
        The seed of the random parts of the scores.
    """
    num_classes = probabilities.shape[1]
    check_counts(labels, coverage, num_classes if per_class else 0)
    generator = torch.Generator().manual_seed(seed)
    own = aps_scores(probabilities, torch.rand(len(labels), generator=generator).to(probabilities))
    kept, weight = torch.arange(len(labels)), 0.0
    if neighbors is not None and len(labels) >= LEAST_TO_CHOOSE and not per_class:
        order = torch.randperm(len(labels), generator=generator)
        count = min(int(SHARE_TO_CHOOSE * len(labels)), MOST_TO_CHOOSE)
        chosen, kept = order[:count], order[count:]
        if len(chosen) >= least_labels(coverage) and len(kept) >= least_labels(coverage):
            weight = _smallest(own[chosen], neighbors[chosen], labels[chosen], coverage)
        else:
            kept = order
    true = _mixed(own, neighbors, weight).gather(1, labels[:, None])[:, 0][kept]
    uniform = torch.rand(num_classes, generator=generator).tolist()
    if not per_class:
        limit = conformal_threshold(true, coverage, uniform[0])
        return SetRule((limit,) * num_classes, weight)
    by_class = (
        conformal_threshold(true[labels == c], coverage, uniform[c]) for c in range(num_classes)
    )
    return SetRule(tuple(by_class), weight)


def _mixed(own: Tensor, neighbors: Tensor | None, weight: float) -> Tensor:
    """Return the scores with those of the neighbors (equation 7 of DAPS)."""
    return own if neighbors is None or not weight else (1 - weight) * own + weight * neighbors


def _smallest(own: Tensor, neighbors: Tensor, labels: Tensor, coverage: float) -> float:
    """Return the weight with the smallest sets on these nodes; the smaller weight on a tie."""

    def size(weight: float) -> float:
        scores = _mixed(own, neighbors, weight)
        limit = conformal_threshold(scores.gather(1, labels[:, None])[:, 0], coverage)
        return (scores <= limit).double().sum(1).mean().item()

    return min(NEIGHBOR_WEIGHTS, key=size)


def check_counts(labels: Tensor, coverage: float, num_classes: int = 0) -> None:
    """Refuse too few held-out labels, in all or (``num_classes`` > 0) in a class."""
    require(0 < coverage < 1, "coverage", "a prediction set", "between 0 and 1", coverage)
    least, counts = least_labels(coverage), [len(labels)]
    if num_classes:
        counts = torch.bincount(labels, minlength=num_classes).tolist()
    if min(counts) >= least:
        return
    place = " in each class" if num_classes else ""
    has = f"the rarest class has {min(counts)}" if num_classes else f"there are {min(counts)}"
    raise UsageError(
        f"A coverage of {coverage:g} needs at least {least} held-out labels{place}, and {has}: "
        "label more nodes, fit with more folds (--cv), or lower the coverage."
    )
