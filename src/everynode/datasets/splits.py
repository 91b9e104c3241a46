"""Making splits: so many nodes of each class, shares of each class, and holding some training nodes out for validation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.errors import DataError, require
from everynode.graph import Split

Ints = npt.NDArray[np.int64]

#: With fewer labels than this to learn from, which also choose, each is held out once in so many folds: a fifth of them chooses by chance.
FEW, FOLDS = 100, 3


def random_split(
    labels: Tensor, per_class: int, num_val: int = 500, num_test: int = 1000, *, seed: int = 0
) -> Split:
    """``per_class`` training nodes of each class, then validation and test nodes from the rest; unlabelled nodes are in no part.

    Two exceptions for small graphs. A class keeps one of its nodes out of training if it has two, so that every class can be tested.
    And where fewer than ``num_val + num_test`` nodes remain, they are shared out in that proportion.

    >>> split = random_split(torch.tensor([0, 0, 0, 1, 1, 1, -1]), per_class=1, num_val=1, num_test=2)
    >>> [len(part) for part in split]
    [2, 1, 2]
    """
    require(per_class >= 1, "per_class", "random_split", ">= 1", per_class)
    require(
        num_val >= 0 and num_test >= 0,
        "num_val, num_test",
        "random_split",
        ">= 0",
        (num_val, num_test),
    )
    groups = _shuffled_classes(labels, seed)
    train = np.concatenate([nodes[: max(1, min(per_class, len(nodes) - 1))] for nodes in groups])
    rest = np.setdiff1d(np.concatenate(groups), train)
    rest = np.random.default_rng([seed, 1]).permutation(rest)
    if len(rest) < num_val + num_test:
        num_val = round(len(rest) * num_val / (num_val + num_test))
        num_test = len(rest) - num_val
    return _split(train, rest[:num_val], rest[num_val : num_val + num_test])


def stratified_split(
    labels: Tensor, train: float = 0.6, val: float = 0.2, *, seed: int = 0
) -> Split:
    """Shares of every class for training and validation, the rest for testing; each class has at least one training node.

    >>> split = stratified_split(torch.tensor([0] * 10 + [1] * 20))
    >>> [len(part) for part in split]
    [18, 6, 6]
    """
    require(0 < train < 1, "train", "stratified_split", "between 0 and 1", train)
    require(0 <= val <= 1 - train, "val", "stratified_split", f"between 0 and {1 - train:g}", val)
    groups = _shuffled_classes(labels, seed)
    counts = np.array([len(nodes) for nodes in groups])
    first = _share(round(train * counts.sum()), counts, np.ones_like(counts), counts)
    second = _share(round(val * counts.sum()), counts, np.zeros_like(counts), counts - first)
    cuts = [np.split(nodes, [a, a + b]) for nodes, a, b in zip(groups, first, second, strict=True)]
    return _split(*(np.concatenate(parts) for parts in zip(*cuts, strict=True)))


def hold_out(
    train_nodes: Tensor, labels: Tensor, fraction: float, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Training and validation nodes out of the training nodes, the same share of every class; each class keeps one in training.

    >>> train, val = hold_out(torch.arange(10), torch.tensor([0] * 5 + [1] * 5), 0.2)
    >>> len(train), len(val)
    (8, 2)
    """
    require(0 < fraction < 1, "fraction", "hold_out", "between 0 and 1", fraction)
    train_nodes = train_nodes.cpu()
    groups = _shuffled_classes(labels.cpu()[train_nodes], seed)
    counts = np.array([len(nodes) for nodes in groups])
    if counts.max() < 2:
        raise DataError(_nobody_to_spare(len(groups)))
    held = _share(max(1, round(fraction * counts.sum())), counts, np.zeros_like(counts), counts - 1)
    val = np.concatenate([nodes[:k] for nodes, k in zip(groups, held, strict=True)])
    train = np.concatenate([nodes[k:] for nodes, k in zip(groups, held, strict=True)])
    return train_nodes[torch.from_numpy(train)].sort().values, train_nodes[
        torch.from_numpy(val)
    ].sort().values


def _nobody_to_spare(classes: int) -> str:
    return (
        f"No node can be held out for validation: every class has only one training node, and there are {classes:,} classes. Label more "
        "nodes of each, name another column if these are not classes, or give validation nodes."
    )


def cross_validation(
    train_nodes: Tensor, labels: Tensor, folds: int, seed: int = 0
) -> list[tuple[Tensor, Tensor]]:
    """Training and validation nodes out of the training nodes, ``folds`` times: each is held out once, the classes spread evenly.

    Every class keeps a node in training: one that has no other is never held out. There are fewer folds if fewer nodes can be held out.

    >>> [(len(train), len(val)) for train, val in cross_validation(torch.arange(10), torch.tensor([0] * 5 + [1] * 5), 3)]
    [(6, 4), (7, 3), (7, 3)]
    """
    require(folds >= 2, "folds", "cross_validation", ">= 2", folds)
    train_nodes = train_nodes.cpu()
    groups = _shuffled_classes(labels.cpu()[train_nodes], seed)
    several = [nodes for nodes in groups if len(nodes) > 1]
    if not several:
        raise DataError(_nobody_to_spare(len(groups)))
    dealt = np.concatenate(several)  # like cards: the nodes of a class go to different folds
    made = []
    for fold in range(min(folds, len(dealt))):
        val = np.sort(dealt[fold::folds])
        train = np.setdiff1d(np.concatenate(groups), val)
        made.append(
            (
                train_nodes[torch.from_numpy(train)].sort().values,
                train_nodes[torch.from_numpy(val)].sort().values,
            )
        )
    return made


def validation_parts(
    train_nodes: Tensor, labels: Tensor, *, cv: int | None, fraction: float, seed: int
) -> list[tuple[Tensor, Tensor]]:
    """Training and validation nodes out of the training nodes: in ``cv`` folds, or for ``cv=1`` a ``fraction`` once.

    None: three folds for fewer than 100 nodes, else once.

    >>> [len(validation_parts(torch.arange(n), torch.arange(n) % 2, cv=None, fraction=0.2, seed=0)) for n in (99, 100)]
    [3, 1]
    """
    folds = cv or (FOLDS if len(train_nodes) < FEW else 1)
    return (
        cross_validation(train_nodes, labels, folds, seed)
        if folds > 1
        else [hold_out(train_nodes, labels, fraction, seed)]
    )


def _shuffled_classes(labels: Tensor, seed: int) -> list[Ints]:
    """The nodes of each class that has any, in random order."""
    require(seed >= 0, "seed", "a split", ">= 0", seed)
    codes = labels.cpu().numpy()
    present = np.unique(codes[codes >= 0])
    if not len(present):
        raise DataError("A split needs labels, and no node has one.")
    random = np.random.default_rng([seed, 0])
    return [random.permutation(np.flatnonzero(codes == c)) for c in present]


def _share(total: int, counts: Ints, least: Ints, most: Ints) -> Ints:
    """``total`` shared out in proportion to ``counts`` by largest remainders, within ``least`` and ``most`` (which come first)."""
    quota = total * counts / counts.sum()
    got: Ints = np.clip(np.floor(quota).astype(np.int64), least, most)
    while got.sum() < total and (got < most).any():
        got[np.where(got < most, quota - got, -np.inf).argmax()] += 1
    while (
        got.sum() > total and (got > least).any()
    ):  # those with a minimum took more than their share
        got[np.where(got > least, quota - got, np.inf).argmin()] -= 1
    return got


def _split(*parts: Ints) -> Split:
    return Split(*(torch.from_numpy(np.sort(part)) for part in parts))
