"""Validation nodes for selection: those of the graph, or folds of its training nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from everynode.datasets.splits import validation_parts
from everynode.errors import DataError
from everynode.graph import Graph, Split


def with_validation(
    graph: Graph, *, fold: int = 0, cv: float | None = None, seed: int = 0
) -> tuple[Graph, Sequence[int]]:
    """Return a graph with validation nodes in every fold, and the folds to train on.

    Parameters
    ----------
    graph : Graph
        Its validation nodes are used if ``fold`` has some. Otherwise labels are held out.
    fold : int
        The fold of the graph.
    cv : int or float, optional
        The number of folds of the training nodes, or the share of them to hold out once. None: 3
        folds with fewer than 100 training nodes, else 0.2.
    seed : int
        The seed of the draw.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, folds = with_validation(generate(60, 120, 8, 3).with_splits([]), cv=3)
    >>> list(folds), [len(split.val) for split in graph.splits]
    ([0, 1, 2], [20, 20, 20])
    """
    if graph.splits and len(graph.nodes("val", fold)):
        return graph, (fold,)
    if graph.num_classes < 2:
        raise DataError(
            f"NodeClassifier can't train with {graph.num_classes} class: label nodes of at least "
            "two classes."
        )
    device = graph.labels.device
    train = graph.nodes("train", fold) if graph.splits else (graph.labels >= 0).nonzero()[:, 0]
    test = graph.splits[fold].test if graph.splits else train[:0]
    parts = validation_parts(train, graph.labels, cv=cv, seed=seed)
    splits = [Split(learn.to(device), val.to(device), test) for learn, val in parts]
    return graph.with_splits(splits), range(len(splits))


def with_all_labels(graph: Graph) -> Graph:
    """Return a graph of :func:`with_validation` with one more split that trains on every label.

    It joins the training and validation nodes of the first fold, and holds none out.

    >>> from everynode.datasets import generate
    >>> graph, _ = with_validation(generate(60, 120, 8, 3).with_splits([]), cv=3)
    >>> [len(split.train) for split in with_all_labels(graph).splits]
    [40, 40, 40, 60]
    """
    train, val, test = graph.splits[0]
    every = torch.cat([train, val]).sort().values
    return graph.with_splits([*graph.splits, Split(every, val[:0], test)])


def check_monitor(graph: Graph, folds: Sequence[int], monitor: str) -> None:
    """Refuse to monitor the AUC where the validation nodes of a fold have a single class."""
    if monitor != "auc" or len(folds) < 2:
        return
    if any(len(graph.labels[graph.nodes("val", fold)].unique()) < 2 for fold in folds):
        raise DataError(
            f"One of the {len(folds)} folds has validation nodes of a single class, which have no "
            "AUC: hold out labels once (cv=0.2, or --cv 1), or monitor another metric."
        )
