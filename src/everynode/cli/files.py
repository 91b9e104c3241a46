"""Flags for the user's own files: which files, and the roles of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from cyclopts import Parameter

from everynode.cli.options import FILES, DataOptions
from everynode.console import say, showable
from everynode.errors import UsageError
from everynode.io.column_names import DateOrder, Unknown

if TYPE_CHECKING:
    from everynode.graph import Graph
    from everynode.io.feature_encoder import FeatureEncoder


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Tables:
    """The files of a graph, and the roles of their columns.

    Parameters
    ----------
    nodes : str, optional
        The node table: CSV, TSV (also .gz), Parquet, JSON lines, Excel (FILE.xlsx#SHEET), or a
        query (sqlite:FILE?SELECT ...; duckdb:...). Or one file with nodes and edges: GraphML, GEXF,
        JSON, npz.
    edges : str, optional
        The edge table, or an edge list.
    id : str, optional
        The id column of the nodes. Default: a column with a usual name, such as id, else the first;
        if it does not match the edges, the column that does.
    source : str, optional
        The source column of the edges. Default: source, src or from, else the first.
    target : str, optional
        The target column of the edges. Default: target, dst or to, else the second.
    weight : str, optional
        The weight column of the edges. Default: weight, else all edges count the same. `none`: off.
    unknown : {"refuse", "drop", "add"}, optional
        Edges to nodes that are not in the node table: refuse them, drop them, or add the nodes
        without labels. Default: refuse; for `predict`, as in training.
    na : tuple of str
        Another word for a missing value, such as `?`. May be given several times.
    display : str, optional
        The column with the name of each node, shown beside its id. Default: a text column called
        name or title. `none`: off.
    keep : str
        Columns of --nodes to write beside the predictions, as name,city.
    date_order : {"dmy", "mdy"}, optional
        Whether the day or the month comes first in dates such as 03/04/2020. Default: inferred from
        the other dates of the column.
    max_size : str, optional
        Largest unpacked size of a compressed file, such as 2G. Default: 100 MB or 20 times the
        file, whichever is larger (npz and Parquet: 1 GB).
    """

    nodes: str | None = None
    edges: str | None = None
    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    unknown: Unknown | None = None
    na: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    display: Annotated[str | None, Parameter(name="--name")] = None
    keep: str = ""
    date_order: DateOrder | None = None
    max_size: str | None = None

    def read(self, *, feature_encoder: FeatureEncoder | None = None, **options: Any) -> Graph:
        """Read the graph; with ``feature_encoder``, encode its features as in training."""
        from everynode.io import read
        from everynode.io.formats import size_limit

        if self.nodes is None and self.edges is None:
            raise UsageError("No graph is given. Give --nodes and --edges, or one of them.")
        columns = asdict(self)
        with size_limit(columns.pop("max_size")):
            return read(**columns | options, feature_encoder=feature_encoder)

    def keeping(self, columns: Sequence[str]) -> Self:
        """Return the same flags, with more columns to write beside the predictions."""
        kept = [name for name in self.keep.split(",") if name.strip()]
        return replace(self, keep=",".join(dict.fromkeys([*kept, *columns])))

    def recall(self) -> dict[str, Any]:
        """Return the flags that differ from their defaults, with absolute paths, for JSON."""
        default = type(self)()
        own = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value != getattr(default, name)
        }
        for name in {"nodes", "edges"} & own.keys():
            own[name] = absolute(str(own[name]))
        return own

    def spare(self, results: Iterable[Path], *also: Path | str | None) -> None:
        """Refuse results that would replace the input files, under any name."""
        from everynode.io.formats import source_file

        sources = [source_file(source) for source in (self.nodes, self.edges, *also) if source]
        inputs = [path for path in sources if path.exists()]
        for result in results:
            for path in inputs if result.exists() else ():
                if result.samefile(path):
                    raise UsageError(
                        f"The result would replace {path}, which is an input. Name another --out."
                    )

    @property
    def name(self) -> str:
        """The name of the graph: the node file, else the edge file, without ending."""
        from everynode.io.formats import source_file

        source = self.nodes or self.edges
        name = source_file(source).name if source else ""
        return showable(name).partition(".")[0] or "graph"


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Files(Tables):
    """The same flags, with the direction of the edges.

    Parameters
    ----------
    directed : bool
        Keep the direction of the edges: messages travel from source to target only.
    """

    directed: Annotated[bool, Parameter(negative="")] = False


def absolute(source: str) -> str:
    """Return a source of a table with an absolute path; a query or a sheet stays as it is."""
    path = Path(source)
    return str(path.resolve()) if path.is_file() else source


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Columns:
    """The columns to learn from.

    Parameters
    ----------
    label : str, optional
        The column of labels in --nodes; an empty cell means unlabeled. Default: `label` or `class`.
    labels : str, optional
        More labels: a table with an id and a label column. They replace those of --nodes.
    features : str
        The feature columns in --nodes, as a,b,c (or zip:category, to set the type of a column).
        `all` takes every other column; `all,-zip` leaves one out; `structure` computes numbers from
        the edges.
    """

    label: str | None = None
    labels: str | None = None
    features: str = "all"


def recorded(files: Files, columns: Columns) -> dict[str, Any]:
    """Return the flags that read a labeled graph again, for JSON."""
    labels = {"label": columns.label} if columns.label else {}
    more = {"labels": absolute(columns.labels)} if columns.labels else {}
    return {"flags": files.recall(), "columns": labels | more}


class OpenGraph(NamedTuple):
    """A graph to train on.

    Attributes
    ----------
    name : str
        The name of the graph.
    graph : Graph
        The graph.
    split : str
        The name of its split.
    digest : str
        The digest of its files or of its content.
    """

    name: str
    graph: Graph
    split: str
    digest: str


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class OwnGraph(Tables, Columns):
    """A graph in the user's files, in place of the name of a public graph."""

    def given(self, name: str | None) -> bool:
        """Whether files are given; refuse files together with a name, and neither of them."""
        files = self.nodes is not None or self.edges is not None
        if files == (name is not None):
            found = "both" if files else "neither"
            raise UsageError(
                "Give a graph of `everynode data list`, or --nodes and --edges of your own. Got "
                f"{found}."
            )
        if not files and self != OwnGraph():
            raise UsageError("Flags for columns and edges need --nodes or --edges.")
        return files

    def open(self, data: DataOptions, quiet: bool = False) -> OpenGraph:
        """Read the graph; without a split, hold out labels for validation and test."""
        from everynode.datasets.entries import CATALOG
        from everynode.io.assign_splits import assign_splits

        if data.per_class != DataOptions.per_class:
            raise UsageError("--per-class has no effect on --nodes and --edges. Leave it out.")
        graph = self.read(split=data.split, name=self.name, directed=data.directed)
        for line in () if graph.summary is None else graph.summary.lines(warnings_only=quiet):
            say(line)
        split = "own"
        if not graph.splits or not len(graph.nodes("val")):
            split = "own" if graph.splits else "drawn"
            graph, notes = assign_splits(graph, cv=1, seed=data.split_seed)
            for note in notes:
                say(note, quiet)
        name = f"own-{self.name}" if self.name in CATALOG else self.name
        device = data.usable_device()
        graph = graph if device.type == "cpu" else graph.to(device)
        return OpenGraph(name, graph, split, graph.digest)


def open_graph(
    name: str | None, own: OwnGraph, data: DataOptions, quiet: bool = False
) -> OpenGraph:
    """Return the user's graph, or a public graph by name."""
    if own.given(name):
        return own.open(data, quiet)
    assert name is not None
    graph, split = data.load(name)
    return OpenGraph(name, graph, split, data.digest(name, split))
