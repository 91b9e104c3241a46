"""A run: a frozen specification with a content hash. Nothing here needs PyTorch, so that a thousand runs are listed at once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version as installed
from typing import Any, Literal

from everynode import plugins
from everynode.datasets.entries import STAND_IN, is_generated
from everynode.models.names import MODELS
from everynode.settings import TERMS, Batches, Settings

#: Raised whenever a change of the code changes what a run computes by more than rounding: older records are then of other runs.
PROTOCOL = 1
Task = Literal["train", "time", "describe", "tsne", "tsne-input"]


@cache
def versions() -> dict[str, str]:
    """What, besides a run's own choices, decides its numbers."""
    return {"protocol": str(PROTOCOL), "torch": installed("torch").partition("+")[0]}


@dataclass(frozen=True)
class Run:
    """Everything that decides a run's result: two runs with the same ``key`` are the same run."""

    dataset: str
    #: Of the graph's content, however it was loaded.
    graph_digest: str
    split: str
    fold: int
    seed: int
    preset: str
    objective: str
    settings: Settings
    #: Training nodes per class and the seed of a random split; None for every other split.
    per_class: int | None = None
    split_seed: int | None = None
    directed: bool = False
    #: ``train``; ``time`` its steps; ``describe`` the graph; a 2-D map of what it predicts (``tsne``), or of the input (``tsne-input``).
    task: Task = "train"
    versions: dict[str, str] = field(default_factory=versions, hash=False)
    #: Training on a part of the graph at a time, by so many processes; None: on the whole graph.
    batches: Batches | None = None
    processes: int = 1

    @cached_property
    def specification(self) -> str:
        """The run as canonical JSON: what is hashed, and kept beside the record.

        A field at its default and a setting that does nothing are left out, so that a new one
        changes no older run.
        """
        said: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        }
        said["settings"] = self.settings.identity()
        if self.batches:
            said["batches"] = dataclasses.asdict(self.batches)
        names = {self.settings.backbone, *self.settings.active_terms()}
        if not names <= {*MODELS, *TERMS}:
            said["plugin"] = plugins.digest(names)
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @cached_property
    def key(self) -> str:
        """The content hash of the specification."""
        return hashlib.sha256(self.specification.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """The fields by which people look for a run, at the head of its record; of a generated graph it says that it is one."""
        return {
            "dataset": self.dataset,
            "backbone": self.settings.backbone,
            "num_layers": self.settings.num_layers,
            "objective": self.objective,
            "preset": self.preset,
            "split": self.split,
            "per_class": self.per_class,
            "split_seed": self.split_seed,
            "fold": self.fold,
            "seed": self.seed,
            "task": self.task,
            **({"stand_in": STAND_IN} if is_generated(self.dataset) else {}),
        }


def short(value: float | None) -> str:
    """A share as percent, or a dash.

    >>> short(0.7342), short(None)
    ('73.4', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"
