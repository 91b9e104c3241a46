"""Graph: a checked, immutable graph with features, labels and splits, and what depends on it alone, each computed once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:  # networkx and PyG are slow to import and only needed by the conversions
    import networkx
    from torch_geometric.data import Data

    from everynode.io.feature_encoder import FeatureEncoder
    from everynode.io.summary import GraphSummary


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph that has been checked. Build it with :meth:`from_arrays` or one of the other ``from_...``.

    >>> g = Graph.from_arrays([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0, 1, 1], [1, 0, 2]], ["a", "b", None])
    >>> g
    Graph 'graph': 3 nodes, 2 edges, 2 features (dense), 2 classes, 2 labelled, 0 splits
    >>> g.degree
    tensor([1., 2., 1.])
    """

    #: n x c node features; sparse when most of them are zero.
    features: SparseMatrix | Tensor
    #: 2 x m node indices. Undirected: every edge once, the smaller index first. Directed: source, target. Never a self-loop.
    edge_index: Tensor
    #: The class index of each node, or -1.
    labels: Tensor
    #: What the class indices stand for.
    classes: tuple[Hashable, ...]
    #: One split, or several folds.
    splits: tuple[Split, ...] = ()
    #: A positive weight per edge, or None for all ones.
    edge_weight: Tensor | None = None
    #: Whether messages travel from source to target only.
    directed: bool = False
    name: str = "graph"
    #: What the nodes are called outside, if anything but 0..n-1.
    node_ids: tuple[Hashable, ...] | None = None
    #: What was tidied up on the way in, with counts: self_loops, repeated_edges, one_way_edges.
    repairs: Mapping[str, int] = field(default_factory=dict)
    #: How columns became features, if :func:`everynode.read` made the graph: given again, it makes the same features of other files.
    feature_encoder: FeatureEncoder | None = None
    #: What people's files were taken for, if :func:`everynode.read` made the graph.
    summary: GraphSummary | None = None

    # ------------------------------------------------------------------ making one

    _cache: dict[Hashable, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_features(self.features)
        check_labels(self.labels, len(self.classes))
        n = self.num_nodes
        if len(self.labels) != n:
            raise DataError(
                f"{n} nodes have features but {len(self.labels)} have labels: give one label (or -1) per node."
            )
        if self.node_ids is not None and len(self.node_ids) != n:
            raise DataError(f"{n} nodes have {len(self.node_ids)} names: give one per node.")
        for fold, split in enumerate(self.splits):
            check_split(split, n, fold)

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
        """Check and tidy arrays into a graph: loops and repeats are dropped and counted, edges made undirected unless ``directed``.

        ``features``: n x c, dense or SciPy sparse, or None for one indicator feature per node (then ``labels`` tells n).
        ``edge_index``: 2 x m node indices. ``labels``: class indices with -1 for unlabelled, or any values with None or NaN for
        unlabelled. Of repeated edges (or the two directions of one) the largest weight stays.
        """
        codes, classes = encode_labels(labels, classes)
        if features is None:
            if codes is None:
                raise DataError(
                    "A graph needs features or labels: with neither, the number of nodes is not known."
                )
            features = scipy.sparse.eye_array(len(codes), format="csr", dtype=np.float32)
        matrix = tidy_features(features)
        n = matrix.shape[0]
        if codes is None:
            codes, classes = torch.full((n,), UNLABELLED), ()
        edges, weight, repairs = tidy_edges(edge_index, edge_weight, n, directed)
        ids = None if node_ids is None else tuple(node_ids)
        return cls(
            matrix,
            edges,
            codes,
            tuple(classes),
            tuple(tidy_split(split, n) for split in splits),
            weight,
            directed,
            name,
            ids,
            repairs,
        )

    @classmethod
    def from_pyg(cls, data: Data, *, directed: bool = False, name: str = "graph") -> Graph:
        """From a PyG ``Data`` with ``x``, ``edge_index``, ``y`` and, if there, ``edge_weight`` and train/val/test masks."""
        graph = cls.from_arrays(**pyg_arrays(data), directed=directed, name=name)
        return graph if data.edge_index.device.type == "cpu" else graph.to(data.edge_index.device)

    def to_pyg(self) -> Data:
        """As a PyG ``Data``: dense features, each undirected edge both ways, masks (n, or n x folds when there are several)."""
        from torch_geometric.data import Data

        arcs, weight = self.arcs
        data = Data(x=self.dense_features, edge_index=arcs, y=self.labels)
        if weight is not None:
            data.edge_weight = weight
        if self.splits:
            for part in Split._fields:
                mask = torch.zeros(
                    len(self.splits), self.num_nodes, dtype=torch.bool, device=self.labels.device
                )
                for fold, split in enumerate(self.splits):
                    mask[fold, getattr(split, part)] = True
                data[f"{part}_mask"] = mask[0] if len(self.splits) == 1 else mask.T.contiguous()
        return data

    @classmethod
    def from_networkx(
        cls, graph: networkx.Graph, *, features: str | Sequence[str] | None = "x", label: str | None = "label",
        weight: str | None = "weight", name: str = "graph",
    ) -> Graph:  # fmt: skip
        """From a NetworkX graph of any node names.

        ``features`` is the node attribute that holds a vector, several attributes of one number each, or None for an indicator
        per node; ``label`` the attribute with the class (missing = unlabelled); ``weight`` the edge attribute, where there is one.
        A ``DiGraph`` keeps its direction.
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
        """From a SciPy adjacency matrix (row = source, column = target, value = weight); options as in :meth:`from_arrays`."""
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
        """The same graph with other splits: each three sets of nodes, as indices or as boolean masks."""
        return dataclasses.replace(
            self, splits=tuple(tidy_split(split, self.num_nodes) for split in splits)
        )

    def to(self, target: torch.dtype | torch.device | str) -> Graph:
        """The same graph with features of another type (float64 for checking gradients), or on another device."""
        moved: dict[str, Any] = {"features": self.features.to(target), "_cache": {}}
        if self.edge_weight is not None:
            moved["edge_weight"] = self.edge_weight.to(target)
        if not isinstance(target, torch.dtype):
            moved["edge_index"], moved["labels"] = (
                self.edge_index.to(target),
                self.labels.to(target),
            )
            moved["splits"] = tuple(
                Split(*(part.to(target) for part in split)) for split in self.splits
            )
        return dataclasses.replace(self, **moved)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: the fields alone; what is computed from them can be computed again."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return fields | {"_cache": {}}

    # ------------------------------------------------------------------ looking at it

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, SparseMatrix) else "dense"
        labelled = int((self.labels >= 0).sum())
        arrow = " directed" if self.directed else ""
        return (
            f"Graph {self.name!r}: {self.num_nodes} nodes, {self.num_edges}{arrow} edges, {self.num_features} features ({kind}), "
            f"{self.num_classes} classes, {labelled} labelled, {len(self.splits)} splits"
        )

    @property
    def num_nodes(self) -> int:
        """n."""
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """m: undirected edges, or arcs when direction was kept; self-loops never count."""
        return self.edge_index.shape[1]

    @property
    def num_features(self) -> int:
        """c_in."""
        return self.features.shape[1]

    @property
    def num_classes(self) -> int:
        """k."""
        return len(self.classes)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features and of everything computed from them."""
        return self.features.dtype

    def nodes(self, part: str, fold: int = 0) -> Tensor:
        """The *labelled* nodes of 'train', 'val' or 'test' in one fold; nodes of a split without a label count nowhere."""
        return labelled_nodes(self, part, fold)

    # ------------------------------------------------------------------ computed once

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return ``make()``, computed once for this key; other splits and labels share it."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @cached_property
    def digest(self) -> str:
        """A SHA-256 over the content: the same graph has the same digest wherever it was loaded."""
        sha = hashlib.sha256(
            repr((self.num_nodes, self.num_features, self.classes, self.directed)).encode()
        )
        if isinstance(self.features, SparseMatrix):
            tensors = [self.features.pattern.crow, self.features.pattern.col, self.features.values]
        else:
            tensors = [self.features]
        tensors += [
            self.edge_index,
            self.labels,
            *(part for split in self.splits for part in split),
        ]
        for tensor in [*tensors, *([] if self.edge_weight is None else [self.edge_weight])]:
            sha.update(tensor.cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()

    @cached_property
    def undirected_edges(self) -> tuple[Tensor, Tensor | None]:
        """Every edge once, the smaller index first, with its weight: what TV sums over."""
        if not self.directed:
            return self.edge_index, self.edge_weight
        edges, weight, _ = tidy_edges(
            self.edge_index, self.edge_weight, self.num_nodes, directed=False
        )
        return edges, weight

    @cached_property
    def arcs(self) -> tuple[Tensor, Tensor | None]:
        """The ways messages travel, source and target, with weights: both ways along an undirected edge."""
        if self.directed:
            return self.edge_index, self.edge_weight
        both = torch.cat([self.edge_index, self.edge_index.flip(0)], dim=1)
        return both, None if self.edge_weight is None else self.edge_weight.repeat(2)

    @cached_property
    def degree(self) -> Tensor:
        """d_i: the number (or total weight) of the undirected edges at each node, self-loops not counted."""
        edges, weight = self.undirected_edges
        ones = (
            torch.ones(edges.shape[1], dtype=self.dtype, device=edges.device)
            if weight is None
            else weight.to(self.dtype)
        )
        zeros = torch.zeros(self.num_nodes, dtype=self.dtype, device=edges.device)
        return zeros.index_add(0, edges[0], ones).index_add(0, edges[1], ones)

    @cached_property
    def looped_adjacency(self) -> SparseMatrix:
        """:math:`\\tilde A = A + I` with row = target, column = source."""
        arcs, weight = self.arcs
        sources, targets = arcs.cpu().numpy()
        data = np.ones(len(sources)) if weight is None else weight.cpu().numpy().astype(np.float64)
        n = self.num_nodes
        matrix = scipy.sparse.coo_array(
            (data, (targets, sources)), shape=(n, n)
        ) + scipy.sparse.eye_array(n)
        return SparseMatrix.from_scipy(matrix, torch.float64).to(self.labels.device)

    def _scaled_adjacency(
        self, left: float, right: float, *, symmetric: bool = False
    ) -> SparseMatrix:
        """:math:`\\tilde D^{left} \\tilde A \\tilde D^{right}`, in float64 until the last step."""
        loops = self.looped_adjacency
        pattern = loops.pattern
        degree = loops @ torch.ones(
            self.num_nodes, 1, dtype=torch.float64, device=loops.values.device
        )
        d = degree[:, 0]
        values = loops.values * d[pattern.row] ** left * d[pattern.column] ** right
        return SparseMatrix(pattern, values.to(self.dtype), symmetric=symmetric)

    @cached_property
    def gcn_operator(self) -> SparseMatrix:
        """:math:`\\tilde P = \\tilde D^{-1/2} \\tilde A \\tilde D^{-1/2}`."""
        return self._scaled_adjacency(-0.5, -0.5, symmetric=not self.directed)

    @cached_property
    def mean_operator(self) -> SparseMatrix:
        """:math:`\\tilde D^{-1} \\tilde A`: each node's mean over itself and its neighbours."""
        return self._scaled_adjacency(-1.0, 0.0)

    @cached_property
    def dense_features(self) -> Tensor:
        """The features as a dense tensor, for models that want one."""
        return (
            self.features.to_dense() if isinstance(self.features, SparseMatrix) else self.features
        )

    @cached_property
    def row_normalised_features(self) -> SparseMatrix | Tensor:
        """Each node's features divided by their sum of absolute values (all-zero rows stay zero)."""
        return row_normalised(self.features)

    @cached_property
    def edge_homophily(self) -> float:
        """The share of edges between nodes of one class, among edges whose ends are both labelled (NaN if there are none)."""
        a, b = self.labels[self.undirected_edges[0]]
        known = (a >= 0) & (b >= 0)
        return float((a == b)[known].double().mean())

    @cached_property
    def node_homophily(self) -> float:
        """The mean over nodes of the share of their neighbours that are of their class (Pei et al. 2020; NaN if no node counts)."""
        edges = self.undirected_edges[0]
        targets, sources = torch.cat([edges, edges.flip(0)], dim=1)
        known = (self.labels[targets] >= 0) & (self.labels[sources] >= 0)
        targets, sources = targets[known], sources[known]
        same = (self.labels[targets] == self.labels[sources]).double()
        count = torch.bincount(targets, minlength=self.num_nodes)
        agree = torch.zeros(self.num_nodes, dtype=torch.float64, device=same.device).index_add_(
            0, targets, same
        )
        return float((agree[count > 0] / count[count > 0]).mean())

    # ------------------------------------------------------------------ a part at a time

    @cached_property
    def neighbours(self) -> Neighbours:
        """Every node's neighbours, for drawing some of them."""
        edges, weight = self.undirected_edges
        return Neighbours.of_edges(
            edges.cpu().numpy(), self.num_nodes, None if weight is None else weight.cpu().numpy()
        )

    def rows(self, nodes: np.ndarray) -> SparseMatrix | Tensor:
        """The features of some nodes."""
        index = torch.from_numpy(nodes)
        return (
            self.features.index_select(0, index)
            if isinstance(self.features, Tensor)
            else self.features.rows(index)[0]
        )


def row_normalised(features: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
    """Each row divided by its sum of absolute values; all-zero rows stay zero."""
    if isinstance(features, SparseMatrix):
        pattern, values = features.pattern, features.values
        total = values.new_zeros(features.shape[0]).index_add_(0, pattern.row, values.abs())
        return SparseMatrix(pattern, values / torch.where(total > 0, total, 1)[pattern.row])
    total = features.abs().sum(1, keepdim=True)
    return features / torch.where(total > 0, total, 1)


def labelled_nodes(graph: Any, part: str, fold: int) -> Tensor:
    """The labelled nodes of a part of a fold, of anything that has ``name``, ``labels`` and ``splits``."""
    if not graph.splits:
        raise DataError(
            f"Graph {graph.name!r} has no split: graph.with_splits(...) gives one; a PyG Data has it as train_mask, val_mask, test_mask."
        )
    if not 0 <= fold < len(graph.splits):
        raise UsageError(
            f"Graph {graph.name!r} has folds 0 to {len(graph.splits) - 1}. Got fold {fold}."
        )
    if part not in Split._fields:
        unknown("part", part, Split._fields)
    index: Tensor = getattr(graph.splits[fold], part)
    return index[graph.labels[index] >= 0]
