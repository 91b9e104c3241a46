"""The score without leaking columns is that of a table without them."""

from __future__ import annotations

import numpy as np

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.without_columns import drop_columns, feature_positions, score_without
from everynode.io.assign_splits import assign_splits


def test_the_features_of_a_column_are_dropped(tables):
    graph = en.read(*tables("leak"))
    names = graph.feature_encoder.feature_names
    positions = feature_positions(graph, {"stage"})
    assert [names[i] for i in positions] == [n for n in names if n.startswith("stage")]
    left = drop_columns(graph, {"stage"})
    assert left.num_features == graph.num_features - len(positions)
    kept = np.setdiff1d(np.arange(graph.num_features), positions)
    assert np.allclose(left.dense_features.numpy(), graph.dense_features.numpy()[:, kept])


def test_without_any_feature_those_of_the_structure_remain(tables):
    graph = en.read(*tables("leak"), features="stage")
    assert drop_columns(graph, {"stage"}).num_features > 0


def test_the_number_without_the_leak_is_near_the_truth(tables):
    """With the copy all are right; without it, one column with overlap and the links remain."""
    graph, notes = assign_splits(en.read(*tables("leak")), seed=0)
    model = NodeClassifier(effort="quick", n_jobs=1, verbose=False).fit(graph)
    fit = FitSummary.of(model, graph, notes)
    assert fit.judged_accuracy.value > 0.97
    without = score_without(fit, {"stage"})
    assert 0.6 < without.value < 0.95
    assert without.low < without.value < without.high
