"""Assign training, validation and test nodes to a user's graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from everynode.datasets.splits import HELD_OUT, default_cv, hold_out, possible_folds
from everynode.errors import DataError, UsageError, require
from everynode.graph import Graph, Split

#: The default share of test labels, and the number of labels below which none are held out.
TEST_SHARE, MIN_LABELS_TO_TEST = 0.2, 50


def assign_splits(
    graph: Graph,
    *,
    fold: int | None = None,
    test_share: float | None = None,
    val_share: float | None = None,
    cv: int | Callable[[torch.Tensor], int] | None = None,
    seed: int = 0,
) -> tuple[Graph, list[str]]:
    """Give a graph one split: its own parts, with held-out labels for missing parts.

    Every class keeps at least one training node.

    Parameters
    ----------
    graph : Graph
        The graph, with or without splits.
    fold : int, optional
        The fold to use. Required for a graph with several.
    test_share : float, optional
        The share of labels to hold out for the test, if the graph has no split. Default: 0.2 with
        50 labels or more, else 0.
    val_share : float, optional
        The share of training labels to hold out for validation, if the split has no validation
        nodes. Default: 0.2.
    cv : int or callable, optional
        The number of folds for cross-validation, or a function that returns it for the training
        nodes. With 2 or more, no validation labels are held out here, because the classifier holds
        out folds. Default: 3 with few labels and no ``val_share``.
    seed : int
        The seed of the random choice.

    Returns
    -------
    graph : Graph
        The graph with one split.
    messages : list of str
        Sentences that describe how the labels were divided.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, messages = assign_splits(generate(200, 600, 8, 4).with_splits([]))
    >>> [len(part) for part in graph.splits[0]]
    [128, 32, 40]
    """
    _check_arguments(graph, test_share, val_share, None if callable(cv) else cv)
    messages: list[str] = []
    if graph.splits or fold is not None:
        train, val, test = _own_split(graph, fold, messages)
    else:
        train, test = _hold_out_test(graph, test_share, seed, messages)
        val = torch.arange(0)
    if len(val) and isinstance(cv, int):
        messages.append("--cv is not used: the split has validation nodes.")
    if not len(val):
        folds = cv(train) if callable(cv) else cv
        train, val = _hold_out_validation(graph, train, val_share, folds, seed, messages)
    trained = graph.labels[train].unique()
    unseen = [
        str(name)
        for code, name in enumerate(graph.classes)
        if code not in trained and code in graph.labels
    ]
    if unseen:
        messages.append(
            f"No training node has class {', '.join(unseen)}: it cannot be learned, and every test "
            "node of it will be wrong."
        )
    return graph.with_splits([Split(train, val, test)]), messages


def _check_arguments(
    graph: Graph, test_share: float | None, val_share: float | None, cv: int | None
) -> None:
    """Refuse shares outside their range, and a graph with fewer than two classes."""
    is_share = test_share is None or 0 <= test_share < 1
    require(is_share, "test_share", "fit", f"in [0, 1){_percent_hint(test_share)}", test_share)
    is_share = val_share is None or 0 < val_share < 1
    require(is_share, "val_share", "fit", f"between 0 and 1{_percent_hint(val_share)}", val_share)
    require(cv is None or cv >= 1, "cv", "fit", ">= 1", cv)
    if val_share is not None and (cv or 1) > 1:
        raise UsageError(
            f"--cv {cv} holds out every label once, and --val-share a part of them: give only one "
            "of the two."
        )
    if graph.num_classes < 2:
        classes = "1 class" if graph.num_classes else "no class"
        raise DataError(
            f"The labels of {graph.name!r} have {classes}. At least two classes are needed."
        )


def _own_split(graph: Graph, fold: int | None, messages: list[str]) -> tuple[torch.Tensor, ...]:
    """Return the labeled nodes of each part of the graph's own split."""
    if not graph.splits:
        raise UsageError(f"Graph {graph.name!r} has no split, so there is no fold {fold}.")
    if fold is None and len(graph.splits) > 1:
        raise UsageError(
            f"Graph {graph.name!r} has {len(graph.splits)} folds. Choose one, 0 to "
            f"{len(graph.splits) - 1} (fold=0, or --fold 0), or use none of them (split='none', or "
            "--split none)."
        )
    train, val, test = (graph.nodes(part, fold or 0).cpu() for part in Split._fields)
    if not len(train):
        raise DataError(
            f"No labeled node of {graph.name!r} is in the training part. Write 'train' into the "
            "split column of some."
        )
    left_over = int((graph.labels >= 0).sum()) - len(train) - len(val) - len(test)
    if left_over > 0:
        messages.append(
            f"The split leaves out {left_over} of the labeled nodes: they are used neither for "
            "training nor for testing."
        )
    if not len(test):
        messages.append(
            "The split has no labeled test node: the accuracy on new nodes is not measured."
        )
    return train, val, test


def _hold_out_test(
    graph: Graph, test_share: float | None, seed: int, messages: list[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide all labeled nodes into training and test nodes."""
    labeled = (graph.labels >= 0).nonzero()[:, 0].cpu()
    if test_share is None and len(labeled) < MIN_LABELS_TO_TEST:
        messages.append(
            f"With only {len(labeled)} labels, none are held out for a test (--test-share 0.2 "
            "does so anyway)."
        )
        return labeled, torch.arange(0)
    if test_share == 0:
        messages.append(
            "No label is held out for a test, as requested: the accuracy on new nodes is not "
            "measured."
        )
        return labeled, torch.arange(0)
    share = TEST_SHARE if test_share is None else test_share
    train, test = hold_out(labeled, graph.labels, share, seed)
    messages.append(
        f"{len(test)} of the {len(labeled)} labels are held out for the test (--test-share 0 "
        "holds out none)."
    )
    return train, test


def _hold_out_validation(
    graph: Graph,
    train: torch.Tensor,
    val_share: float | None,
    cv: int | None,
    seed: int,
    messages: list[str],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide the training nodes into training and validation nodes, unless there are folds."""
    folds = cv or (1 if val_share is not None else default_cv(len(train)))
    if folds > 1:
        count = possible_folds(train, graph.labels, int(folds))
        messages.append(
            f"Cross-validation: each of the {len(train)} training labels is held out once, in "
            f"{count} folds, to choose settings and epoch. The networks of the folds are averaged "
            "(--cv 1 holds out some labels once)."
        )
        return train, torch.arange(0)
    fewer, val = hold_out(train, graph.labels, val_share or HELD_OUT, seed)
    messages.append(
        f"{len(val)} of the {len(train)} training labels are held out for validation, to choose "
        "the epoch."
    )
    return fewer, val


def _percent_hint(share: float | None) -> str:
    """Return a hint that converts a percentage to a share, as the end of a message.

    >>> _percent_hint(20.0)
    ': 20 % is 0.2'
    """
    return f": {share:g} % is {share / 100:g}" if share is not None and 1 <= share < 100 else ""
