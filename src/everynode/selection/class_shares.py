r"""Class shares of the unlabeled nodes, where labels may have been drawn class by class.

Labels are often drawn as some of each class, while the other nodes have classes of unequal size.
Members then predict small classes too often. Papers: `Detecting and Correcting for Label Shift with
Black Box Predictors <https://arxiv.org/abs/1802.03916>`_ (Lipton et al. 2018); `Adjusting the
Outputs of a Classifier to New a Priori Probabilities
<https://doi.org/10.1162/089976602753284446>`_ (Saerens et al. 2002).
"""

from __future__ import annotations

import torch
from torch import Tensor

#: The mean prediction of a class is mixed with this many nodes of the mean over all classes.
PSEUDO_NODES = 2.0
#: The weight of the shares among the labels, relative to the evidence of all unlabeled nodes.
PRIOR = 0.3
#: Steps of the fixed point, whose objective is concave.
STEPS = 200
#: No class gets more or less than this factor in odds.
MOST = 10.0


def drawn_by_class(labels: Tensor) -> bool:
    """Whether labels look like an equal number of each class, but for classes with fewer nodes.

    At least half of the classes, and two, then have as many labels as the most frequent one. Other
    numbers of labels may tell the sizes of the classes.

    >>> drawn_by_class(torch.tensor([0, 0, 1, 1, 2]))
    True
    >>> drawn_by_class(torch.tensor([0, 0, 0, 1, 1, 2]))
    False
    """
    count = torch.bincount(labels)
    most = int((count == count.max()).sum())
    return most >= max(2, int((count > 0).sum()) / 2)


def mean_predictions(probabilities: Tensor, labels: Tensor) -> Tensor:
    r"""Return the mean prediction :math:`M_c` for held-out nodes of each class (k x k).

    The mean over all nodes is mixed in, as two more nodes a class: the predictions for a few nodes
    of a class look more distinct than they are. The mean over the labels stays.

    >>> mean_predictions(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    tensor([[0.6667, 0.3333],
            [0.3333, 0.6667]], dtype=torch.float64)
    """
    p, (nodes, classes) = probabilities.double(), probabilities.shape
    total = p.new_zeros(classes, classes).index_add_(0, labels, p)
    count = torch.bincount(labels, minlength=classes)[:, None]
    of_class = torch.where(count > 0, total / count.clamp_min(1), p.mean(0))
    own = nodes / (nodes + PSEUDO_NODES * classes)
    return own * of_class + (1 - own) * p.mean(0)


def estimated_shares(means: Tensor, predicted: Tensor, shares: Tensor) -> Tensor:
    r"""Return the class shares :math:`q` that explain the mean prediction of unlabeled nodes.

    .. math:: \max_q \; \sum_j \bar p_j \log \sum_c q_c M_{cj} + 0.3 \sum_c \pi_c \log q_c

    The second term is a Dirichlet prior around the shares :math:`\pi` among the labels.

    Parameters
    ----------
    means : Tensor
        :math:`M`, the mean prediction for nodes of each class.
    predicted : Tensor
        :math:`\bar p`, the mean prediction for the unlabeled nodes.
    shares : Tensor
        :math:`\pi`.

    Examples
    --------
    >>> means, even = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0.5, 0.5])
    >>> estimated_shares(means, even @ means, even)
    tensor([0.5000, 0.5000])
    >>> bool(estimated_shares(means, torch.tensor([0.8, 0.2]), even)[0] > 0.7)
    True
    """
    q = shares.clone()
    for _ in range(STEPS):
        q = q * (means @ (predicted / (q @ means).clamp_min(1e-30)))
        q = (q + PRIOR * shares) / (1 + PRIOR)
    return q


def class_shift(held_out: Tensor, labels: Tensor, unlabeled: Tensor) -> Tensor:
    r"""Return what the logit of each class gains on nodes without a label: :math:`\log q / \pi`.

    Parameters
    ----------
    held_out : Tensor
        Out-of-fold log-probabilities of the labeled nodes.
    labels : Tensor
        Their labels.
    unlabeled : Tensor
        Log-probabilities of nodes without a label.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log()
    >>> class_shift(p, torch.tensor([0, 1]), p).abs().max() < 1e-6
    tensor(True)
    >>> class_shift(p, torch.tensor([0, 1]), p[[0, 0, 0, 1]]).diff() < 0  # more of class 0
    tensor([True])
    """
    shares = torch.bincount(labels, minlength=held_out.shape[1]).double()
    shares = shares / shares.sum()
    means = mean_predictions(held_out.exp(), labels)
    estimated = estimated_shares(means, unlabeled.double().exp().mean(0), shares)
    ratio = (estimated / shares.clamp_min(1e-30)).clamp(1 / MOST, MOST)
    return torch.where(shares > 0, ratio, 1.0).log()
