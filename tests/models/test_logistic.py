"""Logistic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from everynode.models import logistic
from everynode.models.logistic import STRENGTHS, Logistic


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_that_of_scikit_learn(random_graph, sparse, weighted, classes) -> None:
    graph = random_graph(2, sparse=sparse)
    graph = graph.with_labels(graph.labels % classes, classes=list(range(classes)))
    train = graph.nodes("train")
    class_weight = torch.tensor([2.0, 0.5, 1.0])[:classes] if weighted else None
    x, y = graph.dense_features[train].numpy(), graph.labels[train].numpy()
    length = np.sqrt((x**2).sum(1).mean())
    # For two classes scikit-learn has one vector, the difference of ours, with twice the penalty.
    strength = STRENGTHS[1] * (2 if classes == 2 else 1)
    theirs = LogisticRegression(C=strength, tol=1e-8, max_iter=1000)
    weight = None if class_weight is None else class_weight.numpy()[y]
    theirs.fit(x / length, y, sample_weight=weight)
    ours = Logistic(5, classes).double()
    ours.solve(graph, train, class_weight=class_weight, stage=1)
    expected = theirs.predict_proba(graph.dense_features.numpy() / length)
    np.testing.assert_allclose(ours(graph).softmax(1).numpy(), expected, atol=2e-3)


@pytest.mark.parametrize("limits", [{"MAX_BASIS": 0}, {"MAX_ENTRIES": 0}])
def test_every_way_has_one_solution(random_graph, monkeypatch, limits) -> None:
    graph = random_graph(2, sparse=True)
    expected, model = Logistic(5, 3).double(), Logistic(5, 3).double()
    few = graph.nodes("train")[:4]  # fewer than columns
    expected.solve(graph, few, stage=1)
    for name, value in limits.items():
        monkeypatch.setattr(logistic, name, value)
    model.solve(graph, few, stage=1)
    torch.testing.assert_close(model(graph), expected(graph), rtol=5e-3, atol=5e-3)


def test_the_scale_of_features_does_not_matter(random_graph) -> None:
    graph = random_graph(2)
    larger = graph.with_features(graph.features * 1000)
    one, other = Logistic(5, 3).double(), Logistic(5, 3).double()
    one.solve(graph, graph.nodes("train"))
    other.solve(larger, graph.nodes("train"))
    torch.testing.assert_close(one(graph), other(larger), rtol=1e-4, atol=1e-4)


def test_export_is_the_same(random_graph) -> None:
    graph, model = random_graph(2, weighted=True), Logistic(5, 3, normalize_features=True).double()
    model.solve(graph, graph.nodes("train"))
    model.check_export()
    exported = model.export(graph.dense_features, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(exported, model(graph))


def test_many_rows_and_classes_take_fewer_steps(random_graph, monkeypatch) -> None:
    """With a thousand classes, one fit took minutes."""
    graph = random_graph(2)
    train, taken = graph.nodes("train"), []
    solve = logistic.minimize

    def minimize(*arguments, options, **others):
        taken.append(options["maxiter"])
        return solve(*arguments, options=options, **others)

    monkeypatch.setattr(logistic, "minimize", minimize)
    cells = len(train) * len(graph.labels[train].unique())
    for limit in (logistic.MAX_CELLS, 25 * cells, cells):
        monkeypatch.setattr(logistic, "MAX_CELLS", limit)
        Logistic(5, len(graph.classes)).solve(graph, train)
    assert taken == [logistic.MAX_STEPS, 25, 10]
