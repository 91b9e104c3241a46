"""Operators, degrees, homophily and digest of a graph, each computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.graph.neighbors import Neighbors
from everynode.graph.validation import Split, tidy_edges
from everynode.sparse import SparseMatrix

T = TypeVar("T")


class shared_property(Generic[T]):
    """Property of a graph that depends on neither labels nor splits: computed once, then shared.

    Parameters
    ----------
    make : callable
        Computes the value from the graph.

    Attributes
    ----------
    of_structure : bool
        Whether the property depends on the edges alone, so graphs with other features share it.
    """

    of_structure = False

    def __init__(self, make: Callable[[Any], T]):
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, graph: None, owner: type) -> Self: ...
    @overload
    def __get__(self, graph: Operators, owner: type) -> T: ...
    def __get__(self, graph: Operators | None, owner: type) -> Self | T:
        if graph is None:
            return self
        name = self.make.__name__
        value: T = graph.cached(name, lambda: self.make(graph), of_structure=self.of_structure)
        return value


class structural_property(shared_property[T]):
    """Property of a graph that depends on its edges alone."""

    of_structure = True


class Operators:
    """Base class of :class:`~everynode.graph.Graph` with everything that follows from its arrays.

    A property here is computed on first use. Properties that depend on neither labels nor splits
    are kept in a cache that ``with_splits`` and ``with_labels`` share; the others belong to one
    graph.

    Attributes
    ----------
    features, edges, labels, classes, splits, weights, directed
        See :class:`~everynode.graph.Graph`.
    """

    features: SparseMatrix | Tensor
    edges: Tensor
    labels: Tensor
    classes: tuple[Hashable, ...]
    splits: tuple[Split, ...]
    weights: Tensor | None
    directed: bool
    _cache: dict[Hashable, Any]
    _structure_cache: dict[Hashable, Any]

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

    # ------------------------------------------------------------------ cached, shared

    def cached(self, key: Hashable, make: Callable[[], Any], *, of_structure: bool = False) -> Any:
        """Return ``make()``, computed once per key.

        The result must not depend on labels or splits: graphs with other labels and splits share
        the cache. A graph of another type or on another device has a separate cache. With
        ``of_structure``, the result must depend on the edges alone, because graphs with other
        features share it too.

        Examples
        --------
        >>> from everynode.graph import Graph
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
        """:math:`\\tilde D^{-1} \\tilde A`: mean over each node and its neighbors."""
        return self._scaled_adjacency(-1.0, 0.0)

    @structural_property
    def neighbor_operator(self) -> SparseMatrix:
        """:math:`D^{-1} A`: mean over the neighbors, excluding the node; zero for isolated nodes.

        It has the entries of :attr:`looped_adjacency`, with zeros on the diagonal.
        """
        return neighbor_means(self.looped_adjacency, self.dtype)

    @structural_property
    def loopless_operator(self) -> SparseMatrix:
        """:math:`D^{-1/2} A D^{-1/2}`, with zeros on the diagonal of :attr:`looped_adjacency`."""
        return symmetric_without_loops(
            self.looped_adjacency, self.dtype, symmetric=not self.directed
        )

    @structural_property
    def two_hop_operator(self) -> SparseMatrix:
        """:math:`D_2^{-1/2} A_2 D_2^{-1/2}`; :math:`A_2` has a 1 for each pair two steps apart."""
        reached = (self.looped_adjacency.to_scipy() != 0).astype(np.int64)
        pairs = ((reached @ reached) > 0).astype(np.float64) - reached
        two_hops = SparseMatrix.from_scipy(pairs, torch.float64).to(self.labels.device)
        return symmetric_without_loops(two_hops, self.dtype, symmetric=not self.directed)

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
    def neighbors(self) -> Neighbors:
        """The neighbors of every node, for sampling."""
        edges, weights = self.undirected_edges
        return Neighbors.of_edges(
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
        """SHA-256 over the content: equal graphs from any source have equal digests."""
        sha = self.cached(("digest", repr(self.classes)), self._hash_structure).copy()
        _hash(sha, [self.labels, *(part for split in self.splits for part in split)])
        if self.weights is not None:
            _hash(sha, [self.weights])
        digest: str = sha.hexdigest()
        return digest

    @cached_property
    def edge_homophily(self) -> float:
        """Share of edges that join nodes of one class, among edges with two labeled ends.

        NaN if there is no such edge.
        """
        a, b = self.labels[self.undirected_edges[0]]
        labeled = (a >= 0) & (b >= 0)
        return float((a == b)[labeled].double().mean())

    @cached_property
    def node_homophily(self) -> float:
        """Mean over nodes of the share of neighbors with the same class (Pei et al. 2020).

        Only labeled nodes with a labeled neighbor count. NaN if there is none.
        """
        edges = self.undirected_edges[0]
        targets, sources = torch.cat([edges, edges.flip(0)], dim=1)
        labeled = (self.labels[targets] >= 0) & (self.labels[sources] >= 0)
        targets, sources = targets[labeled], sources[labeled]
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


def symmetric_without_loops(
    matrix: SparseMatrix, dtype: torch.dtype, *, symmetric: bool
) -> SparseMatrix:
    """Return :math:`D^{-1/2} A D^{-1/2}` of a matrix without its diagonal; zero rows stay zero."""
    pattern = matrix.pattern
    values = torch.where(pattern.row == pattern.column, 0.0, matrix.values)
    total = values.new_zeros(pattern.shape[0]).index_add_(0, pattern.row, values)
    scale = torch.where(total > 0, total, 1).rsqrt()
    values = values * scale[pattern.row] * scale[pattern.column]
    return SparseMatrix(pattern, values.to(dtype), symmetric=symmetric)


def _hash(sha: Any, tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        sha.update(tensor.cpu().contiguous().numpy().tobytes())
