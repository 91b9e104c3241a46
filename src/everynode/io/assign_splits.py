"""Training, validation and test nodes for people's own graphs: theirs where they gave some, held out of the labels where not."""

from __future__ import annotations

import torch

from everynode.datasets.splits import hold_out, validation_parts
from everynode.errors import DataError, UsageError, require
from everynode.graph import Graph, Split

#: The share of the labels that is put aside for a test unless told otherwise; of fewer labels than this none are: they would be
#: missed in training, and test little.
TEST_SHARE, ENOUGH_TO_TEST = 0.2, 50
#: The share of the training labels that is held out once, where that is done.
VAL_SHARE = 0.2


def assign_splits(
    graph: Graph,
    *,
    fold: int | None = None,
    test_share: float | None = None,
    val_share: float | None = None,
    cv: int | None = None,
    seed: int = 0,
) -> tuple[Graph, list[str]]:
    """The graph with one split, and how its labels were shared out, in sentences.

    Parts that the graph brings stay; of several folds ``fold`` says which. Without any, ``test_share`` of the labels of every class is
    put aside for the test (0: none; None: a fifth, if there are enough labels), and ``val_share`` of what then remains (a fifth) to choose
    the epoch by; each class keeps at least one node in training. With ``cv`` folds (None: three, if there are few labels and no
    ``val_share`` is given) nothing is held out here: the classifier does it in turn.

    >>> from everynode.datasets import generate
    >>> graph, said = assign_splits(generate(200, 600, 8, 4).with_splits([]))
    >>> [len(part) for part in graph.splits[0]]
    [128, 32, 40]
    """
    require(
        test_share is None or 0 <= test_share < 1,
        "test_share",
        "fit",
        f"in [0, 1){_of_percent(test_share)}",
        test_share,
    )
    require(
        val_share is None or 0 < val_share < 1,
        "val_share",
        "fit",
        f"between 0 and 1{_of_percent(val_share)}",
        val_share,
    )
    require(cv is None or cv >= 1, "cv", "fit", ">= 1", cv)
    if graph.num_classes < 2:
        raise DataError(
            f"The labels of {graph.name!r} are of {graph.num_classes} class(es): nothing to tell apart; label two at least."
        )
    if fold is None and len(graph.splits) > 1:
        raise UsageError(
            f"Graph {graph.name!r} has {len(graph.splits)} folds: choose one, 0 to {len(graph.splits) - 1} (fold=0, or --fold 0), "
            "or none of them (split='none', or --split none)."
        )
    if fold is not None and not graph.splits:
        raise UsageError(
            f"Graph {graph.name!r} has no split, and so no fold {fold}: leave out the fold."
        )
    said: list[str] = []
    if graph.splits:
        train, val, test = (graph.nodes(part, fold or 0).cpu() for part in Split._fields)
        if not len(train):
            raise DataError(
                f"No labelled node of {graph.name!r} is in the training part: write 'train' into the split column of some."
            )
        alone = int((graph.labels >= 0).sum()) - len(train) - len(val) - len(test)
        if alone > 0:
            said.append(
                f"The split has no part for {alone} of the labelled nodes: they are neither learned from nor tested."
            )
        if not len(test):
            said.append(
                "The split has no labelled test node: how good the model is on new nodes is measured nowhere."
            )
    else:
        train, val, test = (
            (graph.labels >= 0).nonzero()[:, 0].cpu(),
            torch.arange(0),
            torch.arange(0),
        )
        whole = len(train)
        if test_share is None and whole < ENOUGH_TO_TEST:
            said.append(
                f"With only {whole} labels none is put aside for a test (--test-share 0.2 does it all the same)."
            )
        elif test_share == 0:
            said.append(
                "No label is put aside for a test, as asked: how good the model is on new nodes is measured nowhere."
            )
        else:
            train, test = hold_out(
                train, graph.labels, TEST_SHARE if test_share is None else test_share, seed
            )
            said.append(
                f"{len(test)} of the {whole} labels are put aside for the test (--test-share 0 trains on them instead)."
            )
    if len(val) and cv:
        said.append("--cv is not used: the split has validation nodes.")
    if not len(val):
        whole = len(train)
        once = cv or (None if val_share is None else 1)
        parts = validation_parts(
            train, graph.labels, cv=once, fraction=val_share or VAL_SHARE, seed=seed
        )
        if len(parts) > 1:
            said.append(
                f"Each of the {whole} training labels is held out once, in {len(parts)} folds, to choose settings and epoch by "
                "(validation); the folds' networks are averaged (--cv 1 holds out some labels, once)."
            )
        else:
            ((train, val),) = parts
            said.append(
                f"{len(val)} of the {whole} training labels are held out to choose the epoch by (validation)."
            )
    learned = graph.labels[train].unique()
    unseen = [
        str(name)
        for code, name in enumerate(graph.classes)
        if code not in learned and code in graph.labels
    ]
    if unseen:
        said.append(
            f"No training node is of class {', '.join(unseen)}: it cannot be learned, and is wrong wherever it is tested."
        )
    return graph.with_splits([Split(train, val, test)]), said


def _of_percent(share: float | None) -> str:
    """What a share would be that was given in percent.

    >>> _of_percent(20.0)
    ': 20 % is 0.2'
    """
    return f": {share:g} % is {share / 100:g}" if share is not None and 1 <= share < 100 else ""
