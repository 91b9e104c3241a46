"""Ensemble selection on out-of-fold probabilities, from weights that are safe with few labels.

Papers: `Ensemble Selection from Libraries of Models
<https://www.cs.cornell.edu/~alexn/papers/shotgun.icml04.revised.rev2.pdf>`_ (Caruana et al. 2004);
`Using Stacking to Average Bayesian Predictive Distributions
<https://arxiv.org/abs/1704.02030>`_ (Yao et al. 2018).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.evaluation.calibration import temperature

Floats = npt.NDArray[np.float64]

#: Bags of candidates, the share of the candidates in a bag, and the steps in each bag.
BAGS, BAG_SHARE, STEPS = 20, 0.6, 25
#: Resamples of the labels for the starting weights.
RESAMPLES = 1000
#: n nodes count as n to this power (1: full weight), because they also chose the temperatures and
#: the epochs.
EVIDENCE = 0.7
#: The starting weights count as this many steps of the greedy choice.
START = 8
#: A gap below this over the root of the number of nodes is no evidence: with a few nodes, the
#: standard error is itself uncertain.
SLACK = 0.3
#: Labels at which the starting weights and the greedy choice weigh the same.
TRUST = 200.0
#: Smaller weights are not worth a network.
LEAST_WEIGHT = 0.03


def calibrated(logits: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Return the log-probabilities at the temperature that suits the labels, and that temperature.

    >>> log_p, t = calibrated(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    >>> log_p.shape, t < 1
    (torch.Size([2, 2]), True)
    """
    divisor = temperature(logits, labels)
    return torch.log_softmax(logits.double() / divisor, dim=1), divisor


def node_losses(log_p: Tensor, labels: Tensor) -> Floats:
    """Return the log-loss of each node."""
    losses: Floats = torch.nn.functional.nll_loss(log_p, labels, reduction="none").numpy()
    return losses


def paired_gap(losses: Floats, best: Floats) -> tuple[float, float]:
    """Return by how much the mean loss is worse than the best one, and its standard error.

    >>> paired_gap(np.array([1.0, 2.0]), np.array([0.5, 1.5]))
    (0.5, 0.0)
    """
    gap = losses - best
    error = gap.std(ddof=1) / math.sqrt(len(gap)) if len(gap) > 1 else 0.0
    return float(gap.mean()), float(error)


def averaging_weights(losses: Floats, *, seed: int = 0) -> Floats:
    r"""Return the pseudo-BMA+ weights of the candidates (Yao et al. 2018).

    .. math:: w_k = \mathrm{E}_u\left[ \frac{e^{-m \sum_i u_i \ell_{ki}}}
              {\sum_j e^{-m \sum_i u_i \ell_{ji}}} \right],
              \qquad u \sim \mathrm{Dirichlet}(1, ..., 1), \qquad m = n^{0.7}

    The expectation over resampled labels keeps close candidates together, as many as the labels
    cannot tell apart.

    Parameters
    ----------
    losses : array
        Candidates x nodes: :math:`\ell_{ki}`, the out-of-fold log-loss.
    seed : int
        The seed of the resamples.

    Examples
    --------
    >>> averaging_weights(np.array([[0.1] * 50, [0.1] * 50, [0.9] * 50])).round(3).tolist()
    [0.5, 0.5, 0.0]
    """
    nodes = losses.shape[1]
    random = np.random.default_rng([seed, 8])
    shares = random.dirichlet(np.ones(nodes), size=RESAMPLES)
    score = -(nodes**EVIDENCE) * shares @ losses.T
    weights = np.exp(score - score.max(1, keepdims=True))
    mean: Floats = (weights / weights.sum(1, keepdims=True)).mean(0)
    return mean


def ensemble_weights(
    log_p: Tensor,
    labels: Tensor,
    *,
    node_weight: Floats | None = None,
    handicap: Floats | None = None,
    seed: int = 0,
) -> Floats:
    """Return the weights of the candidates in the ensemble.

    Every bag starts from :func:`averaging_weights`, and adds candidates with replacement while the
    log-loss falls. With few labels the start weighs more: a greedy choice on a few dozen nodes
    follows their noise.

    Parameters
    ----------
    log_p : Tensor
        Candidates x nodes x classes, calibrated out-of-fold log-probabilities.
    labels : Tensor
        The class of each node.
    node_weight : array, optional
        The weight of each node, of mean 1.
    handicap : array, optional
        The optimism of each candidate's loss, in nats per node.
    seed : int
        The seed of the bags.

    Examples
    --------
    >>> good = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log().repeat(50, 1)
    >>> labels = torch.tensor([0, 1]).repeat(50)
    >>> ensemble_weights(torch.stack([good, good.flip(1)]), labels).tolist()
    [1.0, 0.0]
    """
    count, nodes = log_p.shape[:2]
    right = log_p.exp()[:, torch.arange(nodes), labels].numpy()  # the probability of the label
    if handicap is not None:
        right = right * np.exp(-handicap)[:, None]
    of_node = np.ones(nodes) if node_weight is None else node_weight
    base = averaging_weights(-np.log(np.maximum(right, 1e-300)) * of_node, seed=seed)
    random = np.random.default_rng([seed, 7])
    bagged = np.zeros(count)
    for _ in range(BAGS):
        size = max(min(count, 2), round(BAG_SHARE * count))
        bag = np.union1d(random.choice(count, size, replace=False), base.argmax())
        bagged += _greedy(right, bag, base * START, of_node)
    greedy = bagged / bagged.sum()
    trust = nodes / (nodes + TRUST)
    weights: Floats = trust * greedy + (1 - trust) * base
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    weights[weights < LEAST_WEIGHT] = 0.0
    return weights / weights.sum()


def _greedy(right: Floats, bag: npt.NDArray[np.int64], counts: Floats, of_node: Floats) -> Floats:
    """Return the weights after greedy steps from ``counts`` with candidates of a bag."""
    counts = counts.copy()
    total = counts @ right
    loss = _loss(total / counts.sum(), of_node)
    for _ in range(STEPS):
        size = counts.sum() + 1
        losses = [_loss((total + right[one]) / size, of_node) for one in bag]
        best = int(np.argmin(losses))
        if losses[best] >= loss - 1e-9:
            break
        loss = losses[best]
        counts[bag[best]] += 1
        total = total + right[bag[best]]
    return counts / counts.sum()


def _loss(probability: Floats, of_node: Floats) -> float:
    return float(-(np.log(np.maximum(probability, 1e-300)) * of_node).mean())


def combine(log_p: Tensor, weights: Floats) -> Tensor:
    """Return the logarithm of the weighted mean probabilities (nodes x classes)."""
    chosen = np.flatnonzero(weights)
    logs = torch.from_numpy(np.log(weights[chosen])).to(log_p.device)[:, None, None]
    return torch.logsumexp(log_p[torch.from_numpy(chosen)] + logs, dim=0)
