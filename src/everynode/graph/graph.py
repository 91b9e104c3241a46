"""The graph: checked when it is built, immutable, with operators that are computed once."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import DataError, UsageError, unknown
from everynode.graph.conversions import networkx_arrays, pyg_arrays
from everynode.graph.edge_types import EdgeTypes, tidy_typed_edges
from everynode.graph.operators import Operators
from everynode.graph.validation import (
    UNLABELED,
    Split,
    check_features,
    check_node_labels,
    checked_splits,
    encode_labels,
    tidy_features,
)
from everynode.sparse import SparseMatrix

__all__ = ["UNLABELED", "Graph", "Split"]

if TYPE_CHECKING:  # networkx and PyG are slow to import; only the conversions need them
    import networkx
    from torch_geometric.data import Data

    from everynode.io.feature_encoder import FeatureEncoder
    from everynode.io.summary import GraphSummary


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Operators):
    """Attributed graph with labels and splits.

    Build one with :meth:`from_arrays` or another ``from_...`` method, which check the arrays. The
    constructor checks nothing. A graph is immutable. Its operators are computed on first use.
    :meth:`with_splits` and :meth:`with_labels` return graphs that share all operators;
    :meth:`with_features` returns one that shares those of the edges.

    Attributes
    ----------
    features : SparseMatrix or Tensor
        n x c node features; sparse if most entries are zero.
    edges : Tensor
        2 x m node indices, without self-loops. Undirected graph: each edge once, the smaller index
        first. Directed graph: source, target.
    labels : Tensor
        Class index of each node; -1 if unlabeled.
    classes : tuple
        The class names, in the order of their indices.
    splits : tuple of Split
        One split, or several folds.
    weights : Tensor or None
        Positive weight of each column of ``edges``; None means all ones.
    directed : bool
        Whether messages travel only from source to target.
    edge_index, edge_weight : Tensor, Tensor or None
        The edges as PyG expects them: both directions of each undirected edge.
    name : str
        The name in messages and reports.
    node_ids : tuple or None
        The name of each node; None: 0 to n-1.
    repairs : mapping of str to int
        Counts of dropped or joined edges: ``self_loops``, ``repeated_edges``, ``one_way_edges``.
    feature_encoder : FeatureEncoder or None
        The encoder of columns, if :func:`everynode.read` built the graph; it encodes later files.
    summary : GraphSummary or None
        How :func:`everynode.read` interpreted the files.
    edge_types : EdgeTypes or None
        The types of the edges, and the weight of each type.

    Examples
    --------
    >>> x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> g = Graph.from_arrays(x, [[0, 1, 1], [1, 0, 2]], ["a", "b", None])
    >>> g
    Graph 'graph': 3 nodes, 2 edges, 2 features (dense), 2 classes, 2 labeled, 0 splits
    >>> g.edges.tolist()
    [[0, 1], [1, 2]]
    >>> g.edge_index.tolist()
    [[0, 1, 1, 2], [1, 2, 0, 1]]
    >>> g.degree
    tensor([1., 2., 1.])
    """

    features: SparseMatrix | Tensor
    edges: Tensor
    labels: Tensor
    classes: tuple[Hashable, ...]
    splits: tuple[Split, ...] = ()
    weights: Tensor | None = None
    directed: bool = False
    name: str = "graph"
    node_ids: tuple[Hashable, ...] | None = None
    repairs: Mapping[str, int] = field(default_factory=dict)
    feature_encoder: FeatureEncoder | None = None
    summary: GraphSummary | None = None
    edge_types: EdgeTypes | None = None
    #: Not an argument: ``dataclasses.replace`` starts with an empty cache.
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False)
    #: The part of the cache that depends on the edges alone.
    _structure_cache: dict[Hashable, Any] = field(default_factory=dict, init=False)

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        edge_index: Any,
        labels: Any = None,
        *,
        splits: Sequence[Sequence[Any]] = (),
        classes: Sequence[Hashable] | None = None,
        edge_weight: Any = None,
        edge_type: Any = None,
        directed: bool = False,
        name: str = "graph",
        node_ids: Sequence[Hashable] | None = None,
    ) -> Graph:
        """Check arrays and build a graph.

        Self-loops and repeated edges are dropped, and counted in :attr:`repairs`.

        Parameters
        ----------
        features
            n x c matrix, dense or SciPy sparse. None: one indicator feature per node; then
            ``labels`` must be given.
        edge_index
            2 x m node indices. Undirected edges may be given in one direction or both.
        labels
            Class indices with -1 for unlabeled, or any values with None or NaN for unlabeled.
        splits
            Folds; each has three sets of nodes (train, val, test) as indices or boolean masks.
        classes
            Class names, in the order of their indices. None: the sorted labels.
        edge_weight
            Positive weights. Of repeated edges, and of the two directions of an edge, the largest
            weight is kept.
        edge_type
            The type of each edge. A classifier learns one weight per type.
        directed
            Keep the direction of the edges.
        name
            Name for messages and reports.
        node_ids
            Name of each node.
        """
        codes, classes = encode_labels(labels, classes)
        if features is None:
            if codes is None:
                raise DataError(
                    "The number of nodes is unknown: pass features, or labels (-1 for unlabeled)."
                )
            features = scipy.sparse.eye_array(len(codes), format="csr", dtype=np.float32)
        matrix = tidy_features(features)
        check_features(matrix)
        n = matrix.shape[0]
        if codes is None:
            codes, classes = torch.full((n,), UNLABELED), ()
        check_node_labels(codes, len(classes), n)
        if node_ids is not None and len(node_ids) != n:
            raise DataError(f"{n} nodes have {len(node_ids)} names: give one per node.")
        edges, weights, repairs, types = tidy_typed_edges(
            edge_index, edge_weight, edge_type, n, directed
        )
        return cls(
            matrix,
            edges,
            codes,
            tuple(classes),
            checked_splits(splits, n),
            weights,
            directed,
            name,
            None if node_ids is None else tuple(node_ids),
            repairs,
            edge_types=types,
        )

    @classmethod
    def from_pyg(cls, data: Data, *, directed: bool = False, name: str = "graph") -> Graph:
        """Build a graph from a PyG ``Data`` with ``x``, ``edge_index`` and ``y``.

        ``edge_weight`` and the train, val and test masks are read if they exist.
        """
        graph = cls.from_arrays(**pyg_arrays(data), directed=directed, name=name)
        return graph.to(data.edge_index.device)

    def to_pyg(self) -> Data:
        """Return a PyG ``Data`` with dense features, ``edge_index`` and masks.

        A mask has n entries, or n x folds if there are several splits.
        """
        from torch_geometric.data import Data

        data = Data(x=self.dense_features, edge_index=self.edge_index, y=self.labels)
        if self.edge_weight is not None:
            data.edge_weight = self.edge_weight
        if self.splits:
            shape = len(self.splits), self.num_nodes
            for part in Split._fields:
                mask = torch.zeros(shape, dtype=torch.bool, device=self.labels.device)
                for fold, split in enumerate(self.splits):
                    mask[fold, getattr(split, part)] = True
                data[f"{part}_mask"] = mask[0] if len(self.splits) == 1 else mask.T.contiguous()
        return data

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        *,
        features: str | Sequence[str] | None = "x",
        label: str | None = "label",
        weight: str | None = "weight",
        name: str = "graph",
    ) -> Graph:
        """Build a graph from a NetworkX graph. A ``DiGraph`` keeps its direction.

        Parameters
        ----------
        graph
            Any NetworkX graph; nodes may have any names.
        features
            Node attribute that holds a vector, or several attributes of one number each. None: one
            indicator feature per node.
        label
            Node attribute that holds the class. Nodes without it are unlabeled.
        weight
            Edge attribute that holds the weight. Edges without it weigh 1.
        name
            Name for messages and reports.
        """
        return cls.from_arrays(**networkx_arrays(graph, features, label, weight), name=name)

    @classmethod
    def from_scipy(
        cls,
        adjacency: scipy.sparse.sparray | scipy.sparse.spmatrix,
        features: Any = None,
        labels: Any = None,
        **options: Any,
    ) -> Graph:
        """Build a graph from a SciPy adjacency matrix (row: source, column: target, value: weight).

        Options are those of :meth:`from_arrays`.
        """
        coo = scipy.sparse.coo_array(adjacency)
        if coo.shape[0] != coo.shape[1]:
            raise DataError(
                f"An adjacency matrix must be square; this one is {coo.shape[0]} x {coo.shape[1]}."
            )
        if labels is None and features is None:
            labels = np.full(coo.shape[0], UNLABELED)
        weight = None if (coo.data == 1).all() else coo.data
        return cls.from_arrays(
            features, np.stack([coo.row, coo.col]), labels, edge_weight=weight, **options
        )

    def with_splits(self, splits: Sequence[Sequence[Any]]) -> Graph:
        """Return the graph with other splits; cached operators are shared.

        A split has three sets of nodes (train, val, test), as indices or boolean masks.
        """
        return self._sharing(splits=checked_splits(splits, self.num_nodes))

    def with_labels(self, labels: Any, classes: Sequence[Hashable] | None = None) -> Graph:
        """Return the graph with other labels; cached operators are shared.

        Parameters
        ----------
        labels
            As in :meth:`from_arrays`: class indices with -1, or any values with None or NaN.
        classes
            Class names, in the order of their indices. None: those of this graph if the labels are
            class indices, otherwise the sorted labels.
        """
        codes, encoded = encode_labels(labels, classes)
        if codes is None:
            codes, encoded = torch.full((self.num_nodes,), UNLABELED), self.classes
        elif classes is None and isinstance(encoded, range) and self.classes:
            encoded = self.classes
        check_node_labels(codes, len(encoded), self.num_nodes)
        return self._sharing(labels=codes.to(self.labels.device), classes=tuple(encoded))

    def with_features(self, features: Any) -> Graph:
        """Return the graph with other features; cached operators of the edges are shared.

        Parameters
        ----------
        features
            n x c matrix, dense or sparse, as in :meth:`from_arrays`. It is converted to the type of
            the current features. The new graph has no ``feature_encoder``.

        Examples
        --------
        >>> g = Graph.from_arrays([[1.0], [2.0]], [[0], [1]])
        >>> other = g.with_features([[3.0, 0.5], [4.0, 0.5]])
        >>> other.num_features, other.gcn_operator is g.gcn_operator
        (2, True)
        """
        if not (isinstance(features, Tensor) and features.dtype == self.dtype):
            features = tidy_features(features)
        check_features(features)
        if features.shape[0] != self.num_nodes:
            raise DataError(
                f"{self.num_nodes} nodes have features for {features.shape[0]}: "
                "give one row per node."
            )
        features = features.to(self.dtype).to(self.labels.device)
        copy = dataclasses.replace(self, features=features, feature_encoder=None)
        object.__setattr__(copy, "_structure_cache", self._structure_cache)
        return copy

    def with_edge_type_weights(self, weights: Mapping[str, float]) -> Graph:
        """Return the graph whose edges weigh what their types weigh.

        Parameters
        ----------
        weights
            The weight of each type, a positive number.

        Examples
        --------
        >>> pairs, kinds = [[0, 1], [1, 2]], ["call", "mail"]
        >>> g = Graph.from_arrays([[1.0], [2.0], [3.0]], pairs, edge_type=kinds)
        >>> g.with_edge_type_weights({"call": 1.5, "mail": 0.5}).weights.tolist()
        [1.5, 0.5]
        """
        types = self.edge_types
        if types is None:
            raise UsageError(
                "The graph has no types of link, and the model weighs them "
                f"({', '.join(weights)}). Read it with edge_type='column', or --edge-type."
            )
        for name in types.names:
            if not weights.get(name, 0) > 0:
                raise DataError(
                    f"Type of link {name!r} has no positive weight; the types with a weight are "
                    f"{', '.join(weights)}."
                )
        chosen = tuple(float(weights[name]) for name in types.names)
        encoder = self.feature_encoder
        if encoder is not None:
            encoder = dataclasses.replace(encoder, edge_types=dict(weights))
        return dataclasses.replace(
            self,
            weights=types.edge_weights(weights).to(self.labels.device),
            edge_types=dataclasses.replace(types, weights=chosen),
            feature_encoder=encoder,
        )

    def _sharing(self, **changes: Any) -> Graph:
        """Return a copy with other labels or splits and the same cache."""
        copy = dataclasses.replace(self, **changes)
        for cache in ("_cache", "_structure_cache"):
            object.__setattr__(copy, cache, getattr(self, cache))
        return copy

    def to(self, target: torch.dtype | torch.device | str) -> Graph:
        """Return the graph with features of another type, or on another device.

        Returns the graph itself, with its cache, if nothing changes.
        """
        if isinstance(target, torch.dtype):
            if target == self.dtype:
                return self
            changes: dict[str, Any] = {}
        else:
            target = torch.device(target)
            if target == self.labels.device:
                return self
            splits = (Split(*(part.to(target) for part in split)) for split in self.splits)
            changes = {
                "edges": self.edges.to(target),
                "labels": self.labels.to(target),
                "splits": tuple(splits),
            }
        weights = None if self.weights is None else self.weights.to(target)
        return dataclasses.replace(
            self, features=self.features.to(target), weights=weights, **changes
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for copies and pickles, without the cache."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return fields | {"_cache": {}, "_structure_cache": {}}

    # ------------------------------------------------------------------ inspection

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, SparseMatrix) else "dense"
        labeled = int((self.labels >= 0).sum())
        arrow = " directed" if self.directed else ""
        return (
            f"Graph {self.name!r}: {self.num_nodes} nodes, {self.num_edges}{arrow} edges, "
            f"{self.num_features} features ({kind}), {self.num_classes} classes, "
            f"{labeled} labeled, {len(self.splits)} splits"
        )

    def nodes(self, part: str, fold: int = 0) -> Tensor:
        """Return the labeled nodes of 'train', 'val' or 'test' in one fold."""
        return labeled_nodes(self, part, fold)

    def rows(self, nodes: np.ndarray) -> SparseMatrix | Tensor:
        """Return the features of some nodes."""
        index = torch.from_numpy(nodes)
        if isinstance(self.features, Tensor):
            return self.features.index_select(0, index)
        return self.features.rows(index)[0]


def labeled_nodes(graph: Any, part: str, fold: int) -> Tensor:
    """Return the labeled nodes of one part of a fold.

    ``graph`` is a :class:`Graph` or a ``DiskGraph``.
    """
    if not graph.splits:
        raise DataError(
            f"Graph {graph.name!r} has no split: add one with graph.with_splits(...). "
            "A PyG Data brings it as train_mask, val_mask and test_mask."
        )
    if not 0 <= fold < len(graph.splits):
        raise UsageError(
            f"Graph {graph.name!r} has folds 0 to {len(graph.splits) - 1}. Got fold {fold}."
        )
    if part not in Split._fields:
        unknown("part", part, Split._fields)
    index: Tensor = getattr(graph.splits[fold], part)
    return index[graph.labels[index] >= 0]
