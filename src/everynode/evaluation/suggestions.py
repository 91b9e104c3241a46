"""Which nodes to label next: a batch that stands for the unlabeled ones, with a reason for each.

The nodes cover the graph's propagated features, as FeatProp (Wu et al. 2019) and GRAIN (Zhang et
al. 2021) do. A model adds the expected effect: its likely errors weigh more.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from everynode.errors import UsageError, require
from everynode.evaluation.coverage import choose, coverage_points, nearest_of
from everynode.graph import Graph
from everynode.graph.validation import tidy_split

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier

#: The columns of the table before the reason.
COLUMNS = ("id", "label", "stands_for", "predicted", "probability")


class Suggestion(NamedTuple):
    """A node to label next.

    Attributes
    ----------
    node : int
        The number of the node.
    id : int or str
        Its name.
    stands_for : int
        How many unlabeled nodes, itself included, are nearest to it: nearer than to any labeled
        node and any other suggestion.
    predicted : int, str or None
        The class that the model predicts; None without a model.
    probability : float or None
        The probability of this class.
    reason : str
        Why it is suggested, as a sentence.
    """

    node: int
    id: Hashable
    stands_for: int
    predicted: Hashable | None
    probability: float | None
    reason: str


def suggest(
    graph: Graph, count: int = 20, *, model: NodeClassifier | None = None, nodes: Any = None,
    seed: int = 0,
) -> list[Suggestion]:  # fmt: skip
    """Return unlabeled nodes that are worth a label, as one batch.

    The batch covers the unlabeled nodes: most of them are similar to a suggested or a labeled node.
    Similar nodes have similar features, and similar features in their neighborhood. No label is
    needed. A model makes nodes whose predictions are likely wrong count more.

    Parameters
    ----------
    graph : Graph
        The graph; its labels count as given. ``everynode.read(..., few_labels=True)`` reads files
        without labels.
    count : int
        The number of nodes.
    model : NodeClassifier, optional
        A fitted classifier.
    nodes : array, optional
        The nodes to choose from, as indices or a mask. None: every unlabeled node.
    seed : int
        The seed of the samples that large graphs need.

    Returns
    -------
    list of Suggestion
        The nodes that stand for the most others come first.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph = generate(200, 600, 8, 4, seed=0)
    >>> batch = suggest(graph.with_labels(None), 4)
    >>> sum(row.stands_for for row in batch)
    200
    >>> batch[0].reason.split(" (")[0]
    'stands for 58 similar nodes'
    """
    probabilities = None if model is None else model.predict_proba(graph)
    classes = () if model is None else model.classes_.tolist()
    return suggestions(graph, count, probabilities, classes, nodes=nodes, seed=seed)


def suggestions(
    graph: Graph, count: int, probabilities: npt.NDArray[np.float64] | None,
    classes: Sequence[Hashable] = (), *, nodes: Any = None, seed: int = 0,
) -> list[Suggestion]:  # fmt: skip
    """Return the suggestions of :func:`suggest` for probabilities (n x k) of any model, or None."""
    require(count >= 1, "count", "suggest", ">= 1", count)
    unlabeled = graph.labels.cpu().numpy() < 0
    if nodes is None:
        candidates = np.flatnonzero(unlabeled)
    else:
        chosen = tidy_split((nodes, [], []), graph.num_nodes).train
        candidates = np.intersect1d(chosen.cpu().numpy(), np.flatnonzero(unlabeled))
    if not len(candidates):
        raise UsageError(
            "Every node has a label, so there is none to suggest. Name another label column, or "
            "leave labels out."
        )
    weights = None if probabilities is None else likely_errors(probabilities, unlabeled)
    key = ("coverage_points", seed)
    points, hops = graph.cached(key, lambda: coverage_points(graph, seed=seed))
    labeled = np.flatnonzero(~unlabeled)
    picked, useful = choose(
        points, candidates, min(count, len(candidates)), labeled=labeled,
        weights=unlabeled.astype(float) if weights is None else weights, seed=seed,
    )  # fmt: skip
    share = _Groups.of(points, picked, labeled, unlabeled)
    order = np.lexsort((np.arange(len(picked)), -share.sizes, np.arange(len(picked)) >= useful))
    return [
        _suggestion(graph, classes, probabilities, share, int(place), hops, is_more=place >= useful)
        for place in order
    ]


def likely_errors(
    probabilities: npt.NDArray[np.float64], unlabeled: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the probability that each unlabeled node's prediction is wrong; 0 for the labeled.

    >>> likely_errors(np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([True, False])).tolist()
    [0.25, 0.0]
    """
    errors: npt.NDArray[np.float64] = np.where(unlabeled, 1 - probabilities.max(1), 0.0)
    return errors


class _Groups(NamedTuple):
    """The unlabeled nodes that each suggestion stands for."""

    picked: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    has_labels: bool

    @classmethod
    def of(
        cls, points: npt.NDArray[np.float32], picked: npt.NDArray[np.int64],
        labeled: npt.NDArray[np.int64], unlabeled: npt.NDArray[np.bool_],
    ) -> _Groups:  # fmt: skip
        """Assign each unlabeled node to its nearest suggestion or labeled node."""
        centers = np.concatenate([picked, labeled])
        owner, _ = nearest_of(points, points[centers])
        owner[picked] = np.arange(len(picked))
        owner = np.where(unlabeled, owner, -1)
        sizes = np.bincount(owner[owner >= 0], minlength=len(centers))[: len(picked)]
        return cls(picked, owner, sizes, bool(len(labeled)))


def _suggestion(
    graph: Graph, classes: Sequence[Hashable], probabilities: npt.NDArray[np.float64] | None,
    groups: _Groups, place: int, hops: int, *, is_more: bool,
) -> Suggestion:  # fmt: skip
    """Describe one of the chosen nodes."""
    node, size = int(groups.picked[place]), int(groups.sizes[place])
    name = node if graph.node_ids is None else graph.node_ids[node]
    predicted = probability = None
    if probabilities is not None:
        best = int(probabilities[node].argmax())
        predicted, probability = classes[best], float(probabilities[node, best])
    if is_more:
        reason = "drawn at random: the other nodes have a double among the labels and suggestions"
        return Suggestion(node, name, size, predicted, probability, reason)
    share = 100 * size / graph.num_nodes
    how_many = f"stands for {size:,} similar nodes" if size > 1 else "has no labeled node nearby"
    reason = f"{how_many} ({share:.1f} % of all)" if size > 1 else how_many
    if groups.has_labels and size > 1:
        reason += ", none of them labeled"
    if probabilities is not None:
        sure = float(probabilities[groups.owner == place].max(1).mean())
        them = "them" if size > 1 else "it"
        reason += f"; the model is {100 * sure:.0f} % sure of {them}"
    if not hops:
        reason += "; by its columns alone, as linked nodes differ in them"
    return Suggestion(node, name, size, predicted, probability, reason)


def suggestions_csv(rows: Sequence[Suggestion], label: str = "label") -> str:
    """Return a table as CSV with an empty column for the label, which ``fit --labels`` reads."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([label if name == "label" else name for name in COLUMNS] + ["reason"])
    for row in rows:
        probability = "" if row.probability is None else f"{row.probability:.6g}"
        predicted = "" if row.predicted is None else row.predicted
        writer.writerow([row.id, "", row.stands_for, predicted, probability, row.reason])
    return file.getvalue()
