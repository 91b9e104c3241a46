"""Prediction sets and suspicious labels of a fitted classifier, before and after it is saved."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import everynode as en
from everynode import NodeClassifier, Split
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.estimator_decisions import kept_labels
from everynode.evaluation.prediction_sets import neighbor_scores

QUICK = {
    "backbone": "gcn",
    "objective": "ce",
    "settings": {"epochs": 12, "hidden_channels": 8},
    "verbose": False,
}


@pytest.fixture(scope="module")
def graph() -> en.Graph:
    graph = generate(400, 1200, 8, 3, seed=0)
    nodes = torch.arange(400)
    return graph.with_splits([Split(nodes[:200], nodes[:0], nodes[200:])])


@pytest.fixture(scope="module")
def model(graph) -> NodeClassifier:
    return NodeClassifier(cv=2, **QUICK).fit(graph)


def test_sets_of_new_nodes_contain_their_class_as_often_as_promised(graph, model):
    y, test = graph.labels.numpy()[200:], np.arange(200, 400)
    inside = [
        model.predict_set(graph, coverage=0.8, seed=s)[test][np.arange(200), y].mean()
        for s in range(10)
    ]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.07)
    wider = model.predict_set(graph, coverage=0.95)
    assert wider.sum() > model.predict_set(graph, coverage=0.6).sum()


def test_a_node_has_the_same_set_alone_and_among_all(graph, model):
    nodes = np.array([250, 3, 399])
    for options in ({}, {"per_class": True}, {"seed": 2}):
        every = model.predict_set(graph, **options)
        assert np.array_equal(model.predict_set(graph, nodes=nodes, **options), every[nodes])


def test_a_saved_model_gives_the_same_sets_and_suspicious_labels(graph, model, tmp_path):
    model.save(tmp_path)
    again = NodeClassifier.load(tmp_path)
    assert np.array_equal(again.predict_set(graph), model.predict_set(graph))
    assert again.suspicious_labels() == model.suspicious_labels()


def test_every_training_label_was_held_out_once_with_its_own_neighbors(graph, model):
    kept = model.held_out_labels_
    assert sorted(kept.nodes.tolist()) == list(range(200))
    assert torch.equal(kept.labels, graph.labels[kept.nodes])
    first, second = model.networks_
    log_p = torch.log_softmax(first(graph).detach().double(), 1)
    scores = neighbor_scores(graph, torch.softmax(log_p / kept.temperature, 1))
    torch.testing.assert_close(kept.neighbors[:100], scores[kept.nodes[:100]], rtol=1e-4, atol=1e-5)
    del second


def test_flipped_labels_are_suspicious(graph):
    labels = graph.labels.clone()
    labels[:10] = (labels[:10] + 1) % 3
    noisy = en.Graph.from_arrays(
        graph.features.numpy(), graph.edges.numpy(), np.where(np.arange(400) < 200, labels, -1),
        classes=[0, 1, 2],
    )  # fmt: skip
    rows = (
        NodeClassifier(cv=2, **QUICK | {"settings": {"epochs": 40, "hidden_channels": 8}})
        .fit(noisy)
        .suspicious_labels()
    )
    found = [row.node for row in rows]
    assert len(set(found) & set(range(10))) >= 5
    assert all(row.label == labels[row.node] for row in rows)


def test_few_or_no_held_out_labels_are_refused(graph, model):
    few = graph.with_splits([Split(torch.arange(100), torch.arange(100, 105), torch.arange(0))])
    small = NodeClassifier(**QUICK).fit(few)
    with pytest.raises(UsageError, match="needs at least 9 held-out labels, and there are 5"):
        small.predict_set(few)
    assert small.predict_set(few, coverage=0.8).shape == (400, 3)
    small.held_out_labels_ = None
    with pytest.raises(UsageError, match="has no held-out labels"):
        kept_labels(small)


def test_prediction_sets_leave_out_the_neighbors_of_large_graphs():
    """The limit is of nodes, and of nodes times classes."""
    from types import SimpleNamespace

    from everynode.estimator_decisions import MOST_NODES, _is_small

    for nodes, classes, small in [
        (MOST_NODES, 40, True), (MOST_NODES + 1, 2, False), (6000, 1000, False), (6000, 300, True),
    ]:  # fmt: skip
        graph = SimpleNamespace(num_nodes=nodes, classes=tuple(range(classes)))
        assert _is_small(graph) == small
