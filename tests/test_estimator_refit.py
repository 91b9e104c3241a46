"""NodeClassifier.refit: which graphs it takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.errors import UsageError

FAST = {"settings": {"epochs": 2, "hidden_channels": 4}, "verbose": False}


@pytest.fixture(scope="module")
def graph():
    return generate(60, 120, 8, 3, seed=0)


def test_another_graph_is_refused(graph):
    model = NodeClassifier("gcn", "ce", **FAST).fit(graph)
    with pytest.raises(UsageError, match="other classes"):
        model.refit(generate(60, 120, 8, 2))
    with pytest.raises(UsageError, match="Got a list"):
        model.refit([1, 2])
    with pytest.raises(NotFittedError):
        NodeClassifier("gcn", "ce", **FAST).refit(graph)


def test_some_nodes_are_predicted_as_among_all(graph):
    model = NodeClassifier("gcn", "ce", **FAST).fit(graph)
    nodes = [5, 3, 40]
    assert np.array_equal(model.predict(graph, nodes=nodes), model.predict(graph)[nodes])
    mask = np.arange(60) < 7
    probabilities = model.predict_proba(graph)
    assert model.predict_proba(graph, nodes=mask) == pytest.approx(probabilities[:7])
    with pytest.raises(UsageError, match="mask of nodes"):
        model.predict(graph, nodes=mask[:9])
