"""Would a random split flatter? A cheap classifier on the future, and on random labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everynode.evaluation.hop_features import (
    graph_operator,
    held_out_probabilities,
    hop_features,
    reduced_features,
)
from everynode.graph import Graph

#: The random splits, and the difference that is worth a warning.
DRAWS, WORTH = 5, 0.02


class TimeSplitCheck(NamedTuple):
    """Accuracies of a cheap classifier by the user's split and by random splits of equal size.

    Attributes
    ----------
    future, random : float
        The accuracy on the test part, and the mean accuracy on random parts.
    flatters : bool
        Whether a random split is better by two points and by two standard errors.
    """

    future: float
    random: float
    flatters: bool

    @property
    def sentence(self) -> str:
        """What was found, for people."""
        start = "flatter" if self.flatters else "give about the same"
        return (
            f"A random split would {start}: a quick classifier has {100 * self.random:.1f}% of "
            f"random labels right, and {100 * self.future:.1f}% of the latest."
        )


def check_time_split(graph: Graph, *, fold: int = 0, seed: int = 0) -> TimeSplitCheck:
    """Compare the split of a graph with random splits of the same labels.

    The classifier is a logistic regression on the features and their means over one and two hops.

    Parameters
    ----------
    graph : Graph
        A graph with training and test nodes.
    fold : int
        The fold.
    seed : int
        The seed of the random splits.
    """
    train, val, test = (graph.nodes(part, fold).cpu().numpy() for part in ("train", "val", "test"))
    past = np.concatenate([train, val])
    nodes = np.concatenate([past, test])
    points = reduced_features(graph, seed=seed)
    features = hop_features(points, graph_operator(graph), nodes)
    labels = np.unique(graph.labels.cpu().numpy()[nodes], return_inverse=True)[1]
    rows, count = np.arange(len(nodes)), len(past)

    def accuracy(order: np.ndarray) -> float:
        p = held_out_probabilities(features, labels, order[:count], order[count:])
        return float((p.argmax(1) == labels[order[count:]]).mean())

    random = np.random.default_rng(seed)
    future = accuracy(rows)
    draws = np.array([accuracy(random.permutation(rows)) for _ in range(DRAWS)])
    mean = float(draws.mean())
    variance = future * (1 - future) / len(test) + draws.var(ddof=1) / DRAWS
    flatters = mean - future > max(WORTH, 2 * variance**0.5)
    return TimeSplitCheck(future, mean, bool(flatters))
