"""Validation nodes: those of the graph, or folds of the training nodes."""

from __future__ import annotations

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import DataError
from everynode.graph import Graph, Split
from everynode.selection.cross_validation import check_monitor, with_all_labels, with_validation


@pytest.fixture(scope="module")
def graph():
    return generate(90, 200, features=6, classes=3)


def test_the_validation_nodes_of_a_graph_are_used(graph):
    assert with_validation(graph, cv=5) == (graph, (0,))


@pytest.mark.parametrize("cv", [2, 3, 5])
def test_every_training_node_is_held_out_once(graph, cv):
    none = torch.arange(0)
    bare = graph.with_splits([Split(torch.arange(60), none, torch.arange(60, 90))])
    folded, folds = with_validation(bare, cv=cv, seed=1)
    assert list(folds) == list(range(cv))
    held = torch.cat([split.val for split in folded.splits])
    assert sorted(held.tolist()) == list(range(60))
    for split in folded.splits:
        assert sorted([*split.train.tolist(), *split.val.tolist()]) == list(range(60))
        assert torch.equal(split.test, torch.arange(60, 90))


def test_a_fraction_is_held_out_once(graph):
    once, folds = with_validation(graph.with_splits([]), cv=0.2)
    assert list(folds) == [0]
    assert [len(part) for part in once.splits[0]] == [72, 18, 0]


def test_one_class_is_refused():
    alike = Graph.from_arrays(torch.rand(9, 2), torch.zeros(2, 0, dtype=torch.int64), [0] * 9)
    with pytest.raises(DataError, match="at least two classes"):
        with_validation(alike)


def test_an_auc_needs_two_classes_in_every_fold(graph):
    zeros = (graph.labels == 0).nonzero()[:, 0]
    rest = (graph.labels > 0).nonzero()[:, 0]
    none = torch.arange(0)
    two = graph.with_splits([Split(rest, zeros, none), Split(zeros, rest, none)])
    with pytest.raises(DataError, match="no AUC: hold out labels once"):
        check_monitor(two, (0, 1), "auc")
    check_monitor(two, (0, 1), "accuracy")
    check_monitor(two, (0,), "auc")


def test_one_more_split_trains_on_every_label(graph):
    bare = graph.with_splits([Split(torch.arange(60), torch.arange(0), torch.arange(60, 90))])
    folded, folds = with_validation(bare, cv=4)
    last = with_all_labels(folded).splits[len(folds)]
    assert [part.tolist() for part in last] == [list(range(60)), [], list(range(60, 90))]
