"""Learned weights of types of link: what helps weighs more, and noise changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import everynode as en
from everynode.errors import DataError, UsageError
from everynode.evaluation import edge_type_weights
from everynode.evaluation.edge_type_weights import _Judge, learn_edge_types
from everynode.graph import Graph


def linked(n: int = 240, *, informative: bool = True, seed: int = 0) -> Graph:
    """Nodes of three classes with weak features; colleagues share a class, neighbors do not."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    pairs, kinds = [], []
    for a in range(n):
        same = np.flatnonzero(y == y[a]) if informative else np.arange(n)
        pairs += [(a, int(b)) for b in random.choice(same, 2)]
        pairs += [(a, int(b)) for b in random.choice(n, 4)]
        kinds += ["colleague"] * 2 + ["neighbor"] * 4
    features = random.normal(size=(n, 6)) + 0.6 * np.eye(3, 6)[y]
    return Graph.from_arrays(features, np.array(pairs).T, y, classes=["a", "b", "c"], edge_type=kinds)  # fmt: skip


def test_the_type_that_joins_a_class_weighs_more():
    graph = linked()
    found = learn_edge_types(graph, torch.arange(0, 240, 2))
    weights = found.graph.edge_types.relative
    assert weights["colleague"] == 1.0
    assert weights["neighbor"] <= 0.3
    assert found.learned < found.equal
    assert "chosen on 120 held-out labels" in found.sentence
    assert float(found.graph.weights.mean()) == pytest.approx(1.0, rel=1e-5)


def test_types_without_a_difference_weigh_the_same():
    found = learn_edge_types(linked(informative=False), torch.arange(240))
    assert set(found.graph.edge_types.relative.values()) == {1.0}
    assert found.sentence.startswith("Types of link weigh the same: no other weights")
    few = learn_edge_types(linked(), torch.arange(12))
    assert set(few.graph.edge_types.relative.values()) == {1.0}
    assert "12 labels are too few" in few.sentence


def test_the_labels_of_other_nodes_play_no_part():
    graph, nodes = linked(), torch.arange(0, 240, 2)
    labels = graph.labels.clone()
    labels[1::2] = torch.randint(0, 3, (120,), generator=torch.Generator().manual_seed(1))
    other = graph.with_labels(labels)
    one, two = learn_edge_types(graph, nodes), learn_edge_types(other, nodes)
    assert one.graph.edge_types.weights == two.graph.edge_types.weights


def test_the_operator_of_the_judge_is_that_of_the_graph():
    graph = linked(60)
    judge = _Judge(graph, np.arange(60), 0)
    weights = {"colleague": 1.0, "neighbor": 0.3}
    mean = float(graph.edge_types.edge_weights(weights).mean())
    scaled = graph.with_edge_type_weights({name: s / mean for name, s in weights.items()})
    expected = scaled.gcn_operator.to_dense().numpy()
    assert np.allclose(judge._operator(weights).toarray(), expected, atol=1e-5)


def test_a_classifier_learns_saves_and_needs_the_types(tmp_path):
    graph = linked()
    split = [(np.arange(0, 240, 2), [], np.arange(1, 240, 2))]
    graph = graph.with_splits(split)
    settings = {"epochs": 30, "hidden_channels": 16}
    model = en.NodeClassifier("gcn", "ce", settings=settings, verbose=False).fit(graph)
    assert model.edge_types_["neighbor"] < model.edge_types_["colleague"]
    p = model.predict_proba(graph)  # without weights: the model's are taken
    assert np.allclose(p, model.predict_proba(graph.with_edge_type_weights(model.edge_types_)))
    model.save(tmp_path / "model")
    loaded = en.NodeClassifier.load(tmp_path / "model")
    assert loaded.edge_types_ == model.edge_types_
    assert np.allclose(loaded.predict_proba(graph), p)
    plain = Graph.from_arrays(graph.features.numpy(), graph.edges, graph.labels)
    with pytest.raises(UsageError, match="the model weighs them"):
        loaded.predict(plain)
    refitted = model.refit(graph)
    assert refitted.edge_types_ == model.edge_types_
    one_type = Graph.from_arrays(np.ones((2, 1)), [[0], [1]], [0, 1], edge_type=["a"])
    with pytest.raises(DataError, match="one value only"):
        learn_edge_types(one_type, torch.arange(2))
    assert edge_type_weights.GRID[0] == 1.0
