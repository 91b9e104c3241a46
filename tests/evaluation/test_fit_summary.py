"""The evaluation of a fit: nodes to review, the map, and out-of-fold scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from everynode.datasets import generate
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.graph import Graph
from everynode.io.assign_splits import assign_splits

QUICK = {
    "objective": "mi+tv",
    "settings": {"epochs": 30, "hidden_channels": 8},
    "verbose": False,
}


def graph_of(n: int) -> Graph:
    """Three classes, half of the labels missing."""
    whole = generate(n, 3 * n, 8, 3, noise=1.0, seed=0)
    hidden = np.random.default_rng(0).random(n) < 0.5
    labels = np.where(hidden, None, whole.labels.numpy().astype(object))
    edges = whole.to_pyg().edge_index.numpy()
    return Graph.from_arrays(whole.dense_features.numpy(), edges, labels)


@pytest.fixture(scope="module")
def fit() -> FitSummary:
    graph, notes = assign_splits(graph_of(200))
    return FitSummary.of(NodeClassifier(**QUICK).fit(graph), graph, notes)


@pytest.fixture(scope="module")
def folds() -> FitSummary:
    """A fit with few labels: three folds, no test part, no temperature."""
    graph, notes = assign_splits(graph_of(90), test_share=0)
    model = NodeClassifier(**QUICK).fit(graph)
    model.temperature_ = 1.0  # as with --no-calibrate
    return FitSummary.of(model, graph, notes)


def test_uncertain_nodes_and_disagreements_are_those_of_the_predictions(fit):
    found = fit.predictions
    uncertain = fit.uncertain(10)
    unlabeled = [i for i, name in enumerate(found.label_names) if name is None]
    assert all(i in unlabeled for i in uncertain)
    assert found.probability[uncertain].max() <= np.sort(found.probability[unlabeled])[10]
    wrong = [
        i
        for i in range(200)
        if found.label_names[i] is not None
        and found.classes[found.predicted[i]] != found.label_names[i]
    ]
    assert sorted(fit.disagreements().tolist()) == wrong
    assert (np.diff(found.probability[fit.disagreements()]) <= 0).all()


def test_the_map_is_deterministic_and_of_a_sample(fit, monkeypatch):
    nodes, places = fit.map()
    assert nodes.tolist() == list(range(200))
    assert np.isfinite(places).all()
    assert (fit.map()[1] == places).all()
    monkeypatch.setattr("everynode.evaluation.node_map.MAP_NODES", 50)
    some = fit.map()[0]
    assert len(some) == len(set(some.tolist())) == 50
    assert (fit.map()[0] == some).all()


def test_validation_is_out_of_fold(folds):
    truth = folds.graph.labels[folds.model.held_out_.nodes]
    right = (folds.model.held_out_.log_probabilities.argmax(1) == truth).double().mean().item()
    assert folds.folds == 3
    assert folds.quality["validation"]["accuracy"].value == pytest.approx(right)
    assert len(folds.parts["validation"].nodes) == len(folds.graph.nodes("train"))
    assert list(folds.reliability()) == [""]
    assert "too good for new nodes" in folds.caution


def test_the_counts_of_the_classes_are_those_of_the_confusion_matrix(fit):
    table, rows = np.array(fit.confusion()), fit.class_counts()
    assert table.sum() == len(fit.judged.nodes)
    assert [row.right for row in rows] == table.diagonal().tolist()
    assert [row.true for row in rows] == table.sum(1).tolist()
    assert [row.called for row in rows] == table.sum(0).tolist()
    assert sum(row.predicted for row in rows) == fit.graph.num_nodes
    assert sum(row.train for row in rows) == len(fit.graph.nodes("train"))


def test_the_summary_is_plain_json(fit, folds):
    for one in (fit, folds):
        text = json.dumps(one.to_dict(), allow_nan=False)
        assert json.loads(text)["nodes"]["all"] == one.graph.num_nodes
    assert list(fit.quality) == ["test", "validation"]
    assert list(fit.reliability()) == ["before", "after"]
    low, high = (100 * end for end in fit.quality["test"]["accuracy"][1:])
    assert f"Expect {low:.1f} to {high:.1f}% of similar new nodes to be right" in fit.caution
