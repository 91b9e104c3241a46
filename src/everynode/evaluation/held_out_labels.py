"""The held-out labels of a fit with their out-of-fold probabilities, kept with the model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from everynode.errors import DataError
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json

#: The file in the model folder.
FILE = "held_out.safetensors"


@dataclass(frozen=True)
class HeldOutLabels:
    """Held-out labels and the predictions of networks that did not learn from them.

    Parameters
    ----------
    nodes : Tensor
        The nodes.
    ids : tuple
        Their names, or their numbers in a graph without names.
    labels : Tensor
        Their classes.
    log_probabilities : Tensor
        Their log-probabilities before the temperature (n x k).
    temperature : float
        The temperature of these log-probabilities.
    neighbors : Tensor, optional
        The mean score of the neighbors, as
        :func:`everynode.evaluation.prediction_sets.neighbor_scores` gives it. None: unknown.
    """

    nodes: Tensor
    ids: tuple[Hashable, ...]
    labels: Tensor
    log_probabilities: Tensor
    temperature: float
    neighbors: Tensor | None = None

    @property
    def probabilities(self) -> Tensor:
        """The calibrated out-of-fold probabilities (n x k, float64)."""
        return torch.softmax(self.log_probabilities / self.temperature, dim=1)

    def uncalibrated(self) -> HeldOutLabels:
        """Return the same labels with a temperature of 1."""
        same = self.temperature == 1.0
        return dataclasses.replace(
            self, temperature=1.0, neighbors=self.neighbors if same else None
        )

    def save(self, folder: Path) -> str:
        """Write the file of a model folder, and return its SHA-256."""
        tensors = {
            "nodes": self.nodes, "labels": self.labels, "log_probabilities": self.log_probabilities,
        }  # fmt: skip
        if self.neighbors is not None:
            tensors["neighbors"] = self.neighbors
        ids = [name if isinstance(name, int) else str(name) for name in self.ids]
        content: bytes = tensors_to_bytes(
            {name: value.contiguous().cpu() for name, value in tensors.items()},
            # One entry: safetensors orders several at random.
            metadata={"held_out": json.dumps({"ids": ids, "temperature": self.temperature})},
        )
        write_atomically(folder / FILE, content)
        return hashlib.sha256(content).hexdigest()

    @classmethod
    def load(cls, folder: Path, digest: str) -> HeldOutLabels:
        """Read the file of a model folder; refuse it if its SHA-256 differs."""
        path = folder / FILE
        try:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise ValueError("it does not belong to model.json")
            size = int.from_bytes(content[:8], "little")
            header = parse_json(content[8 : 8 + size])
            tensors = load_tensors(content)
            described = parse_json(header["__metadata__"]["held_out"])
            labels = cls(
                tensors["nodes"], tuple(described["ids"]), tensors["labels"],
                tensors["log_probabilities"], float(described["temperature"]),
                tensors.get("neighbors"),
            )  # fmt: skip
            labels._check()
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise DataError(
                f"{path} cannot be used ({error}): train again, or restore the folder."
            ) from error
        return labels

    def _check(self) -> None:
        """Refuse values that :meth:`save` does not write."""
        rows = len(self.nodes)
        aligned = len(self.ids) == len(self.labels) == len(self.log_probabilities) == rows
        shapes = self.nodes.ndim == self.labels.ndim == 1 and self.log_probabilities.ndim == 2
        if not (aligned and shapes):
            raise ValueError("its parts have different lengths")
        classes = self.log_probabilities.shape[1]
        if rows and not (
            self.nodes.min() >= 0 and 0 <= self.labels.min() <= self.labels.max() < classes
        ):
            raise ValueError("a node or a class is out of range")
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"its temperature is {self.temperature}")
        if self.log_probabilities.isnan().any():
            raise ValueError("a probability is NaN")
