"""The flags that say where people's own graph is, and what its columns are."""

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
    """Which files, and which of their columns."""

    nodes: Path | None = None
    "The table of nodes: CSV, TSV (.gz too), Parquet or JSON lines; or a file of nodes and edges: GraphML, GEXF, JSON, npz."
    edges: Path | None = None
    "The table of edges, or an edge list."
    id: str | None = None
    "The nodes' column of ids; default: one of that name, else the first."
    source: str | None = None
    "The edges' column of the first end; default: source, src or from, else the first."
    target: str | None = None
    "The edges' column of the second end."
    weight: str | None = None
    "The edges' column of weights; default: one of that name, else all edges count the same. `none`: no weights."
    directed: Annotated[bool, Parameter(negative="")] = False
    "Edges lead from source to target only."
    unknown: Literal["refuse", "drop", "add"] | None = None
    """Edges to nodes that the table of nodes does not have: refuse or drop them, or add these nodes, unlabelled. Default: refuse; of
    predict, as the model's fit was told."""
    na: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    "One more way in which the files write a missing value, such as ?; may be given several times."

    def read(self, *, feature_encoder: FeatureEncoder | None = None, **options: Any) -> Graph:
        """The graph in the files; ``feature_encoder``: turn columns into features as another time."""
        from everynode.io import read

        if self.nodes is None and self.edges is None:
            raise UsageError("Which graph? Give --nodes and --edges (or one of them).")
        return read(**asdict(self), feature_encoder=feature_encoder, **options)

    def spare(self, results: Iterable[Path], *also: Path) -> None:
        """Refuse results that would replace these files, or others that are read, under this name or another."""
        read = [
            path for path in (self.nodes, self.edges, *also) if path is not None and path.exists()
        ]
        for result in results:
            for path in read if result.exists() else ():
                if result.samefile(path):
                    raise UsageError(
                        f"The result would replace {path}, which is read here: name another --out."
                    )

    @property
    def name(self) -> str:
        """What to call the graph: the nodes' file without its ending, or that of the edges."""
        file = self.nodes or self.edges
        return "graph" if file is None else showable(file.name).partition(".")[0] or "graph"
