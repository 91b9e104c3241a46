"""The delivered model and the measured model: their training labels and their quality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from everynode.evaluation.intervals import Score, wilson
from everynode.io.summary import counted

if TYPE_CHECKING:
    from everynode.evaluation.fit_summary import FitSummary


class Delivery(NamedTuple):
    """The model that is saved and predicts the unlabeled nodes.

    Attributes
    ----------
    labels : int
        The number of its training labels.
    refitted : bool
        Whether it was trained again after the quality was measured.
    networks, folds : int
        The number of its networks, and of the folds of its labels.
    seconds : float
        The time of the refit; 0 without one.
    accuracy : Score or None
        Its out-of-fold accuracy on all its labels; None without a refit.
    """

    labels: int
    refitted: bool
    networks: int
    folds: int
    seconds: float
    accuracy: Score | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self._asdict()


def delivery(fit: FitSummary) -> Delivery:
    """Return the facts about the delivered model of a fit."""
    model = fit.delivered or fit.model
    networks, folds = len(model.networks_), model.num_folds_
    if fit.delivered is None:
        return Delivery(model.num_labels_, False, networks, folds, 0.0, None)
    nodes, log_p = model.held_out_
    right = int((log_p.argmax(1) == fit.graph.labels[nodes]).sum())
    score = wilson(right, len(nodes))
    return Delivery(model.num_labels_, True, networks, folds, model.fitted_.seconds, score)


def sentence(fit: FitSummary) -> str:
    """Describe the labels that measured the quality and the labels that trained the model.

    >>> from everynode import NodeClassifier
    >>> from everynode.datasets import generate
    >>> from everynode.evaluation.fit_summary import FitSummary
    >>> graph = generate(200, 600, 8, 3, seed=0)
    >>> model = NodeClassifier(objective="ce", settings={"epochs": 3}, verbose=False).fit(graph)
    >>> sentence(FitSummary.of(model, graph))
    'Quality is measured on 56 test labels. The model learned from 108 labels, and not from these.'
    """
    part, found = fit.judged, delivery(fit)
    scored = counted(len(part.nodes), f"{part.name} label")
    learned = f"{found.labels:,}"
    if found.refitted:
        return (
            f"Quality is measured on {scored} with a model that did not see them. The delivered "
            f"model then learned from all {learned} labels."
        )
    if part.name == "validation" and fit.folds > 1:
        return (
            f"Quality is measured on {scored}, each with networks that did not see it. The "
            f"delivered model learned from all {learned} labels."
        )
    return (
        f"Quality is measured on {scored}. The model learned from {learned} labels, and not from "
        "these."
    )
