"""Leave out labels that look wrong, if held-out labels are predicted better without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from everynode.datasets.splits import stratified_split
from everynode.graph import UNLABELED, Graph

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.training.process_pool import Engine

#: The share of the labels that judge, and the least number of them.
SHARE_TO_JUDGE, LEAST_TO_JUDGE = 0.25, 20


class CleanLabels(NamedTuple):
    """The outcome of :func:`clean_labels`.

    Attributes
    ----------
    model : NodeClassifier
        The classifier to deliver, with or without the suspicious labels.
    dropped : int
        The number of labels that it did not learn from.
    judged : int
        The number of labels that judged.
    before, after : int
        How many of them are predicted right with and without the suspicious labels.
    """

    model: NodeClassifier
    dropped: int
    judged: int
    before: int
    after: int

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        if not self.judged:
            return "--clean-labels has no effect: too few labels to judge."
        count = f"{self.after} instead of {self.before} of {self.judged} held-out labels are right"
        if self.dropped:
            return f"{self.dropped} labels that look wrong were left out: without them, {count}."
        return f"No label was left out: without those that look wrong, {count}."


def clean_labels(
    model: NodeClassifier,
    delivered: NodeClassifier,
    graph: Graph,
    nodes: Tensor,
    *,
    seed: int = 0,
    engine: Engine | None = None,
) -> CleanLabels:
    """Leave out the suspicious labels of a refitted classifier if that helps on held-out labels.

    A quarter of the labels is set aside. Suspicious labels are found among the others, with which
    and without which the chosen models are trained. The labels set aside judge the two. Only if
    more of them are right without the suspicious labels, a third refit leaves out those of
    ``delivered``.

    Parameters
    ----------
    model : NodeClassifier
        The measured classifier, which has chosen the models.
    delivered : NodeClassifier
        Its refit on all of ``nodes``.
    graph : Graph
        The graph of the fit.
    nodes : Tensor
        The labeled nodes to learn from.
    seed : int
        The seed that chooses the labels that judge.
    engine : Engine, optional
        The engine of the trainings.
    """
    labels = torch.full_like(graph.labels, UNLABELED)
    labels[nodes] = graph.labels[nodes]
    if SHARE_TO_JUDGE * len(nodes) < LEAST_TO_JUDGE:
        return CleanLabels(delivered, 0, 0, 0, 0)
    split = stratified_split(labels, train=1 - SHARE_TO_JUDGE, val=0.0, seed=seed)
    judges = split.test
    first = model.refit(graph, split.train, engine=engine)
    kept = _without(split.train, first)
    if len(kept) == len(split.train):
        before = _right(first, graph, judges)
        return CleanLabels(delivered, 0, len(judges), before, before)
    second = model.refit(graph, kept, engine=engine)
    before, after = (_right(one, graph, judges) for one in (first, second))
    if after <= before:
        return CleanLabels(delivered, 0, len(judges), before, after)
    kept = _without(nodes, delivered)
    dropped = len(nodes) - len(kept)
    final = model.refit(graph, kept, engine=engine) if dropped else delivered
    return CleanLabels(final, dropped, len(judges), before, after)


def _without(nodes: Tensor, model: NodeClassifier) -> Tensor:
    """Return the nodes whose label does not look wrong."""
    suspicious = torch.tensor([row.node for row in model.suspicious_labels()], dtype=nodes.dtype)
    return nodes[~torch.isin(nodes, suspicious.to(nodes.device))]


def _right(model: NodeClassifier, graph: Graph, nodes: Tensor) -> int:
    """Return how many nodes have their label as prediction."""
    predicted = model.predict_proba(graph, nodes=nodes).argmax(1)
    return int(np.sum(predicted == graph.labels[nodes].cpu().numpy()))
