"""The graph: checked when it is built, immutable, with operators that are computed once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import DataError, UsageError, unknown
from everynode.graph.conversions import networkx_arrays, pyg_arrays
from everynode.graph.neighbors import Neighbours
from everynode.graph.validation import (
    UNLABELLED,
    Split,
    check_features,
    check_labels,
    check_split,
    encode_labels,
    tidy_edges,
    tidy_features,
    tidy_split,
)
from everynode.sparse import SparseMatrix

__all__ = ["UNLABELLED", "Graph", "Split"]

if TYPE_CHECKING:  # networkx and PyG are slow to import; only the conversions need them
    import networkx
    from torch_geometric.data import Data

    from everynode.io.feature_encoder import FeatureEncoder
    from everynode.io.summary import GraphSummary

T = TypeVar("T")


class shared_property(Generic[T]):
    """Property of a graph that depends on neither labels nor splits: computed once, then shared."""

    #: Whether the property depends on the edges alone, so that other features share it too.
    of_structure = False

    def __init__(self, make: Callable[[Any], T]):
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, graph: None, owner: type) -> Self: ...
    @overload
    def __get__(self, graph: Graph, owner: type) -> T: ...
    def __get__(self, graph: Graph | None, owner: type) -> Self | T:
        if graph is None:
            return self
        name = self.make.__name__
        value: T = graph.cached(name, lambda: self.make(graph), of_structure=self.of_structure)
        return value


class structural_property(shared_property[T]):
    """Property of a graph that depends on its edges alone."""

    of_structure = True


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Attributed graph with labels and splits.

    Build one with :meth:`from_arrays` or another ``from_...`` method: they check the arrays once.
    The constructor itself checks nothing. A graph is immutable. Its operators are computed on first
    use; :meth:`with_splits` and :meth:`with_labels` return graphs that share them, and
    :meth:`with_features` one that shares those of the edges.

    Attributes
    ----------
    features : SparseMatrix or Tensor
        n x c node features; sparse if most entries are zero.
    edges : Tensor
        2 x m node indices, without self-loops. Undirected graph: each edge once, the smaller index
        first. Directed graph: source, target.
    labels : Tensor
        Class index of each node; -1 if unlabelled.
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

    Examples
    --------
    >>> x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> g = Graph.from_arrays(x, [[0, 1, 1], [1, 0, 2]], ["a", "b", None])
    >>> g
    Graph 'graph': 3 nodes, 2 edges, 2 features (dense), 2 classes, 2 labelled, 0 splits
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
    #: The nodes' names, unless they are called 0 to n-1.
    node_ids: tuple[Hashable, ...] | None = None
    #: Counts of repairs made on the way in: self_loops, repeated_edges, one_way_edges.
    repairs: Mapping[str, int] = field(default_factory=dict)
    #: How columns became features, for a graph of :func:`everynode.read`; applies to other files.
    feature_encoder: FeatureEncoder | None = None
    #: How :func:`everynode.read` interpreted the files.
    summary: GraphSummary | None = None
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
        directed: bool = False,
        name: str = "graph",
        node_ids: Sequence[Hashable] | None = None,
    ) -> Graph:
        """Check arrays and build a graph.

        Self-loops and repeated edges are dropped and counted in :attr:`repairs`.

        Parameters
        ----------
        features
            n x c matrix, dense or SciPy sparse. None: one indicator feature per node; then
            ``labels`` must be given.
        edge_index
            2 x m node indices. Undirected edges may be given in one direction or both.
        labels
            Class indices with -1 for unlabelled, or any values with None or NaN for unlabelled.
        splits
            Folds; each has three sets of nodes (train, val, test) as indices or boolean masks.
        classes
            Class names, in the order of their indices. None: the sorted labels.
        edge_weight
            Positive weights. Among repeated edges, or the two directions of one, the largest stays.
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
                    "The number of nodes is unknown: pass features, or labels (-1 for unlabelled)."
                )
            features = scipy.sparse.eye_array(len(codes), format="csr", dtype=np.float32)
        matrix = tidy_features(features)
        check_features(matrix)
        n = matrix.shape[0]
        if codes is None:
            codes, classes = torch.full((n,), UNLABELLED), ()
        _check_node_labels(codes, len(classes), n)
        if node_ids is not None and len(node_ids) != n:
            raise DataError(f"{n} nodes have {len(node_ids)} names: give one per node.")
        edges, weights, repairs = tidy_edges(edge_index, edge_weight, n, directed)
        return cls(
            matrix,
            edges,
            codes,
            tuple(classes),
            _checked_splits(splits, n),
            weights,
            directed,
            name,
            None if node_ids is None else tuple(node_ids),
            repairs,
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
            Node attribute that holds the class. Nodes without it are unlabelled.
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
            labels = np.full(coo.shape[0], UNLABELLED)
        weight = None if (coo.data == 1).all() else coo.data
        return cls.from_arrays(
            features, np.stack([coo.row, coo.col]), labels, edge_weight=weight, **options
        )

    def with_splits(self, splits: Sequence[Sequence[Any]]) -> Graph:
        """Return the graph with other splits; cached operators are shared.

        A split has three sets of nodes (train, val, test), as indices or boolean masks.
        """
        return self._sharing(splits=_checked_splits(splits, self.num_nodes))

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
            codes, encoded = torch.full((self.num_nodes,), UNLABELLED), self.classes
        elif classes is None and isinstance(encoded, range) and self.classes:
            encoded = self.classes
        _check_node_labels(codes, len(encoded), self.num_nodes)
        return self._sharing(labels=codes.to(self.labels.device), classes=tuple(encoded))

    def with_features(self, features: Any) -> Graph:
        """Return the graph with other features; cached operators of the edges are shared.

        Parameters
        ----------
        features
            n x c matrix, dense or sparse, as in :meth:`from_arrays`. It takes the type of the
            present features. The copy has no ``feature_encoder``.

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
        labelled = int((self.labels >= 0).sum())
        arrow = " directed" if self.directed else ""
        return (
            f"Graph {self.name!r}: {self.num_nodes} nodes, {self.num_edges}{arrow} edges, "
            f"{self.num_features} features ({kind}), {self.num_classes} classes, "
            f"{labelled} labelled, {len(self.splits)} splits"
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """Number of edges, m: undirected edges, or arcs of a directed graph."""
        return self.edges.shape[1]

    @property
    def num_features(self) -> int:
        """Number of features, c_in."""
        return self.features.shape[1]

    @property
    def num_classes(self) -> int:
        """Number of classes, k."""
        return len(self.classes)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the features and of everything computed from them."""
        return self.features.dtype

    def nodes(self, part: str, fold: int = 0) -> Tensor:
        """Return the labelled nodes of 'train', 'val' or 'test' in one fold."""
        return labelled_nodes(self, part, fold)

    def rows(self, nodes: np.ndarray) -> SparseMatrix | Tensor:
        """Return the features of some nodes."""
        index = torch.from_numpy(nodes)
        if isinstance(self.features, Tensor):
            return self.features.index_select(0, index)
        return self.features.rows(index)[0]

    # ------------------------------------------------------------------ cached, shared

    def cached(self, key: Hashable, make: Callable[[], Any], *, of_structure: bool = False) -> Any:
        """Return ``make()``, computed once per key.

        The result must not depend on labels or splits: graphs with other labels and splits share
        the cache. A graph of another type or on another device has its own. With ``of_structure``
        the result must depend on the edges alone: graphs with other features share it too.

        Examples
        --------
        >>> g = Graph.from_arrays([[1.0], [2.0]], [[0], [1]])
        >>> g.cached("sum", lambda: float(g.dense_features.sum()))
        3.0
        >>> g.with_labels([0, 0], classes=["a"]).cached("sum", lambda: None)
        3.0
        """
        cache = self._structure_cache if of_structure else self._cache
        try:
            return cache[key]
        except KeyError:
            value = cache[key] = make()
            return value

    @structural_property
    def edge_index(self) -> Tensor:
        """Source and target of every message, 2 x arcs: both directions of an undirected edge."""
        if self.directed:
            return self.edges
        return torch.cat([self.edges, self.edges.flip(0)], dim=1)

    @structural_property
    def edge_weight(self) -> Tensor | None:
        """Weight of each column of :attr:`edge_index`, or None for all ones."""
        if self.directed or self.weights is None:
            return self.weights
        return self.weights.repeat(2)

    @structural_property
    def undirected_edges(self) -> tuple[Tensor, Tensor | None]:
        """Each edge once, the smaller index first, and the weights: the edges that TV sums over.

        These are :attr:`edges` and :attr:`weights`, unless the graph is directed.
        """
        if not self.directed:
            return self.edges, self.weights
        edges, weights, _ = tidy_edges(self.edges, self.weights, self.num_nodes, directed=False)
        return edges, weights

    @structural_property
    def degree(self) -> Tensor:
        """Degree :math:`d_i` of each node: number or total weight of its undirected edges."""
        edges, weights = self.undirected_edges
        if weights is None:
            weights = torch.ones(edges.shape[1], device=edges.device)
        weights = weights.to(self.dtype)
        zeros = torch.zeros(self.num_nodes, dtype=self.dtype, device=edges.device)
        return zeros.index_add(0, edges[0], weights).index_add(0, edges[1], weights)

    @structural_property
    def looped_adjacency(self) -> SparseMatrix:
        """:math:`\\tilde A = A + I` with row = target, column = source."""
        sources, targets = self.edge_index.cpu().numpy()
        if self.edge_weight is None:
            values = np.ones(len(sources))
        else:
            values = self.edge_weight.cpu().numpy().astype(np.float64)
        n = self.num_nodes
        adjacency = scipy.sparse.coo_array((values, (targets, sources)), shape=(n, n))
        looped = adjacency + scipy.sparse.eye_array(n)
        return SparseMatrix.from_scipy(looped, torch.float64).to(self.labels.device)

    def _scaled_adjacency(
        self, left: float, right: float, *, symmetric: bool = False
    ) -> SparseMatrix:
        """Return :math:`\\tilde D^{left} \\tilde A \\tilde D^{right}`, computed in float64."""
        looped = self.looped_adjacency
        pattern = looped.pattern
        ones = torch.ones(self.num_nodes, 1, dtype=torch.float64, device=looped.values.device)
        d = (looped @ ones)[:, 0]
        values = looped.values * d[pattern.row] ** left * d[pattern.column] ** right
        return SparseMatrix(pattern, values.to(self.dtype), symmetric=symmetric)

    @structural_property
    def gcn_operator(self) -> SparseMatrix:
        """:math:`\\tilde P = \\tilde D^{-1/2} \\tilde A \\tilde D^{-1/2}`."""
        return self._scaled_adjacency(-0.5, -0.5, symmetric=not self.directed)

    @structural_property
    def mean_operator(self) -> SparseMatrix:
        """:math:`\\tilde D^{-1} \\tilde A`: mean over each node and its neighbours."""
        return self._scaled_adjacency(-1.0, 0.0)

    @structural_property
    def neighbor_operator(self) -> SparseMatrix:
        """:math:`D^{-1} A`: mean over the neighbors without the node; zero rows without any.

        It has the entries of :attr:`looped_adjacency`, with zeros on the diagonal.
        """
        return neighbor_means(self.looped_adjacency, self.dtype)

    @structural_property
    def reverse_neighbor_operator(self) -> SparseMatrix:
        """Mean over the targets of a node's arcs; undirected: :attr:`neighbor_operator`."""
        if not self.directed:
            return self.neighbor_operator
        return neighbor_means(self.looped_adjacency.transpose, self.dtype)

    @shared_property
    def dense_features(self) -> Tensor:
        """The features as a dense tensor."""
        if isinstance(self.features, SparseMatrix):
            return self.features.to_dense()
        return self.features

    @shared_property
    def normalized_features(self) -> SparseMatrix | Tensor:
        """The features, each row divided by its sum of absolute values; zero rows stay zero."""
        return normalize_rows(self.features)

    @structural_property
    def neighbours(self) -> Neighbours:
        """The neighbours of every node, for sampling."""
        edges, weights = self.undirected_edges
        return Neighbours.of_edges(
            edges.cpu().numpy(), self.num_nodes, None if weights is None else weights.cpu().numpy()
        )

    def _hash_structure(self) -> Any:
        """Return a SHA-256 over sizes, classes, features and edges."""
        header = (self.num_nodes, self.num_features, self.classes, self.directed)
        sha = hashlib.sha256(repr(header).encode())
        if isinstance(self.features, SparseMatrix):
            tensors = [self.features.pattern.crow, self.features.pattern.col, self.features.values]
        else:
            tensors = [self.features]
        _hash(sha, [*tensors, self.edges])
        return sha

    # ------------------------------------------------------------------ cached, not shared

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the content: equal graphs have equal digests, wherever they come from."""
        sha = self.cached(("digest", repr(self.classes)), self._hash_structure).copy()
        _hash(sha, [self.labels, *(part for split in self.splits for part in split)])
        if self.weights is not None:
            _hash(sha, [self.weights])
        digest: str = sha.hexdigest()
        return digest

    @cached_property
    def edge_homophily(self) -> float:
        """Share of edges that join nodes of one class, among edges with two labelled ends.

        NaN if there is no such edge.
        """
        a, b = self.labels[self.undirected_edges[0]]
        labelled = (a >= 0) & (b >= 0)
        return float((a == b)[labelled].double().mean())

    @cached_property
    def node_homophily(self) -> float:
        """Mean over nodes of the share of neighbours with the same class (Pei et al. 2020).

        Only labelled nodes with a labelled neighbour count. NaN if there is none.
        """
        edges = self.undirected_edges[0]
        targets, sources = torch.cat([edges, edges.flip(0)], dim=1)
        labelled = (self.labels[targets] >= 0) & (self.labels[sources] >= 0)
        targets, sources = targets[labelled], sources[labelled]
        same = (self.labels[targets] == self.labels[sources]).double()
        count = torch.bincount(targets, minlength=self.num_nodes)
        agree = torch.zeros(self.num_nodes, dtype=torch.float64, device=same.device)
        agree.index_add_(0, targets, same)
        return float((agree[count > 0] / count[count > 0]).mean())


def normalize_rows(features: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
    """Divide each row by its sum of absolute values; zero rows stay zero."""
    if isinstance(features, SparseMatrix):
        pattern, values = features.pattern, features.values
        total = values.new_zeros(features.shape[0]).index_add_(0, pattern.row, values.abs())
        return SparseMatrix(pattern, values / torch.where(total > 0, total, 1)[pattern.row])
    total = features.abs().sum(1, keepdim=True)
    return features / torch.where(total > 0, total, 1)


def neighbor_means(looped: SparseMatrix, dtype: torch.dtype) -> SparseMatrix:
    """Return A + I without its diagonal, each row divided by its sum; zero rows stay zero."""
    pattern = looped.pattern
    values = torch.where(pattern.row == pattern.column, 0.0, looped.values)
    total = values.new_zeros(pattern.shape[0]).index_add_(0, pattern.row, values)
    values = values / torch.where(total > 0, total, 1)[pattern.row]
    return SparseMatrix(pattern, values.to(dtype))


def labelled_nodes(graph: Any, part: str, fold: int) -> Tensor:
    """Return the labelled nodes of one part of a fold.

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


def _check_node_labels(labels: Tensor, num_classes: int, n: int) -> None:
    check_labels(labels, num_classes)
    if len(labels) != n:
        raise DataError(
            f"{n} nodes have features but {len(labels)} have labels: "
            "give one label (or -1) per node."
        )


def _checked_splits(splits: Sequence[Sequence[Any]], n: int) -> tuple[Split, ...]:
    tidy = tuple(tidy_split(split, n) for split in splits)
    for fold, split in enumerate(tidy):
        check_split(split, n, fold)
    return tidy


def _hash(sha: Any, tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        sha.update(tensor.cpu().contiguous().numpy().tobytes())
