"""Random splits: by nodes per class, by share of each class, hold-out and cross-validation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.errors import DataError, require
from everynode.graph import Split

Ints = npt.NDArray[np.int64]

#: With fewer training labels than this, validation uses cross-validation with this many folds: a
#: single hold-out would be too small to select by.
FEW, FOLDS = 100, 3
#: The default share of the labels in a single hold-out.
HELD_OUT = 0.2


def random_split(
    labels: Tensor, per_class: int, num_val: int = 500, num_test: int = 1000, *, seed: int = 0
) -> Split:
    """Draw a fixed number of training nodes per class, then validation and test nodes.

    Unlabeled nodes are in no part. In a small graph, a class of several nodes keeps one out of
    training, so that every class can be tested. If fewer than ``num_val + num_test`` nodes remain,
    they are divided in that proportion.

    Parameters
    ----------
    labels : Tensor
        Class indices, -1 for unlabeled nodes.
    per_class : int
        The number of training nodes per class.
    num_val, num_test : int
        The number of validation and test nodes.
    seed : int
        The seed of the random choice.

    Examples
    --------
    >>> labels = torch.tensor([0, 0, 0, 1, 1, 1, -1])
    >>> split = random_split(labels, per_class=1, num_val=1, num_test=2)
    >>> [len(part) for part in split]
    [2, 1, 2]
    """
    require(per_class >= 1, "per_class", "random_split", ">= 1", per_class)
    sizes = (num_val, num_test)
    require(min(sizes) >= 0, "num_val, num_test", "random_split", ">= 0", sizes)
    groups = _shuffled_classes(labels, seed)
    train = np.concatenate([nodes[: max(1, min(per_class, len(nodes) - 1))] for nodes in groups])
    rest = np.setdiff1d(np.concatenate(groups), train)
    rest = np.random.default_rng([seed, 1]).permutation(rest)
    if len(rest) < num_val + num_test:
        num_val = round(len(rest) * num_val / (num_val + num_test))
        num_test = len(rest) - num_val
    return _make_split(train, rest[:num_val], rest[num_val : num_val + num_test])


def stratified_split(
    labels: Tensor, train: float = 0.6, val: float = 0.2, *, seed: int = 0
) -> Split:
    """Draw the same share of every class for training and for validation; test on the rest.

    Every class has at least one training node.

    Parameters
    ----------
    labels : Tensor
        Class indices, -1 for unlabeled nodes.
    train, val : float
        The shares of training and validation nodes.
    seed : int
        The seed of the random choice.

    Examples
    --------
    >>> split = stratified_split(torch.tensor([0] * 10 + [1] * 20))
    >>> [len(part) for part in split]
    [18, 6, 6]
    """
    require(0 < train < 1, "train", "stratified_split", "between 0 and 1", train)
    require(0 <= val <= 1 - train, "val", "stratified_split", f"between 0 and {1 - train:g}", val)
    groups = _shuffled_classes(labels, seed)
    counts = np.array([len(nodes) for nodes in groups])
    num_train = _apportion(round(train * counts.sum()), counts, np.ones_like(counts), counts)
    num_val = _apportion(
        round(val * counts.sum()), counts, np.zeros_like(counts), counts - num_train
    )
    cuts = [
        np.split(nodes, [a, a + b]) for nodes, a, b in zip(groups, num_train, num_val, strict=True)
    ]
    return _make_split(*(np.concatenate(parts) for parts in zip(*cuts, strict=True)))


def hold_out(
    train_nodes: Tensor, labels: Tensor, fraction: float, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Hold out a stratified fraction of the training nodes for validation.

    Every class keeps one training node. Returns the training and the validation nodes.

    >>> train, val = hold_out(torch.arange(10), torch.tensor([0] * 5 + [1] * 5), 0.2)
    >>> len(train), len(val)
    (8, 2)
    """
    require(0 < fraction < 1, "fraction", "hold_out", "between 0 and 1", fraction)
    train_nodes = train_nodes.cpu()
    groups = _shuffled_classes(labels.cpu()[train_nodes], seed)
    counts = np.array([len(nodes) for nodes in groups])
    if counts.max() < 2:
        raise DataError(_too_few_nodes(len(groups)))
    total = max(1, round(fraction * counts.sum()))
    num_held = _apportion(total, counts, np.zeros_like(counts), counts - 1)
    val = np.concatenate([nodes[:k] for nodes, k in zip(groups, num_held, strict=True)])
    train = np.concatenate([nodes[k:] for nodes, k in zip(groups, num_held, strict=True)])
    return _select(train_nodes, train), _select(train_nodes, val)


def cross_validation(
    train_nodes: Tensor, labels: Tensor, folds: int, seed: int = 0
) -> list[tuple[Tensor, Tensor]]:
    """Divide the training nodes into stratified folds for cross-validation.

    Each node is held out once, except the only node of a class, which always stays in training.
    There are fewer folds if fewer nodes can be held out. Returns the training and the validation
    nodes of each fold.

    >>> folds = cross_validation(torch.arange(10), torch.tensor([0] * 5 + [1] * 5), 3)
    >>> [(len(train), len(val)) for train, val in folds]
    [(6, 4), (7, 3), (7, 3)]
    """
    require(folds >= 2, "folds", "cross_validation", ">= 2", folds)
    train_nodes = train_nodes.cpu()
    groups = _shuffled_classes(labels.cpu()[train_nodes], seed)
    count = possible_folds(train_nodes, labels, folds)
    # Assigned in turn, so that the nodes of a class go to different folds.
    dealt = np.concatenate([nodes for nodes in groups if len(nodes) > 1])
    everyone = np.concatenate(groups)
    parts = []
    for fold in range(count):
        val = dealt[fold::folds]
        train = np.setdiff1d(everyone, val)
        parts.append((_select(train_nodes, train), _select(train_nodes, val)))
    return parts


def possible_folds(train_nodes: Tensor, labels: Tensor, folds: int) -> int:
    """Return the number of folds for cross-validation: fewer if few nodes can be held out.

    >>> possible_folds(torch.arange(4), torch.tensor([0, 0, 1, 2]), 5)
    2
    """
    codes = labels.cpu()[train_nodes.cpu()]
    counts = codes[codes >= 0].unique(return_counts=True)[1]
    dealt = int(counts[counts > 1].sum())
    if not dealt:
        raise DataError(_too_few_nodes(len(counts)))
    return min(folds, dealt)


def validation_parts(
    train_nodes: Tensor, labels: Tensor, *, cv: float | None = None, seed: int = 0
) -> list[tuple[Tensor, Tensor]]:
    """Return the training and validation nodes of each fold.

    Parameters
    ----------
    train_nodes, labels : Tensor
        The nodes to divide, and the labels of all nodes.
    cv : int or float, optional
        The number of folds, or the share of the nodes to hold out once; None: :func:`default_cv`.
    seed : int
        The seed of the draw.

    Examples
    --------
    >>> nodes = torch.arange(100)
    >>> len(validation_parts(nodes, nodes % 2)), len(validation_parts(nodes[:99], nodes % 2))
    (1, 3)
    """
    cv = default_cv(len(train_nodes)) if cv is None else cv
    if cv < 1:
        return [hold_out(train_nodes, labels, float(cv), seed)]
    return cross_validation(train_nodes, labels, int(cv), seed)


def default_cv(num_labels: int) -> float:
    """Return the number of folds for few labels, or the share to hold out once for many.

    >>> default_cv(99), default_cv(100)
    (3, 0.2)
    """
    return FOLDS if num_labels < FEW else HELD_OUT


def _too_few_nodes(num_classes: int) -> str:
    return (
        "No node can be held out for validation: every class has only one training node, and there "
        f"are {num_classes:,} classes. Label more nodes of each, name another label column if "
        "these are not classes, or give validation nodes."
    )


def _shuffled_classes(labels: Tensor, seed: int) -> list[Ints]:
    """Return the nodes of each non-empty class, in random order."""
    require(seed >= 0, "seed", "a split", ">= 0", seed)
    codes = labels.cpu().numpy()
    present = np.unique(codes[codes >= 0])
    if not len(present):
        raise DataError("A split needs labels, and no node has one.")
    random = np.random.default_rng([seed, 0])
    return [random.permutation(np.flatnonzero(codes == c)) for c in present]


def _apportion(total: int, counts: Ints, least: Ints, most: Ints) -> Ints:
    """Divide ``total`` in proportion to ``counts`` by largest remainders.

    The bounds ``least`` and ``most`` take precedence.
    """
    quota = total * counts / counts.sum()
    shares: Ints = np.clip(np.floor(quota).astype(np.int64), least, most)
    while shares.sum() < total and (shares < most).any():
        shares[np.where(shares < most, quota - shares, -np.inf).argmax()] += 1
    # The lower bounds may have given out too much.
    while shares.sum() > total and (shares > least).any():
        shares[np.where(shares > least, quota - shares, np.inf).argmin()] -= 1
    return shares


def _select(nodes: Tensor, places: Ints) -> Tensor:
    return nodes[torch.from_numpy(places)].sort().values


def _make_split(*parts: Ints) -> Split:
    return Split(*(torch.from_numpy(np.sort(part)) for part in parts))
