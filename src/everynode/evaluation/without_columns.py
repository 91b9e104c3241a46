"""The score of a quick fit without some columns, such as leaking ones."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from everynode.evaluation.intervals import Score
from everynode.graph.structural_features import structural_features

if TYPE_CHECKING:
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.graph import Graph

#: The parameters of the quick fit, where the classifier has them.
QUICK: dict[str, Any] = {
    "backbone": "auto", "objective": "auto", "effort": "quick", "time_limit": None,
    "verbose": False,
}  # fmt: skip
#: The settings that the quick fit keeps.
KEPT = ("monitor", "class_weight")


def feature_positions(graph: Graph, columns: Collection[str]) -> np.ndarray:
    """Return the positions of the features that come from some columns."""
    encoder = graph.feature_encoder
    if encoder is None:
        return np.zeros(0, np.int64)
    names = [""] * encoder.matrix
    names += [column.name for column in encoder.columns for _ in column.feature_names]
    return np.flatnonzero([name in columns for name in names])


def drop_columns(graph: Graph, columns: Collection[str]) -> Graph:
    """Return the graph without the features of some columns.

    If no feature is left, structural features take their place.
    """
    from everynode.datasets.findings import feature_rows

    keep = np.setdiff1d(np.arange(graph.num_features), feature_positions(graph, columns))
    if not len(keep):
        pairs = graph.undirected_edges[0].cpu().numpy()
        return graph.with_features(structural_features(pairs, graph.num_nodes))
    return graph.with_features(feature_rows(graph)[:, keep])


def score_without(fit: FitSummary, columns: Collection[str]) -> Score:
    """Return the accuracy of a quick fit without some columns, on the same nodes."""
    given = fit.model.get_params(deep=False)
    settings = given.get("settings")
    kept = {
        name: settings[name] for name in KEPT if isinstance(settings, dict) and name in settings
    }
    changes = {name: value for name, value in QUICK.items() if name in given}
    model = clone(fit.model).set_params(**changes, settings=kept or None)
    graph = drop_columns(fit.graph, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(graph)
    return type(fit).of(model, graph).judged_accuracy
