"""The training of NodeClassifier; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import dataclasses

import pytest

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.estimator_settings import portfolio_options
from everynode.estimator_training import taught_nodes, temperatures, train_classifier

FAST = {"settings": {"epochs": 2, "hidden_channels": 4}, "verbose": False}


@pytest.fixture(scope="module")
def graph():
    return generate(60, 120, 8, 3, seed=0)


def trained(model, graph):
    model._fold = 0
    options = portfolio_options(model, None, ())
    return train_classifier(model, graph, options, seed=0, checkpoint=None)


def test_a_named_model_has_standings_and_no_ensemble(graph):
    result = trained(NodeClassifier("gcn", **FAST), graph)
    assert set(result.standings) == {"ce", "enc", "light-ce", "light-enc"}
    assert (result.ensemble, result.leaderboard, result.interruption) == (None, None, "")


def test_a_single_fold_has_one_temperature(graph):
    result = trained(NodeClassifier("gcn", "ce", **FAST), graph)
    single, average = temperatures(result)
    assert single == average
    assert taught_nodes(result).tolist() == sorted(graph.nodes("train").tolist())


def test_folds_teach_every_label_and_share_their_confidence(graph):
    labels = graph.labels.clone()
    labels[20:] = -1  # the others compare the average with each fold
    bare = dataclasses.replace(graph.with_splits([]), labels=labels)
    result = trained(NodeClassifier("gcn", "ce", cv=3, **FAST), bare)
    single, average = temperatures(result)
    assert len(taught_nodes(result)) == 20
    assert average < single
