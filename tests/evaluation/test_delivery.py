"""The delivered model: all labels teach it, and no figure is trained on its own answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.delivery import delivery, sentence
from everynode.evaluation.fit_summary import FitSummary
from everynode.io.assign_splits import assign_splits

FAST = {"objective": "ce", "settings": {"epochs": 30, "hidden_channels": 8}, "verbose": False}


@pytest.fixture(scope="module")
def fits(tables):
    """The same fit without and with a refit."""
    graph, notes = assign_splits(en.read(*tables("clean")), seed=0)
    model = NodeClassifier(**FAST).fit(graph)
    delivered = model.refit(graph)
    return FitSummary.of(model, graph, notes), FitSummary.of(model, graph, notes, delivered)


def test_figures_and_held_out_rows_are_those_of_the_measured_model(fits):
    plain, fit = fits
    assert fit.quality == plain.quality
    part = np.array(fit.predictions.part)
    held_out = np.isin(part, ("val", "test"))
    same = fit.predictions.probabilities == plain.predictions.probabilities
    assert np.allclose(
        fit.predictions.probabilities[held_out], plain.predictions.probabilities[held_out]
    )
    assert not same[part == ""].any()
    test = part == "test"
    right = (fit.predictions.predicted == fit.predictions.labels)[test].mean()
    assert fit.quality["test"]["accuracy"].value == pytest.approx(right)


def test_it_says_which_labels_measured_and_which_taught(fits):
    plain, fit = fits
    labels = int((fit.graph.labels >= 0).sum())
    test, train = len(fit.graph.nodes("test")), len(fit.graph.nodes("train"))
    assert sentence(fit) == (
        f"Quality is measured on {test} test labels with a model that did not see them. The "
        f"delivered model then learned from all {labels} labels."
    )
    assert f"The model learned from {train} labels, and not from these." in sentence(plain)
    stored = json.loads(json.dumps(fit.to_dict()))
    assert stored["measured"] == {"part": "test", "labels": test}
    assert (stored["delivered"]["labels"], stored["delivered"]["refitted"]) == (labels, True)
    assert stored["learned"] == sentence(fit)
    low, high = delivery(fit).accuracy[1:]
    assert low < fit.judged_accuracy.value < high  # the table is easy for both
    assert not delivery(plain).refitted


def test_without_a_test_part_every_label_taught_and_judged(tables):
    graph = en.read(*tables("clean"))
    graph, _ = assign_splits(graph, seed=0, test_share=0.0, cv=3)
    fit = FitSummary.of(NodeClassifier(**FAST, cv=3).fit(graph), graph)
    labels = int((graph.labels >= 0).sum())
    assert delivery(fit).labels == labels
    assert f"The delivered model learned from all {labels} labels." in sentence(fit)
