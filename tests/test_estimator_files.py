"""The model folder of NodeClassifier; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import json

import numpy as np

from everynode import NodeClassifier, Settings
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.estimator_files import load_classifier, save_classifier

SMALL = {"epochs": 3, "hidden_channels": 4}


def test_parameters_and_probabilities_come_back(tmp_path):
    graph = generate(60, 150, 8, 3)
    weights = dict.fromkeys(graph.classes, 2.0)
    model = NodeClassifier(
        "gcn", "ce", settings=SMALL | {"n_estimators": 2}, class_weight=weights, cv=0.3
    ).fit(graph)
    save_classifier(model, tmp_path)
    again = load_classifier(NodeClassifier, tmp_path, None)
    assert np.array_equal(again.predict_proba(graph), model.predict_proba(graph))
    assert (again.cv, again.class_weight, len(again.networks_)) == (0.3, weights, 2)
    assert again.settings["epochs"] == 3
    assert json.loads((tmp_path / "model.json").read_text())["temperature"] == model.temperature_


def test_settings_of_an_object_come_back_as_a_dict(tmp_path):
    model = NodeClassifier("gcn", "ce", settings=Settings(**SMALL)).fit(generate(60, 150, 8, 3))
    save_classifier(model, tmp_path)
    again = load_classifier(NodeClassifier, tmp_path, None)
    assert Settings(**again.settings | {"class_weight": None}) == Settings(**SMALL)


def test_a_portfolio_comes_back_with_its_leaderboard(tmp_path):
    graph = generate(60, 150, 8, 3)
    model = NodeClassifier(effort="quick", settings=SMALL).fit(graph)
    save_classifier(model, tmp_path)
    again = load_classifier(NodeClassifier, tmp_path, "cpu")
    assert np.array_equal(again.predict(graph), model.predict(graph))
    assert again.leaderboard_.to_list() == model.leaderboard_.to_list()
    assert again.objective_ == model.objective_


def test_the_batches_come_back(tmp_path):
    graph, batches = generate(60, 150, 8, 3), Batches(16, (5, 3))
    model = NodeClassifier("gcn", "ce", settings=SMALL, batch_size=batches, cv=2)
    model.fit(graph.with_splits([]))
    save_classifier(model, tmp_path)
    again = load_classifier(NodeClassifier, tmp_path, None)
    assert again.batch_size == batches
    assert [one.batches for one in (again.fitted_, *again._more)] == [batches] * 2
    refitted = again.refit(graph)
    assert refitted.fitted_.batches == batches
    assert np.array_equal(again.predict_proba(graph), model.predict_proba(graph))
