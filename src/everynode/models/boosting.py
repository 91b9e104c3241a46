"""Gradient-boosted trees on the features alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits
from torch import Tensor

from everynode.graph import Graph
from everynode.models.closed_form import ABSENT, ClosedFormModel, hop_rows, sample_weight
from everynode.models.model import input_features
from everynode.sparse import SparseMatrix

#: Numbers of rounds; validation chooses.
ROUNDS = (10, 20, 40, 80, 160)
#: Wider features are reduced to this many columns.
MAX_COLUMNS = 64
#: A tree needs this many training nodes for each leaf, or fewer if there are few.
LEAF = 20
#: Rows that the trees see at once.
ROWS = 65536
#: Share of the columns that a split looks at: trees then differ, and grow faster.
MAX_FEATURES = 0.3

Floats = npt.NDArray[np.float32]
#: The names of the buffers that hold the trees.
TABLES = ("feature", "threshold", "left", "right", "value")


class Boosting(ClosedFormModel):
    """Histogram gradient boosting of scikit-learn; the trees are kept as tables of their nodes.

    From `LightGBM: A Highly Efficient Gradient Boosting Decision Tree
    <https://papers.nips.cc/paper/6907-lightgbm>`_. Each round adds one tree per class that follows
    the gradient of cross-entropy. Validation chooses the number of rounds.

    Features with more than 64 columns are reduced by a truncated SVD, which is fitted to all nodes
    without their labels.

    Parameters
    ----------
    num_features, num_classes, normalize_features
        See :class:`~everynode.models.closed_form.ClosedFormModel`.
    **options
        See :class:`~everynode.models.closed_form.ClosedFormModel`.

    Attributes
    ----------
    feature, threshold, left, right, value : Tensor
        One entry per node of a tree: the column that it splits, where, the positions of its
        children (its own, if it is a leaf), and the logit of a leaf.
    root, output : Tensor
        One entry per tree: the position of its root, and its class.
    base : Tensor
        The logits before the first round.
    projection : Tensor
        The directions of the truncated SVD, c x 64; empty for few columns.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), Boosting(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    num_stages = len(ROUNDS)
    #: Number of hops whose means are added to the columns.
    hops = 0
    projection: Tensor
    base: Tensor
    root: Tensor
    output: Tensor

    def __init__(self, num_features: int, num_classes: int, **options: Any):
        super().__init__(num_features, num_classes, **options)
        for name in ("threshold", "value"):
            self.learn(name, torch.empty(0))
        for name in ("feature", "left", "right", "root", "output"):
            self.learn(name, torch.empty(0, dtype=torch.int32))
        self.learn("base", torch.zeros(num_classes))
        self.learn("projection", torch.empty(0, 0))
        self._booster: HistGradientBoostingClassifier | None = None
        self._key: tuple[Any, ...] = ()

    def solve(
        self, graph: Graph, train_nodes: Tensor, *,
        seed: int = 0, class_weight: Tensor | None = None, stage: int = 0,
    ) -> None:  # fmt: skip
        """Grow all trees once, and keep those of the first rounds."""
        self.learn("projection", self._projection(graph).to(graph.dtype))
        labels = graph.labels[train_nodes]
        if len(labels.unique()) == 1:
            tables = _constant(int(labels[0]), self.num_classes)
        else:
            booster = self._grow(graph, train_nodes, seed, class_weight)
            tables = _tables(booster, ROUNDS[stage], self.num_classes)
        for name, array in tables.items():
            tensor = torch.from_numpy(array).to(labels.device)
            self.learn(name, tensor.to(graph.dtype) if tensor.is_floating_point() else tensor)

    def _grow(
        self, graph: Graph, train_nodes: Tensor, seed: int, class_weight: Tensor | None
    ) -> HistGradientBoostingClassifier:
        """Return the trees of all rounds, grown once for all stages."""
        # With weights, scikit-learn finds its bins in several times the time.
        weight = None
        if class_weight is not None:
            weight = sample_weight(graph.labels[train_nodes], class_weight).cpu().numpy()
        key = (graph.digest, train_nodes.tolist(), seed, str(class_weight))
        if self._booster is None or key != self._key:
            columns = self._columns(graph, train_nodes)
            labels = graph.labels[train_nodes].cpu().numpy()
            self._booster = _boost(columns, labels, weight, seed)
            self._key = key
        return self._booster

    @property
    def reach(self) -> int:
        """The number of hops."""
        return self.hops

    def clear_cache(self) -> None:
        """Forget the trees of later rounds."""
        self._booster, self._key = None, ()

    def __getstate__(self) -> dict[str, object]:
        """Return the state for copies and pickles, without scikit-learn's object."""
        return {**super().__getstate__(), "_booster": None, "_key": ()}

    def _projection(self, graph: Graph) -> Tensor:
        """Return the directions of the truncated SVD, c x 64; empty for few columns."""
        features = input_features(graph, self.normalize_features)
        if features.shape[1] <= MAX_COLUMNS:
            return torch.empty(0, 0)

        def compute() -> Tensor:
            if isinstance(features, SparseMatrix):
                matrix = features.to_scipy()
            else:
                matrix = features.cpu().numpy()
            width = min(MAX_COLUMNS, *matrix.shape)
            _, _, directions = randomized_svd(matrix, width, random_state=0)
            return torch.from_numpy(np.ascontiguousarray(directions.T))

        directions: Tensor = graph.cached(("svd", self.normalize_features), compute)
        return directions

    def _columns(self, graph: Graph, nodes: Tensor | None = None) -> Floats:
        """Return the columns that the trees see, for some nodes or all."""
        x = input_features(graph, self.normalize_features)
        if self.projection.numel():
            x = x @ self.projection.to(graph.dtype)
        dense = x if isinstance(x, Tensor) else x.to_dense()
        operator = graph.neighbor_operator if self.hops else None
        joined = hop_rows(dense, operator, nodes, self.hops, graph.dtype)
        columns: Floats = joined.float().cpu().numpy()
        return columns

    def logits(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Return the sums of the leaves that each node falls into."""
        columns = self._columns(graph, nodes)
        tables = {name: getattr(self, name).cpu().numpy() for name in (*TABLES, "root", "output")}
        base = self.base.double().cpu().numpy()
        blocks = np.array_split(columns, max(1, len(columns) // ROWS))
        sums = np.concatenate([_evaluate(block, tables, base) for block in blocks])
        return torch.from_numpy(sums).to(graph.dtype).to(graph.labels.device)


def _boost(
    columns: Floats,
    labels: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64] | None,
    seed: int,
) -> HistGradientBoostingClassifier:
    """Return trees for all rounds."""
    classes = len(np.unique(labels))
    booster = HistGradientBoostingClassifier(
        max_iter=ROUNDS[-1],
        max_leaf_nodes=15,
        max_features=MAX_FEATURES,
        min_samples_leaf=max(2, min(LEAF, len(labels) // (6 * classes))),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(torch.get_num_threads()):
        return booster.fit(columns, labels, sample_weight=weight)


def _constant(label: int, num_classes: int) -> dict[str, npt.NDArray[Any]]:
    """Return empty tables of trees, for a single class."""
    base = np.full(num_classes, ABSENT)
    base[label] = 0.0
    empty = {name: np.zeros(0, np.int32) for name in ("feature", "left", "right", "root", "output")}
    floats = {name: np.zeros(0) for name in ("threshold", "value")}
    return {**empty, **floats, "base": base}


def _tables(
    booster: HistGradientBoostingClassifier, rounds: int, num_classes: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the nodes of the trees of the first rounds as arrays."""
    classes = booster.classes_
    # Two classes have one tree a round, for the second class.
    outputs = classes[1:] if len(classes) == 2 else classes
    base = np.full(num_classes, ABSENT)
    base[classes] = 0.0
    base[outputs] = booster._baseline_prediction.ravel()
    trees = [tree.nodes for trees in booster._predictors[:rounds] for tree in trees]
    sizes = [len(nodes) for nodes in trees]
    root = np.cumsum([0, *sizes[:-1]])
    nodes = np.concatenate(trees)
    start = np.repeat(root, sizes)
    is_leaf = nodes["is_leaf"].astype(bool)
    own = np.arange(len(nodes))
    threshold = nodes["num_threshold"].astype(np.float32)
    # Rounded down, so that a float32 value falls on the same side as before.
    above = threshold > nodes["num_threshold"]
    threshold[above] = np.nextafter(threshold[above], np.float32(-np.inf))
    threshold[is_leaf] = 0.0
    return {
        "feature": np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int32),
        "threshold": threshold,
        "left": np.where(is_leaf, own, nodes["left"] + start).astype(np.int32),
        "right": np.where(is_leaf, own, nodes["right"] + start).astype(np.int32),
        "value": np.where(is_leaf, nodes["value"], 0.0),
        "root": root.astype(np.int32),
        "output": np.tile(outputs, rounds).astype(np.int32),
        "base": base,
    }


def _evaluate(
    columns: Floats, tables: dict[str, npt.NDArray[Any]], base: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sum of the leaves that each row falls into, by class."""
    by_column = np.ascontiguousarray(columns.T)
    rows = np.arange(len(columns))
    sums = np.tile(base, (len(columns), 1))
    feature, threshold, left, right, value = (tables[name] for name in TABLES)
    for root, output in zip(tables["root"], tables["output"], strict=True):
        at = np.full(len(columns), root)
        while True:
            goes_left = by_column[feature[at], rows] <= threshold[at]
            below = np.where(goes_left, left[at], right[at])
            if np.array_equal(below, at):
                break
            at = below
        sums[:, output] += value[at]
    return sums
