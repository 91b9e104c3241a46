"""Boosting: the tables of the trees give what scikit-learn gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.boosting import MAX_COLUMNS, ROUNDS, Boosting


def make(classes: int = 3, columns: int = 6, n: int = 200) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, columns)).astype(np.float32)
    y = ((x[:, 0] > 0).astype(int) + (x[:, 1] * x[:, 2] > 0.3)) % classes
    edges = rng.integers(0, n, (2, 3 * n))
    return Graph.from_arrays(x, edges, y, splits=[np.split(np.arange(n), [100, 150])])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("stage", [0, len(ROUNDS) - 1])
def test_the_tables_are_the_trees_of_scikit_learn(classes: int, stage: int) -> None:
    graph, model = make(classes), Boosting(6, classes)
    model.solve(graph, graph.nodes("train"), stage=stage)
    columns = model._columns(graph)
    staged = list(model._booster.staged_decision_function(columns))[ROUNDS[stage] - 1]
    logits = model(graph).double().numpy()
    if classes == 2:
        np.testing.assert_allclose(logits[:, 1] - logits[:, 0], staged.ravel(), atol=1e-5)
    else:
        np.testing.assert_allclose(logits, staged, atol=1e-5)
    assert model(graph, torch.arange(5)).shape == (5, classes)


def test_wide_features_are_reduced_once() -> None:
    graph, model = make(columns=100), Boosting(100, 3)
    model.solve(graph, graph.nodes("train"))
    assert model.projection.shape == (100, MAX_COLUMNS)
    assert model(graph).shape == (200, 3)


def test_it_learns_and_forgets_its_booster() -> None:
    graph, model = make(), Boosting(6, 3)
    model.solve(graph, graph.nodes("train"), stage=2)
    test = graph.nodes("test")
    assert float((model(graph)[test].argmax(1) == graph.labels[test]).float().mean()) > 0.7
    twin = copy.deepcopy(model)
    assert twin._booster is None
    model.clear_cache()
    assert model._booster is None
    torch.testing.assert_close(twin(graph), model(graph), rtol=0, atol=0)


def test_export_is_refused() -> None:
    with pytest.raises(UsageError, match="Boosting cannot be exported"):
        Boosting(6, 3).check_export()
