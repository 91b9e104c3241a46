"""Check and repair the arrays of a graph; every error names the remedy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import DataError
from everynode.sparse import SparseMatrix

#: Features with at most this share of non-zeros become sparse.
SPARSE_DENSITY = 0.25
#: Rows of features checked at once: features mapped from a file may exceed the memory.
ROWS = 65_536
#: Label of an unlabeled node.
UNLABELED = -1


class Split(NamedTuple):
    """Train, validation and test nodes: disjoint sets of sorted node indices.

    Attributes
    ----------
    train, val, test : Tensor
        The node indices of each part, in ascending order.

    Examples
    --------
    >>> split = tidy_split([[2, 0], [False, True, False], []], 3)
    >>> split.train.tolist(), split.val.tolist(), split.test.tolist()
    ([0, 2], [1], [])
    """

    train: Tensor
    val: Tensor
    test: Tensor


def tidy_split(split: Sequence[Any], n: int) -> Split:
    """Convert three sets of nodes, given as indices or boolean masks, to a :class:`Split`."""
    if len(split) != 3:
        raise DataError(f"A split is three sets of nodes: train, val and test. Got {len(split)}.")
    parts = []
    for nodes in split:
        part = torch.as_tensor(nodes)
        if part.dtype == torch.bool:
            if part.shape != (n,):
                raise DataError(
                    f"A mask of the split has shape {tuple(part.shape)}, but there are {n} nodes: "
                    "give one value per node."
                )
            part = part.nonzero()[:, 0]
        parts.append(part.long().sort().values)
    return Split(*parts)


def encode_labels(
    labels: Any, classes: Sequence[Hashable] | None
) -> tuple[Tensor | None, Sequence[Hashable]]:
    """Return class indices and class names.

    Integers are class indices already; other values are sorted into classes.
    """
    if labels is None:
        return None, ()
    if isinstance(labels, Tensor):
        labels = labels.cpu().numpy()
    array = np.asarray(labels) if not isinstance(labels, list) else np.asarray(labels, dtype=object)
    if array.ndim != 1:
        raise DataError(f"Labels must be one value per node; got an array of shape {array.shape}.")
    values = [v.item() if isinstance(v, np.generic) else v for v in array.tolist()]
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        codes = torch.tensor(values, dtype=torch.int64)
        return codes, classes if classes is not None else range(max(values, default=-1) + 1)
    values = [None if is_missing(v) or v == "" else v for v in values]
    if classes is None:
        present = {v for v in values if v is not None}
        classes = sorted(present, key=lambda v: (str(type(v)), v))
    index = {None: UNLABELED} | {c: i for i, c in enumerate(classes)}
    for node, value in enumerate(values):
        if value not in index:
            raise DataError(
                f"Node {node} has the label {value!r}, "
                f"which is not one of the {len(classes)} classes given."
            )
    return torch.tensor([index[value] for value in values]), classes


def is_missing(value: Any) -> bool:
    """Return whether a label is missing: None, NaN, or NA of pandas.

    >>> [is_missing(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def tidy_features(features: Any) -> SparseMatrix | Tensor:
    """Convert features to float32, as a sparse matrix if most of them are zero."""
    if isinstance(features, SparseMatrix):
        return features
    if scipy.sparse.issparse(features):
        if features.nnz > SPARSE_DENSITY * features.shape[0] * features.shape[1]:
            return torch.from_numpy(features.toarray()).float()
        return SparseMatrix.from_scipy(features)
    try:
        # Contiguous, because torch has no negative strides.
        dense = torch.as_tensor(
            features if isinstance(features, Tensor) else np.ascontiguousarray(features)
        )
    except (TypeError, ValueError) as wrong:
        raise DataError(
            f"Features must be a nodes x features matrix of numbers ({wrong})."
        ) from None
    dense = dense.detach().to(torch.float32, copy=True)
    if dense.ndim != 2:
        raise DataError(
            "Features must be a nodes x features matrix; "
            f"got an array of shape {tuple(dense.shape)}."
        )
    share = float((dense != 0).double().mean()) if dense.numel() else 1.0
    if share > SPARSE_DENSITY:
        return dense
    return SparseMatrix.from_scipy(scipy.sparse.csr_array(dense.numpy()))


def tidy_edges(
    edge_index: Any, edge_weight: Any, n: int, directed: bool
) -> tuple[Tensor, Tensor | None, dict[str, int]]:
    """Drop self-loops and repeated edges; join the two directions unless ``directed``.

    Returns the edges, their weights, and the count of each repair.
    """
    edges = _node_pairs(edge_index, n)
    weight = None if edge_weight is None else _positive_weights(edge_weight, edges.shape[1])
    loops = edges[0] == edges[1]
    edges, weight = edges[:, ~loops], None if weight is None else weight[~loops]
    key = edges[0] * n + edges[1]
    distinct = torch.unique(key)
    if directed:
        one_way = 0
    else:
        one_way = int((~torch.isin(distinct, distinct % n * n + distinct // n)).sum()) if n else 0
        edges = torch.stack([edges.amin(0), edges.amax(0)])
        key = edges[0] * n + edges[1]
    repairs = {
        "self_loops": int(loops.sum()),
        "repeated_edges": len(loops) - int(loops.sum()) - len(distinct),
        "one_way_edges": one_way,
    }
    key, where = torch.unique(key, return_inverse=True)
    if weight is not None:
        weight = weight.new_zeros(len(key)).scatter_reduce(0, where, weight, "amax")
    return torch.stack([key // max(n, 1), key % max(n, 1)]), weight, repairs


def _node_pairs(edge_index: Any, n: int) -> Tensor:
    """Return the edges as a 2 x m tensor of nodes 0 to n - 1; refuse other values."""
    if edge_index is None:
        raise DataError(
            "The edges are missing: give a 2 x m edge_index (2 x 0 for a graph without edges)."
        )
    try:
        edges = torch.as_tensor(
            edge_index if isinstance(edge_index, Tensor) else np.ascontiguousarray(edge_index)
        )
    except (TypeError, ValueError) as wrong:
        raise DataError(
            "Edges must be a 2 x m array of node indices, rows of the features from 0 "
            f"({wrong}): if they are ids, use everynode.read."
        ) from None
    if bool((edges != edges.long()).any()):
        raise DataError(
            "Edges must be a 2 x m array of node indices, whole numbers from 0; "
            "these have fractions."
        )
    edges = edges.long()
    if edges.ndim != 2 or edges.shape[0] != 2:
        turn = ": transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise DataError(
            f"Edges must be a 2 x m array of node indices; got shape {tuple(edges.shape)}{turn}."
        )
    outside = ((edges < 0) | (edges >= n)).any(0).nonzero()[:, 0]
    if len(outside):
        first = int(outside[0])
        raise DataError(
            f"Edge {first} joins nodes {int(edges[0, first])} and {int(edges[1, first])}, "
            f"but nodes are 0 to {n - 1} ({len(outside)} such edges): "
            "drop these edges or add the nodes."
        )
    return edges


def _positive_weights(edge_weight: Any, num_edges: int) -> Tensor:
    """Return the weights as a tensor, one positive number per edge; refuse anything else."""
    if not isinstance(edge_weight, Tensor):
        edge_weight = torch.as_tensor(np.ascontiguousarray(edge_weight))
    weight: Tensor = edge_weight.float()
    if len(weight) != num_edges:
        raise DataError(f"{num_edges} edges have {len(weight)} weights: give one per edge.")
    bad = (~(weight > 0) | weight.isinf()).nonzero()[:, 0]
    if len(bad):
        raise DataError(
            f"Edge {int(bad[0])} has weight {float(weight[bad[0]])}: "
            "weights must be positive and finite."
        )
    return weight


def check_features(features: SparseMatrix | Tensor) -> None:
    """Refuse features that are not finite; the message names the first one."""
    values = features.values if isinstance(features, SparseMatrix) else features
    for start in range(0, len(values), ROWS):
        if not bool(torch.isfinite(values[start : start + ROWS]).all()):
            break
    else:
        return
    bad = (~torch.isfinite(values[start : start + ROWS])).nonzero()[0]
    bad[0] += start
    if isinstance(features, SparseMatrix):
        entry = int(bad[0])
        node, column, value = (
            int(features.pattern.row[entry]),
            int(features.pattern.column[entry]),
            float(values[entry]),
        )
    else:
        node, column = int(bad[0]), int(bad[1])
        value = float(values[node, column])
    raise DataError(
        f"Feature {column} of node {node} is {value}: features must be finite numbers; "
        "fill in or drop missing values."
    )


def check_labels(labels: Tensor, k: int) -> None:
    """Refuse labels that are neither a class index nor -1."""
    bad = ((labels < UNLABELED) | (labels >= k)).nonzero()[:, 0]
    if len(bad):
        node = int(bad[0])
        raise DataError(
            f"Node {node} has the label {int(labels[node])}, "
            f"but the classes are 0 to {k - 1} (-1 means unlabeled)."
        )


def check_split(split: Split, n: int, fold: int) -> None:
    """Refuse a fold with nodes outside the graph, repeated nodes, or overlapping parts."""
    owner: dict[str, Tensor] = {}
    for part, index in zip(Split._fields, split, strict=True):
        if len(index) and (int(index.min()) < 0 or int(index.max()) >= n):
            raise DataError(f"The {part} nodes of fold {fold} reach outside 0 to {n - 1}.")
        if len(index.unique()) != len(index):
            raise DataError(
                f"A node appears twice among the {part} nodes of fold {fold}: name each once."
            )
        for other, taken in owner.items():
            both = index[torch.isin(index, taken)]
            if len(both):
                raise DataError(
                    f"Node {int(both[0])} is in both {other} and {part} of fold {fold} "
                    f"({len(both)} such nodes): a score on training nodes means nothing; "
                    "make the masks disjoint."
                )
        owner[part] = index


def check_node_labels(labels: Tensor, num_classes: int, n: int) -> None:
    """Refuse invalid labels, and labels that do not match the number of nodes."""
    check_labels(labels, num_classes)
    if len(labels) != n:
        raise DataError(
            f"{n} nodes have features but {len(labels)} have labels: "
            "give one label (or -1) per node."
        )


def checked_splits(splits: Sequence[Sequence[Any]], n: int) -> tuple[Split, ...]:
    """Return folds of a graph with n nodes, each converted and checked."""
    tidy = tuple(tidy_split(split, n) for split in splits)
    for fold, split in enumerate(tidy):
        check_split(split, n, fold)
    return tidy
