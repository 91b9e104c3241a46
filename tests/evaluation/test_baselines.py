"""Baselines: the majority, and the candidates of the race by what they use."""

from __future__ import annotations

import pytest

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.baselines import is_uneven
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.intervals import wilson
from everynode.io.assign_splits import assign_splits


def test_the_majority_is_that_of_the_training_labels_on_the_test_nodes(fit_of):
    fit = fit_of("rare")
    (baseline,) = fit.baselines
    assert baseline.name == "always 'no'"
    right = int((fit.judged.labels == 0).sum())
    assert baseline.accuracy == wilson(right, len(fit.judged.labels))
    assert baseline.part == "test"


def test_uneven_classes_are_those_with_a_large_majority(fit_of):
    assert is_uneven(fit_of("rare"))
    assert not is_uneven(fit_of("clean"))


def test_the_portfolio_gives_columns_links_and_both(tables):
    graph, notes = assign_splits(en.read(*tables("clean", 120)), cv=2, seed=0)
    model = NodeClassifier(effort="quick", verbose=False, n_jobs=1).fit(graph)
    fit = FitSummary.of(model, graph, notes)
    names = [baseline.name for baseline in fit.baselines]
    assert names[0].startswith("always ")
    assert names[1:] == ["columns only", "links only", "columns and links"]
    for baseline, kind in zip(fit.baselines[1:], ("features", "graph", "both"), strict=True):
        assert baseline.accuracy.value == pytest.approx(model.graph_gain_.accuracy[kind])
        assert baseline.accuracy.low < baseline.accuracy.value < baseline.accuracy.high
        assert baseline.nodes == model.graph_gain_.nodes
