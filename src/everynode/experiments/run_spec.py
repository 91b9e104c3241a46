"""The specification of a run and its content hash.

This module does not import PyTorch, so listing thousands of runs takes no time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from everynode import plugins
from everynode.batches import Batches
from everynode.datasets.entries import STAND_IN, is_generated
from everynode.machine import versions
from everynode.models.names import MODELS
from everynode.settings import TERMS, Settings

Task = Literal["train", "time", "describe", "tsne", "tsne-input"]
#: The tasks that build a model. The others ignore the settings.
WITH_MODEL: tuple[Task, ...] = ("train", "time", "tsne")
#: The settings that are real numbers.
REAL_NUMBERS = {f.name for f in dataclasses.fields(Settings) if isinstance(f.default, float)}


@dataclass(frozen=True)
class Run:
    """Everything that determines the result of a run. Equal runs have equal keys.

    Parameters
    ----------
    dataset : str
        Name of the graph.
    graph_digest : str
        Digest of the graph's content.
    split : str
        Name of the split.
    fold, seed : int
        Fold of the split; seed of weights, dropout and halves.
    preset : str
        The source of the settings. It is a label: the key does not depend on it.
    objective : str
        Name of the objective, see :func:`everynode.objective_names.objective_name`.
    settings : Settings
        Settings of the model, the objective and the optimizer.
    per_class, split_seed : int, optional
        Training nodes per class and seed of a random split.
    directed : bool
        Whether the direction of edges is kept.
    task : str
        ``train``, ``time`` (measure a step), ``describe`` (statistics of the graph), or a
        two-dimensional map of the predictions (``tsne``) or the features (``tsne-input``).
    versions : dict of str to str
        See :func:`versions`.
    batches : Batches, optional
        The mini-batches; None trains on the full graph.
    processes : int
        Number of processes that share every step.

    Attributes
    ----------
    specification : str
        The run as canonical JSON.
    key : str
        SHA-256 of the specification.

    Examples
    --------
    >>> run = Run("cora", "24ae", "public", 0, 0, "default", "ce", Settings(mi=0, tv=0, cvg=0))
    >>> run.key == dataclasses.replace(run, settings=run.settings.replace(tv_sigma=3.0)).key
    True
    >>> run.key == dataclasses.replace(run, settings=run.settings.replace(tv=3.0)).key
    False
    """

    dataset: str
    graph_digest: str
    split: str
    fold: int
    seed: int
    preset: str
    objective: str
    settings: Settings
    per_class: int | None = None
    split_seed: int | None = None
    directed: bool = False
    task: Task = "train"
    versions: dict[str, str] = field(default_factory=versions, hash=False)
    batches: Batches | None = None
    processes: int = 1

    @cached_property
    def specification(self) -> str:
        """The run as canonical JSON: the text that is hashed and stored.

        Fields at their default and settings without effect are left out, so a new field or
        setting changes no existing key.
        """
        content: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("preset", "settings") and getattr(self, f.name) != f.default
        }
        if self.batches is not None:
            content["batches"] = dataclasses.asdict(self.batches)
        if self.task in WITH_MODEL:
            content["settings"] = _identity(self.settings)
            names = {self.settings.backbone, *self.settings.active_terms()}
            if not names <= {*MODELS, *TERMS}:
                content["plugin"] = plugins.digest(names)
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @cached_property
    def key(self) -> str:
        """The content hash of the specification."""
        return hashlib.sha256(self.specification.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return the searchable fields, which come first in the record.

        The record of a generated graph says so in ``stand_in``.
        """
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


def _identity(settings: Settings) -> dict[str, Any]:
    """Return the settings that have an effect; 1 and 1.0 are the same value."""
    return {
        name: float(value) if name in REAL_NUMBERS else value
        for name, value in settings.identity().items()
    }


def short(share: float | None) -> str:
    """Format a share as percent; a dash if there is none.

    >>> short(0.7342), short(None)
    ('73.4', '-')
    """
    return "-" if share is None or math.isnan(share) else f"{100 * share:.1f}"
