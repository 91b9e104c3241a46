"""The parts of a prediction in the user's names: columns, words, neighbors and labeled nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from everynode.explanations.changes import Change, Surroundings
from everynode.graph import Graph
from everynode.io.column_encoder import ColumnEncoder

Kind = Literal["column", "word", "position", "neighbor", "labeled node"]
#: Kinds of columns whose features are explained one by one.
OF_WORDS = ("text", "list")
#: Digits of a value that is shown.
DIGITS = 4


@dataclass(frozen=True)
class Part:
    """One thing that a prediction may rest on.

    Attributes
    ----------
    kind : str
        ``column`` and ``word`` (of the node itself), ``position`` (features computed from the
        edges), ``neighbor``, or ``labeled node`` (two edges away).
    name : str
        The name of the column or node, or the word with its column.
    value : str
        The value of a column, or the label of a node; empty without one.
    features : tuple of int
        The features of the node that belong to it.
    nodes : tuple of int
        The node; empty for columns and words.
    """

    kind: Kind
    name: str
    value: str = ""
    features: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def change(self) -> Change:
        """The change that takes the part away."""
        return Change(self.features, self.nodes)

    @property
    def text(self) -> str:
        """The part in words."""
        if self.nodes:
            label = f" (label {self.value})" if self.value else ""
            return f"{self.kind} {self.name}{label}"
        if self.kind == "column":
            return f"{self.name} = {self.value}" if self.value else self.name
        return self.name


def node_name(graph: Graph, node: int) -> str:
    """Return the name of a node with its id, or the id alone."""
    identity = str(node if graph.node_ids is None else graph.node_ids[node])
    summary = graph.summary
    name = ""
    if summary is not None and summary.name_column:
        name = summary.shown[summary.name_column][node]
    return f"{name} ({identity})" if name else identity


def own_parts(surroundings: Surroundings, node: int) -> list[Part]:
    """Return the columns and words of a node that differ from their neutral values."""
    row, neutral = surroundings.row(node), surroundings.neutral
    differs = row != neutral
    return [
        part for part in _all_parts(surroundings.graph, row) if differs[list(part.features)].any()
    ]


def node_parts(surroundings: Surroundings, node: int) -> list[Part]:
    """Return the neighbors of a node, and the labeled nodes two edges away."""
    graph = surroundings.graph
    near = surroundings.neighbors(np.array([node]))
    near = near[near != node]
    further = np.setdiff1d(surroundings.neighbors(near), [*near, node]) if len(near) else near
    labels = graph.labels.cpu().numpy()

    def part(kind: Kind, other: int) -> Part:
        label = "" if labels[other] < 0 else str(graph.classes[labels[other]])
        return Part(kind, node_name(graph, other), label, nodes=(other,))

    return [
        *(part("neighbor", other) for other in near.tolist()),
        *(part("labeled node", other) for other in further[labels[further] >= 0].tolist()),
    ]


def _all_parts(graph: Graph, row: np.ndarray) -> Iterator[Part]:
    """Yield the parts of a row of features."""
    encoder, start = graph.feature_encoder, 0
    if encoder is None:
        for i in np.flatnonzero(row).tolist() if len(row) > 64 else range(len(row)):
            yield Part("column", f"feature {i}", _number(float(row[i])), (i,))
        return
    for start in range(encoder.matrix):
        yield Part("column", f"feature {start}", _number(float(row[start])), (start,))
    start = encoder.matrix
    for column in encoder.columns:
        names = column.feature_names
        span = tuple(range(start, start + len(names)))
        start += len(names)
        if column.kind in OF_WORDS:
            words = len(column.words)
            for i, name in zip(span[:words], names[:words], strict=True):
                if row[i]:
                    yield Part("word", name, "", (i,))
            if span[words:] and row[list(span[words:])].any():
                yield Part("column", column.name, "missing", span[words:])
        elif span:
            yield Part("column", column.name, _value(column, row[list(span)]), span)
    if start < len(row):
        rest = tuple(range(start, len(row)))
        yield Part("position", "its place in the graph", "", rest)


def _value(column: ColumnEncoder, values: np.ndarray) -> str:
    """Return the value of a column as the user wrote it, as far as the features say."""
    if column.missing and values[-1]:
        return "missing"
    if column.kind == "category":
        names = [*column.words, *["another value"] * column.other]
        where = np.flatnonzero(values[: len(names)])
        return str(names[where[0]]) if len(where) else "an unknown value"
    if column.kind == "boolean":
        return "yes" if values[0] else "no"
    if column.kind not in ("number", "date"):
        return ""
    scale = (column.scale or (1.0,))[0]
    number = float(values[0]) * scale + (column.center or (0.0,))[0]
    if column.kind == "date":
        return str(np.datetime64(round(number), "D"))
    if column.log:
        return _number(float(np.expm1(number)))
    exact = 5 - int(np.floor(np.log10(scale)))  # features are in single precision
    return _number(round(number, exact))


def _number(value: float) -> str:
    return f"{value:.{DIGITS}g}"
