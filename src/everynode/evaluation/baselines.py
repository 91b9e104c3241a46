"""Baselines of a fit: the most common class, the columns alone, and the links alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from everynode.evaluation.intervals import Score, wilson
from everynode.evaluation.mean_recall import mean_recall

if TYPE_CHECKING:
    from everynode.evaluation.fit_summary import FitSummary

#: Classes are uneven if the largest has at least this share of the scored nodes.
UNEVEN = 0.75
#: Metrics that give every class the same weight.
BY_CLASS = ("balanced_accuracy", "macro_f1", "auc")
#: The inputs of the portfolio's candidates, in words.
KINDS = {"features": "columns only", "graph": "links only", "both": "columns and links"}


class Baseline(NamedTuple):
    """The scores of a simple prediction rule.

    Attributes
    ----------
    name : str
        The rule.
    accuracy, balanced_accuracy : Score
        Its scores with intervals.
    nodes : int
        The number of scored nodes.
    part : str
        ``test`` or ``validation``.
    """

    name: str
    accuracy: Score
    balanced_accuracy: Score
    nodes: int
    part: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        scores = {
            name: [None if math.isnan(x) else x for x in getattr(self, name)]
            for name in ("accuracy", "balanced_accuracy")
        }
        return self._asdict() | scores


def majority(fit: FitSummary) -> tuple[int, np.ndarray]:
    """Return the most common class of the training labels, and which scored nodes have it."""
    train = fit.predictions.labels[fit.predictions.nodes("train")]
    labels = train if len(train) else fit.judged.labels
    most = int(np.bincount(labels, minlength=len(fit.predictions.classes)).argmax())
    return most, fit.judged.labels == most


def baselines(fit: FitSummary) -> tuple[Baseline, ...]:
    """Return the baselines of a fit, with intervals.

    The most common class is scored on the test nodes, if there are any. The best candidates on
    columns, links and both are scored out of fold on the training labels. The portfolio has trained
    them already.
    """
    most, right = majority(fit)
    name = f"always '{fit.predictions.classes[most]}'"
    accuracy, balanced = wilson(int(right.sum()), len(right)), mean_recall(right, fit.judged.labels)
    found = [Baseline(name, accuracy, balanced, len(right), fit.judged.name)]
    gain = fit.model.graph_gain_
    if gain is not None and gain.nodes:
        found += [
            Baseline(words, wilson(round(gain.accuracy[kind] * gain.nodes), gain.nodes),
                     gain.balanced_accuracy[kind], gain.nodes, "validation")
            for kind, words in KINDS.items()
            if kind in gain.accuracy
        ]  # fmt: skip
    return tuple(found)


def headline_metric(fit: FitSummary) -> Literal["accuracy", "balanced_accuracy"]:
    """Return the metric of the headline: that of the classes, if the user asked for such a one."""
    by_class = fit.model.fitted_.settings.monitor in BY_CLASS
    return "balanced_accuracy" if by_class else "accuracy"


def is_uneven(fit: FitSummary) -> bool:
    """Whether one class is so common that the accuracy is uninformative."""
    counts = np.bincount(fit.judged.labels)
    return bool(counts.max() >= UNEVEN * counts.sum())
