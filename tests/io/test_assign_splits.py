"""The graph keeps its own parts, the rest is held out class by class, and messages say so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.errors import DataError, UsageError
from everynode.graph import Graph, Split
from everynode.io.assign_splits import assign_splits


def graph(labels: list[int], splits: list | None = None, classes: int = 2) -> Graph:
    edges = np.zeros((2, 0), dtype=np.int64)
    return Graph.from_arrays(
        np.eye(len(labels)),
        edges,
        labels,
        classes=list(range(classes)),
        splits=splits or [],
        name="mine",
    )


LABELS = [0] * 60 + [1] * 20 + [-1] * 40


def counts(made: Graph) -> dict[str, list[int]]:
    return {
        part: torch.bincount(made.labels[made.nodes(part)], minlength=2).tolist()
        for part in Split._fields
    }


def test_a_fifth_for_the_test_and_a_fifth_of_the_rest_for_validation():
    made, said = assign_splits(graph(LABELS), cv=1)
    assert counts(made) == {"train": [38, 13], "val": [10, 3], "test": [12, 4]}
    everyone = torch.cat(list(made.splits[0]))
    assert sorted(everyone.tolist()) == list(range(80))
    assert said == [
        "16 of the 80 labels are held out for the test (--test-share 0 holds out none).",
        "13 of the 64 training labels are held out for validation, to choose the epoch.",
    ]


def test_the_seed_decides():
    one, again, two = (
        assign_splits(graph(LABELS), seed=seed)[0].splits[0].test for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, two)


def test_few_labels_are_not_tested_on_unless_asked():
    few = graph([0] * 20 + [1] * 20 + [-1] * 9)
    made, said = assign_splits(few)
    assert counts(made)["test"] == [0, 0]
    assert (
        said[0]
        == "With only 40 labels, none are held out for a test (--test-share 0.2 does so anyway)."
    )
    assert counts(assign_splits(few, test_share=0.5)[0])["test"] == [10, 10]


def test_labels_that_a_split_leaves_out_and_classes_that_it_does_not_train_are_said():
    nodes = torch.arange(120)
    _, said = assign_splits(graph(LABELS, [Split(nodes[:30], nodes[50:60], nodes[60:110])]))
    assert said == [
        "The split leaves out 20 of the labeled nodes: they are used neither for training nor for testing.",
        "No training node has class 1: it cannot be learned, and every test node of it will be wrong.",
    ]


def test_no_test_if_asked():
    made, said = assign_splits(graph(LABELS), test_share=0, cv=1)
    assert counts(made) == {"train": [48, 16], "val": [12, 4], "test": [0, 0]}
    assert "as requested" in said[0]


def test_parts_that_are_given_stay():
    nodes = torch.arange(120)
    given = Split(nodes[:30], nodes[30:70], nodes[70:110])
    made, said = assign_splits(graph(LABELS, [given]))
    assert torch.equal(made.splits[0].train, nodes[:30])
    assert torch.equal(made.splits[0].test, nodes[70:80])  # those with a label
    assert said == [
        "No training node has class 1: it cannot be learned, and every test node of it will be wrong."
    ]


def test_of_several_folds_one_is_asked_for():
    nodes = torch.arange(120)
    folds = [
        Split(nodes[:30], nodes[30:50], nodes[50:80]),
        Split(nodes[20:70], nodes[:20], nodes[70:80]),
    ]
    with pytest.raises(
        UsageError,
        match=r"2 folds\. Choose one, 0 to 1 \(fold=0, or --fold 0\), or use none of them \(split='none', or --split none\)\.",
    ):
        assign_splits(graph(LABELS, folds))
    made, _ = assign_splits(graph(LABELS, folds), fold=1)
    assert [len(part) for part in made.splits[0]] == [50, 20, 10]
    with pytest.raises(UsageError, match=r"has folds 0 to 1\. Got fold 2"):
        assign_splits(graph(LABELS, folds), fold=2)
    with pytest.raises(UsageError, match="fold"):
        assign_splits(graph(LABELS), fold=0)


def test_validation_is_held_out_of_the_given_training_nodes():
    nodes = torch.arange(120)
    made, said = assign_splits(graph(LABELS, [Split(nodes[:70], nodes[:0], nodes[70:80])]), cv=1)
    assert counts(made) == {"train": [48, 8], "val": [12, 2], "test": [0, 10]}
    assert said == [
        "14 of the 70 training labels are held out for validation, to choose the epoch."
    ]


def test_few_training_labels_are_left_to_cross_validation_and_many_are_not():
    made, said = assign_splits(graph(LABELS))
    assert counts(made) == {"train": [48, 16], "val": [0, 0], "test": [12, 4]}
    assert said[1].startswith(
        "Cross-validation: each of the 64 training labels is held out once, in 3 folds, to choose settings and epoch"
    )
    assert counts(assign_splits(graph(LABELS), val_share=0.5)[0])["val"] == [24, 8], (
        "a share that is given is held out once"
    )
    nodes = torch.arange(120)
    given = Split(nodes[:30], nodes[30:70], nodes[70:80])
    assert (
        "--cv is not used: the split has validation nodes."
        in assign_splits(graph(LABELS, [given]), cv=3)[1]
    )
    assert "in 2 folds" in assign_splits(graph([0, 0, 1, -1]), cv=5)[1][1], (
        "one label of a class is never held out"
    )
    assert counts(assign_splits(graph([0] * 60 + [1] * 80))[0]) == {
        "train": [39, 51],
        "val": [9, 13],
        "test": [12, 16],
    }


@pytest.mark.parametrize(
    ("make", "options", "error", "text"),
    [
        (lambda: graph(LABELS), {"test_share": 1.0}, UsageError, "'test_share' of fit must be in"),
        (
            lambda: graph(LABELS),
            {"val_share": 0.0},
            UsageError,
            "'val_share' of fit must be between 0 and 1",
        ),
        (lambda: graph(LABELS), {"cv": 0}, UsageError, "'cv' of fit must be >= 1"),
        (
            lambda: graph([0, 0, -1], classes=1),
            {},
            DataError,
            "have 1 class.*two classes are needed",
        ),
        (lambda: graph([0, 1, -1]), {}, DataError, "No node can be held out"),
        (
            lambda: graph(
                LABELS, [Split(*(torch.arange(80, 120), torch.arange(5), torch.arange(0)))]
            ),
            {},
            DataError,
            "in the training part",
        ),
    ],
)
def test_refusals(make, options, error, text):
    with pytest.raises(error, match=text):
        assign_splits(make(), **options)


def test_folds_are_counted_without_drawing_them(monkeypatch):
    """The classifier draws them."""

    def drawn(*_):
        raise AssertionError("drawn twice")

    monkeypatch.setattr("everynode.datasets.splits.cross_validation", drawn)
    assert "in 4 folds" in assign_splits(graph(LABELS), cv=4)[1][1]
    asked = []
    made, said = assign_splits(graph(LABELS), cv=lambda train: asked.append(train) or 5)
    assert "in 5 folds" in said[1]
    assert torch.equal(asked[0], made.splits[0].train)


def test_folds_and_a_share_exclude_each_other():
    with pytest.raises(UsageError, match="--cv 3 holds out every label once, and --val-share"):
        assign_splits(graph(LABELS), cv=3, val_share=0.3)
