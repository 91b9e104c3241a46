"""The graph as the page shows it: names, columns, neighbors, and a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from everynode.app.project import Source, read_options
from everynode.graph import Graph

if TYPE_CHECKING:
    from everynode.io.summary import ColumnSummary, GraphSummary

#: The panel of a node shows this many columns.
SHOWN_COLUMNS = 60
#: The search stops after this many nodes.
HITS = 200


@dataclass(frozen=True)
class GraphView:
    """A graph with what people want to see of its nodes.

    Parameters
    ----------
    graph : Graph
        The graph, with the labels of the files.
    columns : dict of str to tuple of str
        The cells of the columns of the node table.
    name_column : str
        The column with the name of each node; empty without one.
    """

    graph: Graph
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    name_column: str = ""

    @classmethod
    def read(cls, source: Source) -> GraphView:
        """Read the files of a project; labels may be missing altogether."""
        from everynode.io import read

        graph = read(**read_options(source, few_labels=True))
        summary = graph.summary
        assert summary is not None
        roles = {"id", "label", "split"}
        keep = [
            column.name
            for column in node_columns(summary)
            if column.kind not in roles and column.name != summary.name_column
        ][:SHOWN_COLUMNS]
        if keep:
            graph = read(**read_options(source, few_labels=True, keep=keep))
            assert graph.summary is not None
            summary = graph.summary
        return cls(graph, {k: tuple(v) for k, v in summary.shown.items()}, summary.name_column)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.graph.num_nodes

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The id of each node, as text."""
        ids = self.graph.node_ids
        return tuple(map(str, range(self.num_nodes) if ids is None else ids))

    @cached_property
    def place(self) -> dict[str, int]:
        """The position of each id."""
        return {name: node for node, name in enumerate(self.ids)}

    def name(self, node: int) -> str:
        """Return the name of a node, or its id."""
        return (self.name_column and self.columns[self.name_column][node]) or self.ids[node]

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The classes of the files, as text."""
        return tuple(map(str, self.graph.classes))

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The labels of the files as indices of ``classes``; -1 for none."""
        labels: npt.NDArray[np.int64] = self.graph.labels.cpu().numpy()
        return labels

    @cached_property
    def id_column(self) -> str:
        """The name of the id column."""
        return self._role("id")

    @cached_property
    def label_column(self) -> str:
        """The name of the label column, which a table of answers takes over."""
        return self._role("label")

    def _role(self, role: str) -> str:
        summary = self.graph.summary
        columns = () if summary is None else summary.columns
        return next((column.name for column in columns if column.kind == role), role)

    @cached_property
    def _neighbors(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        sources, targets = self.graph.edge_index.cpu().numpy()
        if self.graph.directed:  # a person wants to see both
            sources, targets = np.r_[sources, targets], np.r_[targets, sources]
        order = np.argsort(sources, kind="stable")
        starts = np.searchsorted(sources[order], np.arange(self.num_nodes + 1))
        return starts, targets[order]

    def neighbors(self, node: int) -> list[int]:
        """Return the neighbors of a node."""
        starts, targets = self._neighbors
        found: list[int] = np.unique(targets[starts[node] : starts[node + 1]]).tolist()
        return found

    def cells(self, node: int) -> list[tuple[str, str]]:
        """Return the columns of a node with their cells; empty cells are left out."""
        return [(name, str(cells[node])) for name, cells in self.columns.items() if cells[node]]

    @cached_property
    def _texts(self) -> list[str]:
        shown = self.columns.get(self.name_column, ("",) * self.num_nodes)
        return [f"{a}\n{b}".casefold() for a, b in zip(self.ids, shown, strict=True)]

    def search(self, text: str) -> list[int]:
        """Return the nodes with a text in their id or name; those that start with it come first."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        hits = [node for node, value in enumerate(self._texts) if wanted in value]
        hits.sort(key=lambda node: not self._texts[node].startswith(wanted))
        return hits[:HITS]

    def summary_rows(self) -> list[tuple[str, str]]:
        """Return the reader's summary as topics and texts."""
        summary: Any = self.graph.summary
        return [] if summary is None else summary.rows()


def node_columns(summary: GraphSummary) -> list[ColumnSummary]:
    """Return the columns of the node table; the summary lists them before the ends of the edges."""
    columns = takewhile(lambda column: column.kind not in ("source", "target"), summary.columns)
    return list(columns)
