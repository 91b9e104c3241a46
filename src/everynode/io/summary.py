"""Summary of the files that were read: column types, counts, repairs and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Literal, NamedTuple

from everynode.console import showable

#: Up to this many columns are listed one by one. Beyond, runs of columns of a type share a line.
LISTED_COLUMNS = 12
#: At most this many classes are listed, the largest first.
LISTED_CLASSES = 10


def counted(number: int, noun: str) -> str:
    """Format a number with its noun.

    >>> counted(1, "cell"), counted(2000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class ColumnSummary:
    """The role or type of one column.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : str
        A role (id, label, split, source, target, weight), the type of a feature (number, boolean,
        date, category, text, vector), or "ignored" or "not used".
    detail : str
        How the column was encoded, or why it was ignored.
    """

    name: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Note:
    """One sentence about the files.

    Attributes
    ----------
    level : {"repair", "warning"}
        A repair, or something suspicious that was left unchanged.
    text : str
        The sentence.
    count : int
        The number of affected cells, rows or columns.
    """

    level: Literal["repair", "warning"]
    text: str
    count: int = 1


class Leak(NamedTuple):
    """A feature column with label leakage.

    Attributes
    ----------
    column : str
        The name of the column.
    kind : {"determines", "nearly", "filled"}
        The column determines the label, nearly determines it, or is filled only in labeled rows.
    """

    column: str
    kind: Literal["determines", "nearly", "filled"]


@dataclass
class Notes:
    """Collect the repairs and warnings of the readers.

    Attributes
    ----------
    notes : list of Note
        Repairs and warnings.
    leaks : list of Leak
        Feature columns with label leakage.
    unmatched_edges : int
        The number of edges with an end that is not in the node table.
    unused_weight : str
        A column of the edge table that may hold weights and has no role; empty without one.
    time_split : str
        How the labels were divided by time; empty if they were not.
    """

    notes: list[Note] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)
    unmatched_edges: int = 0
    unused_weight: str = ""
    time_split: str = ""

    def repair(self, text: str, count: int = 1) -> None:
        """Record a repair."""
        self.notes.append(Note("repair", showable(text), count))

    def warn(self, text: str, count: int = 1) -> None:
        """Record something suspicious that was left unchanged."""
        self.notes.append(Note("warning", showable(text), count))


@dataclass(frozen=True)
class GraphSummary:
    """Summary of what :func:`everynode.read` found in the files.

    ``print(graph.summary)`` shows it, and :meth:`to_dict` returns it as plain values.

    Attributes
    ----------
    files : mapping of str to str
        How each file was read: rows, format, delimiter, encoding.
    columns : tuple of ColumnSummary
        The role or type of each column.
    nodes, edges, features : int
        The size of the graph.
    directed, weighted : bool
        Whether edges have a direction, and whether they have weights.
    structural : bool
        Whether some features are computed from the edges.
    classes : mapping of str to int
        The number of nodes per class.
    split : mapping of str to int
        The number of labeled nodes per part of the split. Empty without a split.
    notes : tuple of Note
        Repairs and warnings.
    leaks : tuple of Leak
        The feature columns with label leakage.
    edge_rows, unmatched_edges : int
        The rows of the edge table, and those with an end that is not in the node table.
    unused_weight : str
        A column of the edge table that may hold weights and is not used; empty without one.
    shown : mapping of str to tuple of str
        The cells of the columns to show beside the ids. They are not part of :meth:`to_dict`.
    name_column : str
        The shown column with the name of each node; empty without one.
    time_split : str
        How the labels were divided by time, as a sentence; empty if they were not.

    Examples
    --------
    >>> from everynode import read
    >>> people = {"id": ["ann", "bob", "eve"], "team": ["red", "blue", None]}
    >>> summary = read(people, {"from": ["ann"], "to": ["bob"]}, label="team").summary
    >>> summary.nodes, summary.classes, summary.unlabeled
    (3, {'blue': 1, 'red': 1}, 1)
    """

    files: Mapping[str, str]
    columns: tuple[ColumnSummary, ...]
    nodes: int
    edges: int
    directed: bool
    weighted: bool
    features: int
    structural: bool
    classes: Mapping[str, int]
    split: Mapping[str, int]
    notes: tuple[Note, ...] = ()
    leaks: tuple[Leak, ...] = ()
    edge_rows: int = 0
    unmatched_edges: int = 0
    unused_weight: str = ""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    name_column: str = ""
    time_split: str = ""

    @property
    def labeled(self) -> int:
        """The number of labeled nodes."""
        return sum(self.classes.values())

    @property
    def unlabeled(self) -> int:
        """The number of unlabeled nodes."""
        return self.nodes - self.labeled

    @property
    def repairs(self) -> tuple[Note, ...]:
        """The repairs."""
        return tuple(note for note in self.notes if note.level == "repair")

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The warnings: suspicious things that were left unchanged."""
        return tuple(note for note in self.notes if note.level == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        plain = asdict(replace(self, shown={}))
        del plain["shown"]
        return {**plain, "labeled": self.labeled, "unlabeled": self.unlabeled}

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of a topic and a text."""
        rows = [("file", f"{file}: {how}") for file, how in self.files.items()]
        rows += [("column", text) for text in self._column_lines()]
        counts = f"{self.nodes:,}: {self.labeled:,} labeled, {self.unlabeled:,} unlabeled"
        rows.append(("nodes", counts))
        kind = f"{'' if self.weighted else 'un'}weighted, {'' if self.directed else 'un'}directed"
        rows.append(("edges", f"{self.edges:,}, {kind}"))
        origin = ", from the structure of the graph" if self.structural else ""
        rows.append(("features", f"{self.features:,}{origin}"))
        if self.classes:
            largest = sorted(self.classes.items(), key=lambda item: -item[1])
            text = ", ".join(f"{name} {count:,}" for name, count in largest[:LISTED_CLASSES])
            more = len(largest) - LISTED_CLASSES
            text += f" and {more} more" if more > 0 else ""
            rows.append(("classes", f"{len(self.classes)}: {text}"))
        if self.split:
            parts = ", ".join(f"{part} {count:,}" for part, count in self.split.items())
            rows.append(("split", parts))
        if self.time_split:
            rows.append(("time", self.time_split))
        rows += [("repaired", note.text) for note in self.repairs]
        return rows + [("warning", note.text) for note in self.warnings]

    def lines(self, *, warnings_only: bool = False) -> list[str]:
        """Return the summary, or its warnings only, as lines of text."""
        return [
            f"{topic:9} {text}"
            for topic, text in self.rows()
            if topic == "warning" or not warnings_only
        ]

    def _column_lines(self) -> Iterator[str]:
        for kind, columns in groupby(self.columns, key=lambda column: column.kind):
            group = list(columns)
            if len(self.columns) <= LISTED_COLUMNS or len(group) < 3:
                for column in group:
                    yield f"{column.name}: {kind}{', ' if column.detail else ''}{column.detail}"
            else:
                yield f"{group[0].name} to {group[-1].name}: {kind} ({len(group)} columns)"

    def __str__(self) -> str:
        return "\n".join(self.lines())
