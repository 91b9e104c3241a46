"""A round: the result of one training, as files that the page reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from everynode.errors import DataError
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json
from everynode.storage.plain_values import from_plain

#: The arrays of a round, and its facts. The facts are written last.
ARRAYS, FACTS = "round.safetensors", "round.json"
#: The nodes to label, each with the reason.
QUEUE_FILE = "queue.json"


@dataclass(frozen=True)
class Facts:
    """The facts about a round.

    Parameters
    ----------
    classes : tuple of str
        The classes.
    how : str
        What was trained, in words.
    seconds : float
        The time of the training.
    finished : float
        When the training ended, in seconds since 1970.
    labels : int
        The number of labels that it learned from.
    answered : int
        The answers of people among them.
    right, judged : int
        The held-out labels, and those that were predicted right.
    accuracy : tuple of float
        The share of right ones with the ends of its 95% interval.
    coverage : float or None
        The coverage of the prediction sets; None: too few held-out labels.
    interrupted : bool
        Whether somebody stopped the training.
    """

    classes: tuple[str, ...]
    how: str
    seconds: float
    finished: float
    labels: int
    answered: int
    right: int
    judged: int
    accuracy: tuple[float, ...]
    coverage: float | None = None
    interrupted: bool = False


@dataclass(frozen=True)
class Round:
    """The result of a training.

    Build it with :meth:`load`.

    Parameters
    ----------
    folder : Path
        The folder of the round.
    facts : Facts
        Its facts.
    arrays : dict of str to array
        ``positions`` (n x 2), ``probabilities`` (n x k), ``sets`` (n x k, may be missing),
        ``held_out`` and ``held_out_labels`` (the nodes that were judged, and their labels),
        ``held_out_predicted`` and ``queue`` (the nodes to label, the first first).
    """

    folder: Path
    facts: Facts
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def load(cls, folder: Path) -> Round:
        """Read the files of a round."""
        try:
            facts = from_plain(Facts, parse_json((folder / FACTS).read_text(encoding="utf-8")))
            arrays = load((folder / ARRAYS).read_bytes())
        except (OSError, ValueError, SafetensorError) as error:
            raise DataError(f"{folder} cannot be read ({error}): remove it and retrain.") from error
        return cls(folder, facts, arrays)

    def write(self) -> None:
        """Write the arrays, then the facts."""
        write_atomically(self.folder / ARRAYS, save(self.arrays))
        write_atomically(self.folder / FACTS, json.dumps(asdict(self.facts), indent=1).encode())

    @property
    def number(self) -> int:
        """The number of the round, from 1."""
        return int(self.folder.name)

    @property
    def probabilities(self) -> npt.NDArray[np.float32]:
        """The probabilities, n x k."""
        return self.arrays["probabilities"]

    @cached_property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The most probable class of each node."""
        best: npt.NDArray[np.int64] = self.probabilities.argmax(1)
        return best

    @cached_property
    def certainty(self) -> npt.NDArray[np.float32]:
        """The probability of the most probable class."""
        best: npt.NDArray[np.float32] = self.probabilities.max(1)
        return best

    @cached_property
    def judged(self) -> dict[int, int]:
        """The class that networks predicted for each held-out label, which they had not seen."""
        nodes = self.arrays["held_out"].tolist()
        return dict(zip(nodes, self.arrays["held_out_predicted"].tolist(), strict=True))

    def queue(self) -> dict[int, str]:
        """Return the nodes to label with the reason of each; the least certain follow."""
        file = self.folder / QUEUE_FILE
        chosen = dict(parse_json(file.read_text(encoding="utf-8"))) if file.exists() else {}
        rest = [int(node) for node in self.arrays["queue"] if int(node) not in chosen]
        return chosen | dict.fromkeys(rest, "among the least certain predictions")

    def set_of(self, node: int) -> list[int] | None:
        """Return the prediction set of a node; None without sets."""
        sets = self.arrays.get("sets")
        return None if sets is None else np.flatnonzero(sets[node]).tolist()

    def map_bytes(self, labels: Sequence[int], classes: Sequence[str]) -> bytes:
        """Return the map for the page: the number of nodes, then one array after the other.

        float32 positions (2n), int16 predictions, int16 ``labels`` (-1: none), uint8 certainty,
        and uint8 flags: 1 if the label differs from the prediction of networks that had not seen
        it. Both are indices of ``classes``, which has at least the classes of the round.
        """
        given = np.asarray(labels, np.int16)
        codes = np.array([classes.index(name) for name in self.facts.classes], np.int16)
        predicted = codes[self.predicted]
        unseen = predicted.copy()
        unseen[self.arrays["held_out"]] = codes[self.arrays["held_out_predicted"]]
        differs = ((given >= 0) & (given != unseen)).astype(np.uint8)
        certainty = np.round(255 * self.certainty).astype(np.uint8)
        parts = [
            np.array([len(given)], np.uint32),
            np.ascontiguousarray(self.arrays["positions"], np.float32),
            predicted,
            given,
            certainty,
            differs,
        ]
        return b"".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class Comparison:
    """Two rounds on the same held-out labels.

    Parameters
    ----------
    nodes : int
        The labels that both rounds held out.
    before, after : int
        How many each of them predicted right.
    new : int
        The labels that only the later round has.
    new_right : int
        Those that the earlier round had predicted right, before anybody answered.
    """

    nodes: int
    before: int
    after: int
    new: int
    new_right: int

    @classmethod
    def of(cls, before: Round, after: Round) -> Comparison:
        """Compare two rounds by the names of their classes."""
        names, old = after.facts.classes, before.facts.classes
        labels = after.arrays["held_out_labels"].tolist()
        truth = dict(zip(after.arrays["held_out"].tolist(), labels, strict=True))
        both = [node for node in truth if node in before.judged]
        new = [node for node in truth if node not in before.judged]
        return cls(
            len(both),
            sum(old[before.judged[node]] == names[truth[node]] for node in both),
            sum(after.judged[node] == truth[node] for node in both),
            len(new),
            sum(old[before.predicted[node]] == names[truth[node]] for node in new),
        )
