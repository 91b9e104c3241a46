"""What the graph adds to the features, and the features to the graph, with paired intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from everynode.evaluation.intervals import Score, Z
from everynode.evaluation.mean_recall import mean_recall

Right = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def paired_difference(right: Right, other: Right) -> Score:
    """Return the difference of two accuracies on the same nodes, with a 95% interval.

    The interval is Agresti and Min's (2005): half a node is added to each of the four outcomes, so
    it holds for few nodes too.

    >>> gain = paired_difference(np.array([True] * 9 + [False]), np.array([False] * 5 + [True] * 5))
    >>> tuple(round(x, 2) for x in gain)
    (0.4, -0.06, 0.72)
    """
    gained, lost = int((right & ~other).sum()), int((other & ~right).sum())
    nodes = len(right) + 2
    middle = (gained - lost) / nodes
    variance = (gained + lost + 1) / nodes - middle**2
    half = Z * math.sqrt(variance / nodes)
    return Score((gained - lost) / len(right), max(-1.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True)
class GraphGain:
    """The best candidates of each kind, compared on the same held-out labels.

    Parameters
    ----------
    accuracy : dict of str to float
        The accuracy of the best candidate that uses the ``features`` alone, the ``graph`` alone,
        and ``both``. A kind without a candidate is missing.
    candidates : dict of str to str
        Their names.
    over_features, over_graph : Score or None
        The points that the graph adds to the features, and the features to the graph.
    nodes : int
        The number of held-out labels.
    balanced_accuracy : dict of str to Score
        The balanced accuracy of the candidates, by kind, with intervals.
    """

    accuracy: dict[str, float]
    candidates: dict[str, str]
    over_features: Score | None
    over_graph: Score | None
    nodes: int
    balanced_accuracy: dict[str, Score]

    @classmethod
    def of(
        cls, right: Mapping[str, Right], candidates: Mapping[str, str], labels: Ints
    ) -> GraphGain:
        """Compare the best candidates.

        Parameters
        ----------
        right : mapping of str to array of bool
            Which held-out nodes are right, by kind: ``features``, ``graph``, ``both``.
        candidates : mapping of str to str
            The names of the candidates by kind.
        labels : array
            The class of each node.

        Examples
        --------
        >>> both, alone = np.array([True] * 80 + [False] * 20), np.array([True] * 60 + [False] * 40)
        >>> print(GraphGain.of({"both": both, "features": alone}, {}, np.arange(100) % 2))
        The graph adds 20.0 points of accuracy to the features alone (95% interval 11.7 to 27.5).
        """
        over = {
            kind: paired_difference(right["both"], right[kind])
            for kind in ("features", "graph")
            if "both" in right and kind in right
        }
        accuracy = {kind: float(each.mean()) for kind, each in right.items()}
        nodes = len(next(iter(right.values()))) if right else 0
        balanced = {kind: mean_recall(each, labels) for kind, each in right.items()}
        return cls(
            accuracy, dict(candidates), over.get("features"), over.get("graph"), nodes, balanced
        )

    def __str__(self) -> str:
        parts = []
        if self.over_features is not None:
            parts.append(_sentence("the graph", "the features alone", self.over_features))
        if self.over_graph is not None:
            parts.append(_sentence("the features", "the graph alone", self.over_graph))
        if not parts:
            return ""
        text = ", and ".join(parts)
        return f"{text[0].upper()}{text[1:]}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the sentence."""
        return {"sentence": str(self), **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GraphGain:
        """Build the comparison from JSON."""
        scores = {
            name: None if values[name] is None else Score(*values[name])
            for name in ("over_features", "over_graph")
        }
        balanced = {kind: Score(*score) for kind, score in values["balanced_accuracy"].items()}
        return cls(
            values["accuracy"], values["candidates"], **scores, nodes=values["nodes"],
            balanced_accuracy=balanced,
        )  # fmt: skip


def _sentence(what: str, to: str, gain: Score) -> str:
    value, low, high = (100 * x for x in gain)
    verb = "add" if what.endswith("s") else "adds"
    interval = f"(95% interval {low:.1f} to {high:.1f})"
    if low > 0:
        return f"{what} {verb} {value:.1f} points of accuracy to {to} {interval}"
    if high < 0:
        cost = "cost" if what.endswith("s") else "costs"
        return f"{what} {cost} {-value:.1f} points of accuracy against {to} {interval}"
    return f"{what} {verb} no measurable accuracy to {to} ({value:+.1f} points, {interval[1:]}"
