"""What was understood of people's files, and what was repaired on the way: for a short table before training, and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal

from everynode.console import showable

#: So many columns are listed one by one; of more, neighbours that were taken for the same thing share a line.
LISTED = 12
#: So many classes are listed, the largest first.
CLASSES = 10


def counted(number: int, what: str) -> str:
    """A number and what it counts.

    >>> counted(1, "cell"), counted(2000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class ColumnSummary:
    """A column, and what it was taken for."""

    name: str
    #: id, label, split, source, target, weight, or the kind of feature: number, boolean, date, category, text, vector; or ignored.
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Note:
    """One clear sentence about the files: something that was repaired, or something odd that was left as it is."""

    level: Literal["repair", "warning"]
    text: str
    #: How many cells, rows or columns it is about.
    count: int = 1


@dataclass
class Notes:
    """Where the readers write down what they repaired and what they found odd."""

    notes: list[Note] = field(default_factory=list)

    def repair(self, text: str, count: int = 1) -> None:
        """Something was repaired."""
        self.notes.append(Note("repair", showable(text), count))

    def warn(self, text: str, count: int = 1) -> None:
        """Something is odd and was left as it is."""
        self.notes.append(Note("warning", showable(text), count))


@dataclass(frozen=True)
class GraphSummary:
    """What :func:`everynode.read` took people's files for.

    ``print(graph.summary)`` shows it; ``to_dict()`` is the same in plain values.
    """

    #: The files (or "the nodes table"), each with how it was read: format, delimiter, encoding, rows.
    files: Mapping[str, str]
    columns: tuple[ColumnSummary, ...]
    nodes: int
    edges: int
    directed: bool
    weighted: bool
    #: How many features there are, and whether some are computed from the structure of the graph.
    features: int
    structural: bool
    #: How many nodes each class has.
    classes: Mapping[str, int]
    #: How many labelled nodes are for training, validation and test, if a column says so.
    split: Mapping[str, int]
    notes: tuple[Note, ...] = ()

    @property
    def labelled(self) -> int:
        """How many nodes have a label."""
        return sum(self.classes.values())

    @property
    def unlabelled(self) -> int:
        """How many nodes have none."""
        return self.nodes - self.labelled

    @property
    def repairs(self) -> tuple[Note, ...]:
        """What was repaired."""
        return tuple(note for note in self.notes if note.level == "repair")

    @property
    def warnings(self) -> tuple[Note, ...]:
        """What is odd and was left as it is."""
        return tuple(note for note in self.notes if note.level == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, for JSON."""
        return {**asdict(self), "labelled": self.labelled, "unlabelled": self.unlabelled}

    def rows(self) -> list[tuple[str, str]]:
        """The short table: what, and what is known about it."""
        rows = [("file", f"{file}: {how}") for file, how in self.files.items()]
        rows += [("column", text) for text in self._column_lines()]
        rows.append(
            ("nodes", f"{self.nodes:,}: {self.labelled:,} labelled, {self.unlabelled:,} unlabelled")
        )
        kind = f"{'' if self.weighted else 'un'}weighted, {'' if self.directed else 'un'}directed"
        rows.append(("edges", f"{self.edges:,}, {kind}"))
        rows.append(
            (
                "features",
                f"{self.features:,}{', from the structure of the graph' if self.structural else ''}",
            )
        )
        if self.classes:
            largest = sorted(self.classes.items(), key=lambda item: -item[1])
            text = ", ".join(f"{name} {count:,}" for name, count in largest[:CLASSES])
            more = len(largest) - CLASSES
            rows.append(
                (
                    "classes",
                    f"{len(self.classes)}: {text}" + (f" and {more} more" if more > 0 else ""),
                )
            )
        if self.split:
            rows.append(
                ("split", ", ".join(f"{part} {count:,}" for part, count in self.split.items()))
            )
        return (
            rows
            + [("repaired", note.text) for note in self.repairs]
            + [("warning", note.text) for note in self.warnings]
        )

    def lines(self, *, warnings_only: bool = False) -> list[str]:
        """The short table as lines of text, or of it the warnings."""
        return [
            f"{what:9} {text}"
            for what, text in self.rows()
            if what == "warning" or not warnings_only
        ]

    def _column_lines(self) -> Iterator[str]:
        for kind, same in groupby(self.columns, key=lambda column: column.kind):
            group = list(same)
            if len(self.columns) <= LISTED or len(group) < 3:
                for column in group:
                    yield f"{column.name}: {kind}{', ' if column.detail else ''}{column.detail}"
            else:
                yield f"{group[0].name} to {group[-1].name}: {kind} ({len(group)} columns)"

    def __str__(self) -> str:
        return "\n".join(self.lines())
