"""Evaluation of a fitted classifier: scores, reliability, nodes to review, and a node map.

The page of ``everynode fit`` (:mod:`everynode.report.fit_page`) shows these numbers;
``fit.json`` keeps them (:meth:`FitSummary.to_dict`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from everynode.evaluation.alerts import Alert, find_alerts
from everynode.evaluation.baselines import Baseline, baselines
from everynode.evaluation.calibration import Bin, reliability
from everynode.evaluation.delivery import Delivery, delivery, sentence
from everynode.evaluation.headline import headline
from everynode.evaluation.intervals import Score
from everynode.evaluation.node_map import node_map
from everynode.evaluation.predictions import Predictions, predictions
from everynode.evaluation.quality import quality
from everynode.evaluation.scored_part import ClassCounts, ScoredPart
from everynode.evaluation.slices import (
    Slice,
    class_groups,
    column_groups,
    graph_groups,
    slice_quality,
)
from everynode.evaluation.suggestions import Suggestion, suggestions
from everynode.evaluation.without_columns import score_without

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph
    from everynode.io.summary import Leak

#: Number of bins of the reliability diagram; half of it below ``FEW_NODES`` nodes.
BINS, FEW_NODES = 10, 200

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FitSummary:
    """A fitted classifier on its graph, with its predictions and scores.

    Build it with :meth:`of`.

    Attributes
    ----------
    model : NodeClassifier
        The fitted classifier.
    graph : Graph
        The graph with its split.
    notes : sequence of str
        Sentences that say how the labels were split.
    predictions : Predictions
        The prediction for every node.
    parts : dict of str to ScoredPart
        The test part (if there is one), then the validation part.
    quality : dict of str to dict of str to Score
        The scores of each part, by metric.
    delivered : NodeClassifier or None
        The classifier that was refitted on all labels after ``model`` was measured.
    slice_by : tuple of str
        Shown columns that divide the nodes into slices, beside degree, component and class size.

    Examples
    --------
    >>> from everynode import NodeClassifier
    >>> from everynode.datasets import generate
    >>> graph = generate(200, 600, 8, 3, seed=0)
    >>> model = NodeClassifier(objective="ce", settings={"epochs": 3}, verbose=False).fit(graph)
    >>> list(FitSummary.of(model, graph).quality)
    ['test', 'validation']
    """

    model: NodeClassifier
    graph: Graph
    notes: Sequence[str]
    predictions: Predictions
    parts: dict[str, ScoredPart]
    quality: dict[str, dict[str, Score]]
    delivered: NodeClassifier | None = None
    slice_by: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        model: NodeClassifier,
        graph: Graph,
        notes: Sequence[str] = (),
        delivered: NodeClassifier | None = None,
        coverage: float | None = None,
        slice_by: Sequence[str] = (),
    ) -> FitSummary:
        """Predict every node and score the test and validation nodes.

        With a ``delivered`` classifier, it predicts all nodes except these. With a ``coverage``,
        the predictions have sets. ``slice_by``: columns among those that the graph's summary shows.
        """
        test, held_out = graph.nodes("test"), model.held_out_
        outputs = {
            "test": (test, model.log_probabilities(graph, test), model.temperature_),
            "validation": (*held_out, model.held_out_temperature_),
        }
        parts = {
            name: ScoredPart(
                name,
                nodes.cpu().numpy(),
                graph.labels[nodes].cpu().numpy(),
                log_probabilities,
                divisor,
            )
            for name, (nodes, log_probabilities, divisor) in outputs.items()
            if len(nodes)
        }
        scores = {name: quality(part.probabilities, part.labels) for name, part in parts.items()}
        measured = model if delivered else None
        table = predictions(delivered or model, graph, measured=measured, coverage=coverage)
        return cls(model, graph, notes, table, parts, scores, delivered, tuple(slice_by))

    @property
    def folds(self) -> int:
        """Number of folds in which labels were held out; 1: a single split."""
        return self.model.num_folds_

    @cached_property
    def delivery(self) -> Delivery:
        """The facts about the delivered model."""
        return delivery(self)

    @property
    def learned(self) -> str:
        """The labels that measured the quality and the labels that trained the model, in words."""
        return sentence(self)

    @property
    def calibrated(self) -> bool:
        """Whether a temperature changes the probabilities."""
        return self.model.temperature_ != 1.0

    @property
    def judged(self) -> ScoredPart:
        """The part whose scores are reported: test, else validation."""
        return next(iter(self.parts.values()))

    @property
    def judged_accuracy(self) -> Score:
        """The accuracy on the judged part."""
        return self.quality[self.judged.name]["accuracy"]

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The feature columns with label leakage."""
        return () if self.graph.summary is None else self.graph.summary.leaks

    @cached_property
    def alerts(self) -> tuple[Alert, ...]:
        """The findings that limit the trust in the fit, the worst first."""
        return find_alerts(self)

    @cached_property
    def baselines(self) -> tuple[Baseline, ...]:
        """The accuracy of the most common class, the columns alone and the links alone."""
        return baselines(self)

    @cached_property
    def without_leaks(self) -> Score | None:
        """The accuracy of a quick fit without the leaking columns; None without a leak."""
        if not self.leaks:
            return None
        return score_without(self, {leak.column for leak in self.leaks})

    @cached_property
    def headline(self) -> tuple[str, ...]:
        """The sentences of the headline; see :mod:`everynode.evaluation.headline`."""
        return headline(self)

    @property
    def caution(self) -> str:
        """Return at most three sentences on how far to trust the scores."""
        if self.leaks:
            return "Do not expect this score for new nodes: see the alerts."
        if "test" in self.parts:
            score = self.quality["test"]["accuracy"]
            between = f"{100 * score.low:.1f} to {100 * score.high:.1f}%"
            return (
                f"The test nodes played no part in training or selection. Expect {between} of"
                " similar new nodes to be right (95% interval)."
            )
        if self.folds > 1:
            chosen = f"Settings, epochs{' and temperature' * self.calibrated}"
            return (
                f"{chosen} were chosen on these labels, so the scores may be too good for new"
                " nodes. Each label is scored by networks that trained on only part of the"
                " others, so they may also be too low. There is no test part."
            )
        choices = [
            *["models"] * (self.model.ensemble_ is not None),
            "epoch",
            *["temperature"] * self.calibrated,
            *["class shares"] * bool(self.model.fitted_.settings.prior),
        ]
        verb = "were" if len(choices) > 1 else "was"
        return (
            f"The {' and the '.join(choices)} {verb} chosen on the validation nodes, so these"
            " scores are too good for new nodes. There is no test part."
        )

    def reliability(self) -> dict[str, list[Bin]]:
        """Return the bins of the reliability diagram of the judged nodes.

        The keys are ``before`` and ``after`` the temperature, or an empty string without one.
        """
        part = self.judged
        probabilities = (
            {"before": part.uncalibrated, "after": part.probabilities}
            if self.calibrated
            else {"": part.uncalibrated}
        )
        bins = BINS if len(part.nodes) >= FEW_NODES else BINS // 2
        labels = torch.from_numpy(part.labels)
        return {
            name: reliability(torch.from_numpy(p), labels, bins)
            for name, p in probabilities.items()
        }

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The slices of the judged nodes: by degree, component, class size and columns."""
        part, shown = self.judged, self.predictions.shown
        trained = self.predictions.labels[self.predictions.nodes("train")]
        if not len(trained):  # folds: each label trained the networks of the others
            trained = part.labels
        columns = {
            name: column_groups([shown[name][node] for node in part.nodes.tolist()])
            for name in self.slice_by
        }
        structure = graph_groups(self.graph, part.nodes)
        return columns | structure | {"class size": class_groups(part.labels, trained)}

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        """The accuracy on the judged nodes by slice."""
        labels, predicted = self.judged.answers()
        return slice_quality(labels == predicted, self.groups)

    @cached_property
    def coverage(self) -> tuple[Slice, ...]:
        """The share of test nodes whose prediction set has their class: all, by class, by degree.

        Empty without sets or without test nodes: other labels calibrated the sets.
        """
        part, sets = self.judged, self.predictions.sets
        if sets is None or part.name != "test":
            return ()
        inside = sets[part.nodes, part.labels]
        names = [str(self.predictions.classes[label]) for label in part.labels]
        groups = {
            "": ["all test nodes"] * len(names),
            "class": names,
            "degree": self.groups["degree"],
        }
        return slice_quality(inside, groups)

    def confusion(self) -> list[list[int]]:
        """Return the confusion matrix of the judged nodes."""
        return self.judged.confusion(len(self.predictions.classes))

    def class_counts(self) -> list[ClassCounts]:
        """Count the nodes and predictions of every class."""
        names, (true, called) = self.predictions.classes, self.judged.answers()

        def count(codes: Ints) -> Ints:
            return np.bincount(codes, minlength=len(names))

        train = count(self.predictions.labels[self.predictions.nodes("train")])
        sizes, calls, right = count(true), count(called), count(true[true == called])
        predicted = count(self.predictions.predicted)
        return [
            ClassCounts(
                str(name),
                int(train[c]),
                int(sizes[c]),
                int(calls[c]),
                int(right[c]),
                int(predicted[c]),
            )
            for c, name in enumerate(names)
        ]

    def uncertain(self, at_most: int) -> Ints:
        """Return the nodes with the lowest confidence, among unlabeled nodes if there are any."""
        unlabeled = np.array([name is None for name in self.predictions.label_names])
        nodes = np.flatnonzero(unlabeled if unlabeled.any() else np.ones_like(unlabeled))
        return nodes[np.argsort(self.predictions.probability[nodes], kind="stable")[:at_most]]

    def suggestions(self, count: int) -> list[Suggestion]:
        """Return the nodes to label next, with the predictions of :attr:`predictions`."""
        found = self.predictions
        return suggestions(self.graph, count, found.probabilities, found.classes)

    def disagreements(self) -> Ints:
        """Return the nodes whose label differs from their prediction, most confident first."""
        labels = self.predictions.labels
        nodes = np.flatnonzero((labels >= 0) & (labels != self.predictions.predicted))
        return nodes[np.argsort(-self.predictions.probability[nodes], kind="stable")]

    def map(self) -> tuple[Ints, Floats]:
        """Return some nodes and their positions in the plane; see :func:`node_map`."""
        return node_map((self.delivered or self.model).embed(self.graph), self.model.fitted_.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        fitted, model = self.model.fitted_, self.model
        scores: dict[str, Any] = {}
        for name, part in self.parts.items():
            values = {
                metric: [None if math.isnan(x) else x for x in score]
                for metric, score in self.quality[name].items()
            }
            scores[name] = {
                "nodes": len(part.nodes), **values, "ece_before": part.ece_before,
                "ece_by_chance": part.ece_by_chance,
            }  # fmt: skip
        sizes = {part: len(self.graph.nodes(part)) for part in ("train", "val", "test")}
        types = self.graph.edge_types
        return {
            "graph": self.graph.name,
            "headline": list(self.headline),
            "alerts": [alert.to_dict() for alert in self.alerts],
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "without_leaks": self.without_leaks,
            "backbone": fitted.settings.backbone,
            "objective": model.objective_,
            "effort": model.effort if model.leaderboard_ else None,
            "leaderboard": model.leaderboard_.to_list() if model.leaderboard_ else [],
            "graph_gain": model.graph_gain_.to_dict() if model.graph_gain_ else None,
            "candidates": {name: standing.to_dict() for name, standing in model.standings_.items()},
            "seed": fitted.seed,
            "networks": len(model.networks_),
            "folds": self.folds,
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "best_epochs": model.best_epochs_,
            "monitor": fitted.settings.monitor,
            "seconds": round(fitted.seconds, 3),
            "interrupted": fitted.interrupted,
            "nodes": {"all": self.graph.num_nodes, **sizes},
            "parts": list(self.notes),
            "edge_types": None if types is None else types.relative,
            "quality": scores,
            "measured": {"part": self.judged.name, "labels": len(self.judged.nodes)},
            "delivered": self.delivery.to_dict(),
            "learned": self.learned,
            "caution": self.caution,
            "temperature": self.judged.temperature,
            "disagreements": len(self.disagreements()),
            "slices": [one.to_dict() for one in self.slices],
            "coverage": [one.to_dict() for one in self.coverage],
        }
