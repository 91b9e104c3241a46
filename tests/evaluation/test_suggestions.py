"""Suggestions: what they stand for, their reasons, and the table."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import everynode as en
from everynode.datasets import generate
from everynode.evaluation.suggestions import (
    COLUMNS,
    likely_errors,
    suggest,
    suggestions,
    suggestions_csv,
)
from everynode.graph import Graph


def groups(labels=None, n=30):
    """Three groups of nodes, each with its own feature and its own ring of links."""
    which = np.arange(n) % 3
    random = np.random.default_rng(0)
    edges = np.array([(i, (i + 3) % n) for i in range(n)]).T
    features = np.eye(3)[which] + random.random((n, 3)) * 0.1
    given = np.full(n, -1) if labels is None else labels
    return Graph.from_arrays(features, edges, given, classes=["a", "b", "c"])


def test_from_nothing_each_group_gets_one():
    rows = suggest(groups(), 3)
    assert sorted(row.node % 3 for row in rows) == [0, 1, 2]
    assert [row.stands_for for row in rows] == [10, 10, 10]
    assert rows[0].reason == "stands for 10 similar nodes (33.3 % of all)"
    assert rows[0].predicted is rows[0].probability is None
    assert rows == suggest(groups(), 3)


def test_labeled_groups_need_no_more():
    labels = np.full(30, -1)
    labels[[0, 1]] = 0, 1
    (row,) = suggest(groups(labels), 1)
    assert row.node % 3 == 2
    assert row.stands_for == 10
    assert row.reason.endswith("none of them labeled")


def test_only_the_given_nodes_are_suggested():
    rows = suggest(groups(), 3, nodes=[0, 3, 4])
    assert {row.node for row in rows} == {0, 3, 4}
    mask = np.zeros(30, dtype=bool)
    mask[5] = True
    assert [row.node for row in suggest(groups(), 3, nodes=mask)] == [5]


def test_likely_errors_weigh_more():
    labels = np.full(30, -1)
    labels[[0, 1, 2]] = 0, 1, 2
    graph = groups(labels)
    p = np.tile([0.98, 0.01, 0.01], (30, 1))
    p[graph.labels.numpy() >= 0] = [1, 0, 0]
    p[np.arange(30) % 3 == 1] = [0.4, 0.3, 0.3]
    rows = suggestions(graph, 2, p, graph.classes)
    assert {row.node % 3 for row in rows} == {1}
    assert {(row.predicted, row.probability) for row in rows} == {("a", 0.4)}
    assert "the model is 40 % sure of" in rows[0].reason
    assert likely_errors(p, graph.labels.numpy() < 0)[[0, 1, 3, 4]] == pytest.approx([0, 0, 0.02, 0.6])  # fmt: skip


def test_a_fitted_model_gives_its_classes_and_probabilities():
    graph = generate(200, 600, 8, 4, seed=0)
    labels = graph.labels.clone()
    labels[50:] = -1
    graph = graph.with_labels(labels, graph.classes).with_splits([])
    model = en.NodeClassifier(objective="ce", settings={"epochs": 20}, verbose=False).fit(graph)
    rows = suggest(graph, 5, model=model)
    assert len({row.node for row in rows}) == 5
    p = model.predict_proba(graph)
    for row in rows:
        assert row.node >= 50
        assert row.probability == pytest.approx(p[row.node].max())
        assert row.predicted == model.classes_[p[row.node].argmax()]


def test_doubles_fill_the_batch_and_say_so():
    graph = Graph.from_arrays(np.repeat(np.eye(2), 10, axis=0), np.zeros((2, 0), dtype=int))
    rows = suggest(graph, 4)
    assert [row.reason.split(" ")[0] for row in rows] == ["stands", "stands", "drawn", "drawn"]
    assert "by its columns alone" in rows[0].reason
    assert len({row.node for row in rows}) == 4
    assert len(suggest(graph, 50)) == 20


def test_bad_requests_are_refused():
    with pytest.raises(en.UsageError, match="'count' of suggest must be >= 1"):
        suggest(groups(), 0)
    with pytest.raises(en.UsageError, match="Every node has a label"):
        suggest(groups(np.arange(30) % 3), 2)


def test_the_table_has_an_empty_column_for_the_label():
    rows = suggest(groups(), 2)
    table = list(csv.DictReader(io.StringIO(suggestions_csv(rows, "team"))))
    assert [*table[0]] == ["id", "team", *COLUMNS[2:], "reason"]
    assert [row["team"] for row in table] == ["", ""]
    assert [int(row["id"]) for row in table] == [row.node for row in rows]
