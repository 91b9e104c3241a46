"""The flags for a user's own graph: its files and their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from everynode.cli.options import FILES
from everynode.console import showable
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.graph import Graph
    from everynode.io.feature_encoder import FeatureEncoder


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Files:
    """The files of a graph, and their columns."""

    nodes: Path | None = None
    """Table of nodes: CSV, TSV (.gz too), Parquet or JSON lines. Or a file with nodes and edges:
    GraphML, GEXF, JSON or npz."""
    edges: Path | None = None
    "Table of edges, or an edge list."
    id: str | None = None
    "Column of ids in --nodes. Default: `id`, else the first."
    source: str | None = None
    "Column of the first end in --edges. Default: `source`, `src` or `from`, else the first."
    target: str | None = None
    "Column of the second end in --edges."
    weight: str | None = None
    "Column of weights in --edges. Default: `weight`, else all edges weigh the same. `none`: none."
    directed: Annotated[bool, Parameter(negative="")] = False
    "Edges lead from source to target only."
    unknown: Literal["refuse", "drop", "add"] | None = None
    """Edges to nodes that --nodes does not have: refuse them, drop them, or add the nodes without
    a label. Default: refuse; for predict, as in the fit."""
    na: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    "Another spelling of a missing value, such as ?; repeat it for several."

    def read(self, *, feature_encoder: FeatureEncoder | None = None, **options: Any) -> Graph:
        """Read the graph; ``feature_encoder`` encodes columns as in an earlier fit."""
        from everynode.io import read

        if self.nodes is None and self.edges is None:
            raise UsageError("Which graph? Give --nodes, --edges, or both.")
        return read(**asdict(self), feature_encoder=feature_encoder, **options)

    def spare(self, results: Iterable[Path], *also: Path) -> None:
        """Refuse results that would replace a file that is read, under any of its names."""
        read = [
            path for path in (self.nodes, self.edges, *also) if path is not None and path.exists()
        ]
        for result in results:
            for path in read if result.exists() else ():
                if result.samefile(path):
                    raise UsageError(
                        f"The result would replace {path}, which is an input: choose another --out."
                    )

    @property
    def name(self) -> str:
        """The name of the graph: the file of nodes, or of edges, without its ending."""
        file = self.nodes or self.edges
        return "graph" if file is None else showable(file.name).partition(".")[0] or "graph"
