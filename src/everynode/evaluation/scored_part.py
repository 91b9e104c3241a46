"""Labeled nodes with predictions of networks that did not train on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.evaluation.calibration import chance_error
from everynode.evaluation.metrics import expected_calibration_error

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScoredPart:
    """Labeled nodes with the predictions of networks that did not train on them.

    Parameters
    ----------
    name : str
        ``test`` or ``validation``.
    nodes, labels : array of int
        The nodes and their class indices.
    log_probabilities : Tensor
        n x k, before the temperature.
    temperature : float
        The temperature that calibrates the probabilities.
    """

    name: str
    nodes: Ints
    labels: Ints
    log_probabilities: Tensor
    temperature: float

    @cached_property
    def probabilities(self) -> Floats:
        """Calibrated probabilities, n x k."""
        return torch.softmax(self.log_probabilities / self.temperature, dim=1).cpu().numpy()

    @cached_property
    def uncalibrated(self) -> Floats:
        """Probabilities before the temperature, n x k."""
        return self.log_probabilities.exp().cpu().numpy()

    @property
    def ece_before(self) -> float:
        """Calibration error before the temperature."""
        return expected_calibration_error(
            torch.from_numpy(self.uncalibrated), torch.from_numpy(self.labels)
        )

    @property
    def ece_by_chance(self) -> float:
        """Calibration error that calibrated probabilities would show on these nodes."""
        return chance_error(torch.from_numpy(self.probabilities))

    def answers(self) -> tuple[Ints, Ints]:
        """Return the true and the predicted class of each node."""
        return self.labels, self.probabilities.argmax(1)

    def confused(self, at_most: int) -> list[tuple[int, int, int]]:
        """Return the most frequent mistakes: true class, predicted class and number of nodes."""
        answers = np.stack(self.answers())
        mistakes = answers[:, answers[0] != answers[1]]
        pairs, counts = np.unique(mistakes, axis=1, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:at_most]
        return [(int(pairs[0, i]), int(pairs[1, i]), int(counts[i])) for i in order]

    def confusion(self, num_classes: int) -> list[list[int]]:
        """Return the number of nodes by true class (rows) and predicted class (columns)."""
        codes = self.labels * num_classes + self.probabilities.argmax(1)
        counts = np.bincount(codes, minlength=num_classes**2)
        table: list[list[int]] = counts.reshape(num_classes, num_classes).tolist()
        return table


class ClassCounts(NamedTuple):
    """Counts of one class.

    Attributes
    ----------
    name : str
        The name of the class.
    train : int
        Labeled training nodes of the class.
    true, called, right : int
        Nodes of the scored part with this label, with this prediction, and with both.
    predicted : int
        Predictions of the class among all nodes.
    """

    name: str
    train: int
    true: int
    called: int
    right: int
    predicted: int
