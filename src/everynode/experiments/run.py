"""A run: a frozen specification with a content hash, and the record it leaves."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everynode import __version__
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training import Fitted, evaluate, fit
from everynode.training.loop import Report


@dataclass(frozen=True)
class Run:
    """Everything that decides a run's result: two runs with the same ``key`` are the same run."""

    dataset: str
    graph_digest: str
    split: str
    fold: int
    seed: int
    preset: str
    objective: str
    settings: Settings
    version: str = __version__

    @property
    def key(self) -> str:
        """The content hash of the specification."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()

    def execute(self, graph: Graph, *, report: Report | None = None, checkpoint: Path | None = None) -> Fitted:
        """Train; the test nodes are not looked at."""
        return fit(graph, self.settings, fold=self.fold, seed=self.seed, report=report, checkpoint=checkpoint)

    def record(self, fitted: Fitted, graph: Graph) -> dict[str, Any]:
        """What the run got: the validation-selected epoch's scores, the test nodes being looked at here, once."""
        return {
            "dataset": self.dataset,
            "backbone": self.settings.backbone,
            "objective": self.objective,
            "preset": self.preset,
            "split": self.split,
            "fold": self.fold,
            "seed": self.seed,
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "val_loss": fitted.metrics["val_loss"],
            "val_accuracy": fitted.metrics["val_accuracy"],
            "test_accuracy": evaluate(fitted.network, graph, "test", self.fold),
            "seconds": round(fitted.seconds, 4),
            "seconds_per_epoch": round(fitted.seconds / fitted.epochs, 6),
            "interrupted": fitted.interrupted,
            "settings": dataclasses.asdict(self.settings),
            "key": self.key,
            "version": self.version,
        }


def short(value: float | None) -> str:
    """A share as percent, or a dash.

    >>> short(0.7342), short(None)
    ('73.4', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"
