"""Sample: a part of a graph, with the share that each node and edge has in the whole graph.

A term of the objective sees a sample. The full graph is the sample of everything, so one
implementation of a term serves full batches and mini-batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from everynode.errors import UsageError
from everynode.graph.graph import Graph
from everynode.sparse import SparseMatrix


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """A part of a graph: r rows (its nodes), the edges between them, and their shares.

    With the shares as weights, a sum over the sample estimates a mean over the whole graph:
    :meth:`mean_over_nodes`, :meth:`mean_over_labeled` and :meth:`mean_over_edges` use them.
    Indices and ends of edges refer to the rows. A term receives the logits of the rows, in this
    order.

    Attributes
    ----------
    nodes : Tensor
        The node of each row, as an index of the graph.
    node_share : Tensor
        The share of each row in a mean over all nodes of the graph; 0 for a row that is only the
        end of an edge.
    labeled, labels : Tensor
        The rows with a training label, and their class indices.
    label_share : float
        The share of one labeled row in a mean over all training nodes of the graph.
    edges : Tensor
        Pairs of rows that an edge joins (2 x e), each undirected edge once in the full graph.
    edge_share : Tensor
        The share of each edge in a mean over all edges of the graph, times its weight.
    scale : Tensor
        :math:`1 / \\sqrt{d + 1}` of each row, with the degree in the whole graph.
    features : SparseMatrix, Tensor or None
        The input features of the rows; None if they were not drawn.
    graph : Graph or None
        The graph, if the sample is all of it.
    all_labeled, all_labels : Tensor
        The training nodes of the step in all processes, as indices of the graph, and their classes.
    first_labeled : int
        The position of the first labeled row of this process among ``all_labeled``.
    coverage : float
        The share of the graph's nodes that all processes together see in this step.
    drawn_edges : Tensor or None
        The ``edges``; None if no edges were drawn, because no term needs them.

    Examples
    --------
    >>> from everynode.graph import Split
    >>> nodes = torch.arange(4)
    >>> graph = Graph.from_arrays(
    ...     torch.eye(4), [[0, 1, 2], [1, 2, 3]], [0, 0, 1, 1],
    ...     splits=[Split(nodes[:2], nodes[2:3], nodes[3:])],
    ... )
    >>> sample = Sample.of_graph(graph, fold=0)
    >>> sample
    Sample of 4 nodes (2 labeled) and 3 edges, the full graph
    >>> sample.mean_over_nodes(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    tensor(3.)
    """

    nodes: Tensor
    node_share: Tensor
    labeled: Tensor
    labels: Tensor
    label_share: float
    drawn_edges: Tensor | None
    edge_share: Tensor
    scale: Tensor
    features: SparseMatrix | Tensor | None = None
    graph: Graph | None = None
    all_labeled: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    all_labels: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    first_labeled: int = 0
    coverage: float = 1.0

    _cache: dict[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of_graph(cls, graph: Graph, fold: int | None = None) -> Sample:
        """Return the sample of everything.

        Parameters
        ----------
        graph : Graph
            The graph.
        fold : int, optional
            The fold whose training nodes are the labeled rows; None: no row is labeled.
        """
        n, device = graph.num_nodes, graph.labels.device
        nodes = torch.arange(n, device=device)
        edges, weight = graph.undirected_edges
        m = edges.shape[1]
        edge_share = torch.full((1,), 1.0 / max(m, 1), dtype=torch.float64, device=device)
        edge_share = edge_share.expand(m) if weight is None else edge_share * weight.double()
        labeled = nodes[:0] if fold is None else graph.nodes("train", fold)
        labels = graph.labels[labeled]
        return cls(
            nodes=nodes,
            node_share=torch.full((n,), 1.0 / max(n, 1), dtype=torch.float64, device=device),
            labeled=labeled,
            labels=labels,
            label_share=1.0 / max(len(labeled), 1),
            drawn_edges=edges,
            edge_share=edge_share,
            scale=(graph.degree.double() + 1.0).rsqrt(),
            features=graph.features,
            graph=graph,
            all_labeled=labeled,
            all_labels=labels,
        )

    @property
    def is_full(self) -> bool:
        """Whether the sample is the full graph."""
        return self.graph is not None

    @property
    def edges(self) -> Tensor:
        """Pairs of rows that an edge joins (2 x e), each undirected edge once."""
        if self.drawn_edges is None:
            raise UsageError(
                "This mini-batch has no edges, because no term asked for them: "
                'add "edges" to the `needs` of the term that reads sample.edges.'
            )
        return self.drawn_edges

    @property
    def num_nodes(self) -> int:
        """The number of rows, r."""
        return len(self.nodes)

    def __repr__(self) -> str:
        whole = ", the full graph" if self.is_full else ""
        num_edges = 0 if self.drawn_edges is None else self.drawn_edges.shape[1]
        return (
            f"Sample of {self.num_nodes} nodes ({len(self.labeled)} labeled) "
            f"and {num_edges} edges{whole}"
        )

    def mean_over_nodes(self, values: Tensor) -> Tensor:
        """Estimate the mean over all nodes of the graph, from one value for each row."""
        return torch.dot(values, self.node_share.to(values))

    def mean_over_labeled(self, values: Tensor) -> Tensor:
        """Estimate the mean over all training nodes, from one value for each labeled row."""
        return values.sum() * self.label_share

    def mean_over_edges(self, values: Tensor) -> Tensor:
        """Estimate the mean over all edges of the graph, from one value for each edge.

        The weight of an edge, where there is one, multiplies its value.
        """
        return torch.dot(values, self.edge_share.to(values))

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return ``make()``, computed once for this key.

        The value must depend on nodes, edges and features alone, because folds and labels of one
        graph share it. See :meth:`everynode.Graph.cached`.
        """
        if self.graph is not None:
            return self.graph.cached(key, make)
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def with_features(self, features: SparseMatrix | Tensor) -> Sample:
        """Return the same sample with features of the rows, and perhaps of further nodes."""
        r = self.num_nodes
        if features.shape[0] > r:
            if isinstance(features, SparseMatrix):
                features = features.rows(torch.arange(r, device=features.values.device))[0]
            else:
                features = features[:r]
        return dataclasses.replace(self, features=features, _cache={})

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Sample:
        """Return the same sample on another device; the features stay where they are."""
        if self.nodes.device == torch.device(device):
            return self
        moved = {
            name: getattr(self, name).to(device, non_blocking=non_blocking)
            for name in ("nodes", "node_share", "labeled", "labels", "drawn_edges",
                         "edge_share", "scale", "all_labeled", "all_labels")
            if getattr(self, name) is not None
        }  # fmt: skip
        return dataclasses.replace(self, **moved)

    def __deepcopy__(self, memo: dict[int, Any]) -> Sample:
        """Return the sample itself: nothing in it changes."""
        return self
