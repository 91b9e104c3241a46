"""The explanation of a prediction: what carried it, and how it changes without each part."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from everynode.explanations.attribution import part_scores
from everynode.explanations.changes import Change
from everynode.explanations.occlusion import Occlusion
from everynode.explanations.parts import Part, node_name, node_parts, own_parts

#: The most parts of each kind (of the node itself; other nodes) that are occluded, and the least.
MOST_PARTS, LEAST_PARTS = 32, 6
#: The work of all occlusions: nodes of the copies, over all networks, each with its numbers.
MOST_WORK = 5_000_000
#: As many numbers in the features of a node cost as much as its hidden values.
NUMBERS = 100
#: A smaller change of the log-odds is no reason.
LEAST_CHANGE = 0.02


class Reason(NamedTuple):
    """A part of a prediction, with the prediction without it.

    Attributes
    ----------
    part : Part
        The column, word, neighbor or labeled node.
    without : float
        The probability of the explained class without it.
    change : float
        The probability without it minus the probability with it; negative: it speaks for the class.
    """

    part: Part
    without: float
    change: float


@dataclass(frozen=True)
class Explanation:
    """The reasons of a prediction.

    Attributes
    ----------
    node : int
        The index of the node.
    name : str
        Its name, with its id.
    label : Hashable
        The explained class: the predicted one, unless another was asked for.
    probability : float
        Its probability.
    given : Hashable or None
        The given label of the node.
    without_neighbors, without_columns : tuple of (Hashable, float, float)
        The prediction if the node had no edges, or neutral columns: its class, the probability of
        that class, and the probability of the explained class.
    reasons : tuple of Reason
        The parts whose absence changes the probability, the largest change of the log-odds first.
    alone : float
        The probability if only the supporting reasons remained: all other nodes and columns
        missing.
    without : float
        The probability without all supporting reasons together.
    found, tried : int
        The number of parts, and how many of them were taken away one by one.
    """

    node: int
    name: str
    label: Hashable
    probability: float
    given: Hashable | None
    without_neighbors: tuple[Hashable, float, float]
    without_columns: tuple[Hashable, float, float]
    reasons: tuple[Reason, ...]
    alone: float
    without: float
    found: int
    tried: int

    @property
    def supporting(self) -> tuple[Reason, ...]:
        """The reasons that speak for the class."""
        return tuple(reason for reason in self.reasons if reason.change < 0)

    @property
    def brief(self) -> str:
        """The strongest reasons in a few words.

        >>> from everynode.explanations.parts import Part
        >>> word = Reason(Part("word", "about: ship"), 0.6, -0.3)
        >>> nothing = ("a", 0.9, 0.9)
        >>> Explanation(0, "n0", "a", 0.9, None, nothing, nothing, (word,), 0.9, 0.4, 1, 1).brief
        'for a: about: ship (−30.0)'
        """
        pro = ", ".join(f"{one.part.text} ({points(one.change)})" for one in self.supporting[:2])
        against = [one for one in self.reasons if one.change > 0][:1]
        contra = ", ".join(f"{one.part.text} ({points(one.change)})" for one in against)
        sides = [f"for {self.label}: {pro}"] * bool(pro) + [f"against: {contra}"] * bool(contra)
        return "; ".join(sides) or "no single column or node matters"

    @property
    def sentence(self) -> str:
        """The explanation in a few sentences."""
        text = f"{self.name} is predicted {self.label} ({percent(self.probability)})."
        if self.given is not None and self.given != self.label:
            text += f" Its label is {self.given}."
        for what, (label, probability, _) in (
            ("Without its neighbors", self.without_neighbors),
            ("With neutral columns", self.without_columns),
        ):
            still = "still be" if label == self.label else "be"
            text += f" {what}, it would {still} {label} ({percent(probability)})."
        return text

    def lines(self, count: int = 10) -> Iterator[str]:
        """Yield the sentence and the table of reasons."""
        yield self.sentence
        shown = self.reasons[:count]
        if not shown:
            yield "  No single column, word or node changes the prediction when it is missing."
            return
        width = max(len(reason.part.text) for reason in shown)
        yield f"  {'if missing':{width}}  {self.label} at  change in points"
        for reason in shown:
            at = f"{percent(reason.without):>{len(str(self.label)) + 3}}"
            yield f"  {reason.part.text:{width}}  {at}  {points(reason.change)}"
        if self.supporting:
            count = len(self.supporting)
            these = f"all {count} that speak" if count > 1 else "the one that speaks"
            yield (
                f"  Without {these} for {self.label}: {percent(self.without)}; with nothing else: "
                f"{percent(self.alone)}."
            )
        if self.tried < self.found:
            yield f"  {self.tried} of {self.found} columns, words and nodes were tried one by one."

    def to_dict(self, count: int | None = None) -> dict[str, Any]:
        """Return plain values for JSON."""
        keys = ("class", "probability", "probability_of_explained")
        return {
            "node": self.name, "class": self.label, "probability": self.probability,
            "label": self.given, "sentence": self.sentence,
            "without_neighbors": dict(zip(keys, self.without_neighbors, strict=True)),
            "without_columns": dict(zip(keys, self.without_columns, strict=True)),
            "reasons": [
                {
                    "kind": one.part.kind, "name": one.part.name, "value": one.part.value,
                    "without": one.without, "change": one.change,
                }
                for one in self.reasons[:count]
            ],
            "without_supporting": self.without, "alone": self.alone, "parts": self.found,
            "tried": self.tried,
        }  # fmt: skip


def percent(probability: float) -> str:
    """Return a probability as text.

    >>> percent(0.931), percent(0.99999)
    ('93.1 %', '100.0 %')
    """
    return f"{100 * probability:.1f} %"


def points(change: float) -> str:
    """Return a change of a probability in percentage points.

    >>> points(-0.123), points(0.05), points(0.00021)
    ('−12.3', '+5.0', '+0.02')
    """
    text = f"{100 * change:+.1f}" if abs(change) >= 0.0005 else f"{100 * change:+.1g}"
    return text.replace("-", "−")


def explain(
    occlusion: Occlusion,
    node: int,
    classes: Sequence[Hashable],
    *,
    label: int | None = None,
    most_parts: int = MOST_PARTS,
) -> Explanation:
    """Explain the prediction of one node.

    Every part is taken away, and the whole classifier predicts again. If there are many parts,
    integrated gradients choose which to try. Two calls give the same answer.

    Parameters
    ----------
    occlusion : Occlusion
        The classifier on its graph.
    node : int
        The node.
    classes : sequence of Hashable
        The classes of the classifier, in the order of its probabilities.
    label : int, optional
        The index of the class to explain. None: the predicted one.
    most_parts : int
        The most parts of the node itself to try, and the most other nodes.
    """
    surroundings, graph = occlusion.surroundings, occlusion.graph
    own, others = own_parts(surroundings, node), node_parts(surroundings, node)
    every = tuple(sorted({feature for part in own for feature in part.features}))
    start = [Change(), Change(removed=(node,)), Change(features=every)]
    first = occlusion.probabilities(node, start)
    code = int(first[0].argmax()) if label is None else label
    tried = _shortlist(occlusion, node, code, own, others, most_parts)
    changed = occlusion.probabilities(node, [part.change for part in tried])
    before, after = float(first[0, code]), changed[:, code]
    shift = np.abs(log_odds(changed, code) - log_odds(first[:1], code))
    order = np.argsort(-shift, kind="stable").tolist()
    reasons = tuple(
        Reason(tried[i], float(after[i]), float(after[i]) - before)
        for i in order
        if shift[i] >= LEAST_CHANGE
    )
    named = [reason.part for reason in reasons if reason.change < 0]
    together = [without_all(named), only(named, every)]
    without_them, alone = occlusion.probabilities(node, together)[:, code].tolist()
    given = int(graph.labels[node])
    without = [(classes[p.argmax()], float(p.max()), float(p[code])) for p in first[1:]]
    return Explanation(
        node, node_name(graph, node), classes[code], before,
        None if given < 0 else graph.classes[given], without[0], without[1], reasons,
        alone, without_them, len(own) + len(others), len(tried),
    )  # fmt: skip


def log_odds(probabilities: np.ndarray, code: int) -> np.ndarray:
    """Return the log-odds of a class, also where it is nearly certain."""
    others = np.delete(probabilities, code, axis=1).sum(1)
    tiny = np.finfo(np.float64).tiny
    odds: np.ndarray = np.log(np.maximum(probabilities[:, code], tiny)) - np.log(
        np.maximum(others, tiny)
    )
    return odds


def without_all(parts: Sequence[Part]) -> Change:
    """Return the change that takes all parts away."""
    features = tuple(sorted({feature for part in parts for feature in part.features}))
    return Change(features, tuple(other for part in parts for other in part.nodes))


def only(parts: Sequence[Part], every: Sequence[int]) -> Change:
    """Return the change that leaves nothing but the parts; ``every``: features that can change."""
    features = {feature for part in parts for feature in part.features}
    return Change(
        features=tuple(feature for feature in every if feature not in features),
        kept=tuple(other for part in parts for other in part.nodes),
    )


def _shortlist(
    occlusion: Occlusion, node: int, code: int, own: list[Part], others: list[Part], most: int
) -> list[Part]:
    """Return the parts to take away, as many as the work allows."""
    of_one: float = sum(
        len(occlusion.surroundings.ball(node, network.reach))
        for view in occlusion.views
        for network in view.networks
        if not occlusion.is_linear(network)
    )
    features = occlusion.graph.features
    stored = features.numel() if isinstance(features, Tensor) else features.pattern.nnz
    of_one *= 1 + stored / max(occlusion.graph.num_nodes, 1) / NUMBERS
    room = int(MOST_WORK // max(2 * of_one, 1))
    limit = max(LEAST_PARTS, min(most, room))
    if len(own) <= limit and len(others) <= limit:
        return [*own, *others]
    scores = part_scores(occlusion, node, code, own, others)
    chosen = []
    for parts, score in zip((own, others), scores, strict=True):
        best = np.argsort(-score, kind="stable")[:limit]
        chosen += [parts[i] for i in sorted(best.tolist())]
    return chosen
