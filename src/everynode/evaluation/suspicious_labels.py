"""Labels that look wrong: confident learning on out-of-fold probabilities.

Paper: `Confident Learning: Estimating Uncertainty in Dataset Labels
<https://arxiv.org/abs/1911.00068>`_ (Northcutt et al. 2021).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from everynode.evaluation.held_out_labels import HeldOutLabels

#: Probabilities that differ by less count as equal.
TOLERANCE = 1e-6


class SuspiciousLabel(NamedTuple):
    """A label that looks wrong.

    Attributes
    ----------
    node : int
        The number of the node.
    id : int or str
        Its name.
    label, suggested : int or str
        The given class, and the class that it looks like.
    probability : float
        The out-of-fold probability of the given class (self-confidence).
    suggested_probability : float
        The probability of the suggested class.
    margin : float
        The normalized margin, from 0 (surely wrong) to 1 (surely right).
    """

    node: int
    id: Hashable
    label: Hashable
    suggested: Hashable
    probability: float
    suggested_probability: float
    margin: float


def confident_classes(probabilities: Tensor, labels: Tensor) -> Tensor:
    r"""Return the class that each node confidently belongs to; -1 without one.

    The threshold of a class is the mean probability that its nodes give to it. A node confidently
    belongs to the most probable class whose threshold it reaches:

    .. math:: t_j = \frac 1 {|X_j|} \sum_{i \in X_j} p_{i,j}, \qquad
              \hat y_i = \arg\max_{j: \; p_{i,j} \ge t_j} p_{i,j}

    This is the paper's definition. The package cleanlab 2.9 takes the most probable class of all
    where several thresholds are reached, which differs in a few rows.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.8, 0.2]])
    >>> confident_classes(p, torch.tensor([0, 0, 1, 1])).tolist()
    [0, 1, 1, 0]
    """
    counts = torch.bincount(labels, minlength=probabilities.shape[1])
    own = probabilities.gather(1, labels[:, None])[:, 0]
    sums = own.new_zeros(len(counts)).index_add_(0, labels, own)
    thresholds = torch.where(counts > 0, sums / counts.clamp(min=1), torch.inf)
    reached = probabilities >= thresholds.clamp(min=2 * TOLERANCE) - TOLERANCE
    best = torch.where(reached, probabilities, -1.0).argmax(1)
    return torch.where(reached.any(1), best, -1)


def normalized_margin(probabilities: Tensor, labels: Tensor) -> Tensor:
    r"""Return :math:`(p_{i,y_i} - \max_{j \ne y_i} p_{i,j} + 1) / 2` of each node.

    >>> normalized_margin(torch.tensor([[0.75, 0.25]]), torch.tensor([1])).tolist()
    [0.25]
    """
    own = probabilities.gather(1, labels[:, None])
    others = probabilities.scatter(1, labels[:, None], -1.0).max(1).values
    return (own[:, 0] - others + 1) / 2


def label_issues(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows whose label looks wrong, the worst first, and their suggested classes.

    These rows confidently belong to another class (the off-diagonal of the confident joint), and
    their label is not their most probable class. Their order is by normalized margin.
    """
    guess, margin = (
        confident_classes(probabilities, labels),
        normalized_margin(probabilities, labels),
    )
    own = probabilities.gather(1, labels[:, None])[:, 0]
    is_best = own >= probabilities.max(1).values - TOLERANCE
    rows = ((guess >= 0) & (guess != labels) & ~is_best).nonzero()[:, 0]
    rows = rows[margin[rows].argsort(stable=True)]
    return rows, guess[rows]


def suspicious_labels(kept: HeldOutLabels, classes: Sequence[Hashable]) -> list[SuspiciousLabel]:
    """Return the held-out labels that look wrong, the worst first."""
    p, labels = kept.probabilities, kept.labels
    rows, guess = label_issues(p, labels)
    margin, given = normalized_margin(p, labels), labels.tolist()
    return [
        SuspiciousLabel(
            int(kept.nodes[i]), kept.ids[i], classes[given[i]], classes[other],
            p[i, given[i]].item(), p[i, other].item(), margin[i].item(),
        )
        for i, other in zip(rows.tolist(), guess.tolist(), strict=True)
    ]  # fmt: skip


def suspicious_csv(rows: Sequence[SuspiciousLabel]) -> str:
    """Return a table as CSV: one row per suspicious label."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(SuspiciousLabel._fields[1:])
    for row in rows:
        writer.writerow([*row[1:4], *(f"{value:.6g}" for value in row[4:])])
    return file.getvalue()
