"""What a classifier says of every node of a graph, beside what was known."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from everynode.estimator import NodeClassifier
from everynode.graph import UNLABELLED, Graph, Split

#: The columns of a table of predictions, before those of the classes.
HEADING = ("id", "predicted", "probability", "labelled", "label", "part")


@dataclass(frozen=True)
class Predictions:
    """Of every node: the probability of each class, the label it was given, and the part it was in."""

    #: What the nodes are called.
    ids: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]
    #: n x k, columns as in ``classes``.
    probabilities: npt.NDArray[np.float64]
    #: The given labels, None where there was none. They may be of classes that the model does not know.
    given: tuple[Hashable | None, ...]
    #: train, val, test, or nothing.
    part: tuple[str, ...]

    @cached_property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The index of the most probable class of each node."""
        return self.probabilities.argmax(1)

    @cached_property
    def probability(self) -> npt.NDArray[np.float64]:
        """How sure the model is of each prediction."""
        return self.probabilities.max(1)

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The given labels as indices of ``classes``; -1 for none, or for a class that the model does not know."""
        index: dict[Hashable | None, int] = {name: code for code, name in enumerate(self.classes)}
        return np.array([index.get(name, UNLABELLED) for name in self.given], dtype=np.int64)

    def nodes(self, part: str) -> npt.NDArray[np.int64]:
        """The nodes of a part whose label is known."""
        return np.flatnonzero((np.asarray(self.part) == part) & (self.labels >= 0))

    def to_csv(self) -> str:
        """A row per node: id, predicted, probability, labelled (yes or no), label, part, and the probability of each class.

        A class's column is called p_ and its name.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*HEADING, *(f"p_{name}" for name in self.classes)])
        names, sure = self.predicted, self.probability
        for i, row in enumerate(self.probabilities.tolist()):
            label = self.given[i]
            known: list[Any] = [
                "no" if label is None else "yes",
                "" if label is None else label,
                self.part[i],
            ]
            writer.writerow(
                [
                    self.ids[i],
                    self.classes[names[i]],
                    f"{sure[i]:.6g}",
                    *known,
                    *(f"{p:.6g}" for p in row),
                ]
            )
        return file.getvalue()


def is_table(path: Path) -> bool:
    """Whether a file begins as a table of predictions does."""
    begins = f"{','.join(HEADING)},".encode()
    with path.open("rb") as file:
        return file.read(len(begins)) == begins


def predictions(model: NodeClassifier, graph: Graph) -> Predictions:
    """What the classifier says of every node of the graph."""
    part = np.full(graph.num_nodes, "", dtype=object)
    for split in graph.splits[:1]:
        for name in Split._fields:
            part[getattr(split, name).cpu().numpy()] = name
    given = tuple(None if code < 0 else graph.classes[code] for code in graph.labels.tolist())
    ids = graph.node_ids if graph.node_ids is not None else tuple(range(graph.num_nodes))
    return Predictions(
        ids, tuple(model.classes_.tolist()), model.predict_proba(graph), given, tuple(part.tolist())
    )
