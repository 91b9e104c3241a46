"""The receptive fields of a network: training asks for the same nodes in every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.receptive_field import Batch, Hop, ReceptiveField
from everynode.sparse import SparseMatrix

#: Number of receptive fields kept for the next epoch.
KEPT = 4


class FieldView(NamedTuple):
    """The receptive field of some nodes, with its features.

    Attributes
    ----------
    graph : Graph or Batch
        The graph.
    nodes : Tensor
        The nodes.
    version : int
        The version counter of ``nodes``: every write to them changes it.
    field : ReceptiveField
        Their receptive field.
    features : SparseMatrix or Tensor
        The features of its first level.
    entries : Tensor or None
        Positions of these features among the graph's; None: all of them.
    """

    graph: Graph | Batch
    nodes: Tensor
    version: int
    field: ReceptiveField
    features: SparseMatrix | Tensor
    entries: Tensor | None

    def select(self, features: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
        """Return the field's part of other features of the same pattern, such as dropped ones."""
        if self.entries is None:
            return features
        if isinstance(features, SparseMatrix) and isinstance(self.features, SparseMatrix):
            return self.features.with_values(features.values.index_select(0, self.entries))
        assert isinstance(features, Tensor)  # both are sparse or both are dense
        return features.index_select(0, self.entries)


class FieldCache:
    """The latest receptive fields, by the tensor of their nodes.

    Examples
    --------
    >>> import torch
    >>> from everynode.datasets import generate
    >>> graph, nodes, cache = generate(20, 40, 8, 3), torch.tensor([0, 1]), FieldCache()
    >>> view = cache.view(graph, nodes, [Hop(graph)], graph.features)
    >>> cache.view(graph, nodes, [Hop(graph)], graph.features) is view
    True
    """

    def __init__(self) -> None:
        self._views: dict[int, FieldView] = {}

    def __len__(self) -> int:
        return len(self._views)

    def view(
        self,
        graph: Graph | Batch,
        nodes: Tensor,
        hops: Sequence[Hop],
        features: SparseMatrix | Tensor,
    ) -> FieldView:
        """Return the receptive field of the nodes over some hops, and its features."""
        view = self._views.get(id(nodes))
        version = 0 if nodes.is_inference() else nodes._version
        if (
            view is not None
            and view.nodes is nodes
            and view.version == version
            and view.graph is graph
        ):
            self._views[id(nodes)] = self._views.pop(id(nodes))  # the latest comes last
            return view
        total = hops[-1].looped_adjacency.shape[0]
        if len(nodes) and not (int(nodes.min()) >= 0 and int(nodes.max()) < total):
            raise UsageError(
                f"The nodes of graph {graph.name!r} are 0 to {total - 1}. "
                f"Got {int(nodes.min())} to {int(nodes.max())}."
            )
        field = ReceptiveField.within(hops, nodes)
        restricted = _restrict(features, field.levels[0].nodes)
        view = FieldView(graph, nodes, version, field, *restricted)
        if isinstance(graph, Graph):  # the same batch does not come again
            recent = list(self._views.items())[1 - KEPT :]
            self._views = {**dict(recent), id(nodes): view}
        return view


def _restrict(
    features: SparseMatrix | Tensor, rows: Tensor | None
) -> tuple[SparseMatrix | Tensor, Tensor | None]:
    """Return some rows of the features (None: all), and the positions of their values.

    The positions of dense features are rows.
    """
    if rows is None:
        return features, None
    if isinstance(features, Tensor):
        return features[rows], rows
    return features.rows(rows)
