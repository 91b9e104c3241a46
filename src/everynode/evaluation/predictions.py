"""Predictions for every node of a graph, beside the given labels; and predictions.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from everynode.graph import UNLABELED, Graph, Split
from everynode.io.column_names import CLASH_SUFFIX
from everynode.storage.atomic import write_atomically

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier

#: The columns of predictions.csv, before those of the classes.
HEADING = ("id", "predicted", "probability", "labeled", "label", "part", "final")
#: The column of the prediction sets, and what stands between the classes of a set.
SET, SEPARATOR = "set", " | "


@dataclass(frozen=True)
class Predictions:
    """The predictions for every node of a graph.

    Parameters
    ----------
    ids : tuple
        The names of the nodes.
    classes : tuple
        The classes of the model.
    probabilities : array of shape (n, k)
        Columns as in ``classes``.
    label_names : tuple
        The label of each node, None where a node has none. The model may not know their classes.
    part : tuple of str
        ``train``, ``val``, ``test`` or the empty string.
    shown : mapping of str to sequence of str
        More columns to write, such as the names of the nodes.
    name_column : str
        The shown column with the name of each node; empty without one.
    sets : array of bool of shape (n, k), optional
        Whether each class is in the prediction set of each node. None: no sets.
    """

    ids: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]
    probabilities: npt.NDArray[np.float64]
    label_names: tuple[Hashable | None, ...]
    part: tuple[str, ...]
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    name_column: str = ""
    sets: npt.NDArray[np.bool_] | None = None

    def name(self, node: int) -> str:
        """Return the name of a node with its id, or the id alone."""
        name = self.shown[self.name_column][node] if self.name_column else ""
        return f"{name} ({self.ids[node]})" if name else str(self.ids[node])

    @cached_property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The index of the most probable class of each node."""
        return self.probabilities.argmax(1)

    @cached_property
    def probability(self) -> npt.NDArray[np.float64]:
        """The probability of each predicted class."""
        return self.probabilities.max(1)

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The given labels as indices of ``classes``; -1 for none or an unknown class."""
        index: dict[Hashable | None, int] = {name: code for code, name in enumerate(self.classes)}
        return np.array([index.get(name, UNLABELED) for name in self.label_names], dtype=np.int64)

    def nodes(self, part: str) -> npt.NDArray[np.int64]:
        """Return the nodes of a part that have a label of a known class."""
        return np.flatnonzero((np.asarray(self.part) == part) & (self.labels >= 0))

    def to_csv(self) -> str:
        """Return one row per node: :data:`HEADING`, the shown columns, and ``p_CLASS`` per class.

        The column ``final`` holds the given label, else the prediction. With sets, :data:`SET`
        follows, with the classes of each set.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        heading = HEADING if self.sets is None else (*HEADING, SET)
        shown = [name + CLASH_SUFFIX if name in heading else name for name in self.shown]
        writer.writerow([*heading, *shown, *(f"p_{name}" for name in self.classes)])
        for i, row in enumerate(self.probabilities.tolist()):
            label = self.label_names[i]
            beside = ("no", "") if label is None else ("yes", label)
            predicted = self.classes[self.predicted[i]], f"{self.probability[i]:.6g}"
            probabilities = (f"{p:.6g}" for p in row)
            final = predicted[0] if label is None else label
            more = [column[i] for column in self.shown.values()]
            if self.sets is not None:
                inside = np.flatnonzero(self.sets[i])
                more.insert(0, SEPARATOR.join(str(self.classes[c]) for c in inside))
            writer.writerow(
                [self.ids[i], *predicted, *beside, self.part[i], final, *more, *probabilities]
            )
        return file.getvalue()

    def write_csv(self, path: Path) -> None:
        """Write predictions.csv atomically."""
        write_atomically(path, self.to_csv().encode())


def is_table(path: Path) -> bool:
    """Whether a file starts like predictions.csv."""
    start = f"{','.join(HEADING)},".encode()
    with path.open("rb") as file:
        return file.read(len(start)) == start


def predictions(
    model: NodeClassifier,
    graph: Graph,
    *,
    measured: NodeClassifier | None = None,
    coverage: float | None = None,
    per_class: bool = False,
) -> Predictions:
    """Return the predictions of a classifier for every node of a graph.

    The classifier ``measured`` predicts the validation and test nodes, because it did not learn
    from their labels. With a ``coverage``, the nodes have prediction sets, which promise it within
    each class if ``per_class`` is set.
    """
    part = np.full(graph.num_nodes, "", dtype=object)
    for split in graph.splits[:1]:
        for name in Split._fields:
            part[getattr(split, name).cpu().numpy()] = name
    probabilities = model.predict_proba(graph)
    sets = None
    if coverage is not None:
        sets = model.predict_set(graph, coverage=coverage, per_class=per_class)
    if measured is not None:
        held_out = np.flatnonzero(np.isin(part, ("val", "test")))
        if sets is not None and coverage is not None:
            sets[held_out] = measured.predict_set(
                graph, coverage=coverage, per_class=per_class, nodes=held_out
            )
        probabilities[held_out] = measured.predict_proba(graph, nodes=held_out)
    codes = graph.labels.tolist()
    labels = tuple(None if code < 0 else graph.classes[code] for code in codes)
    ids = graph.node_ids if graph.node_ids is not None else tuple(range(graph.num_nodes))
    summary = graph.summary
    return Predictions(
        ids,
        tuple(model.classes_.tolist()),
        probabilities,
        labels,
        tuple(part.tolist()),
        {} if summary is None else summary.shown,
        "" if summary is None else summary.name_column,
        sets,
    )
