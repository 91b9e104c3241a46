"""Fit one model to a graph: folds, successive halving of its objectives, more networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from everynode.batches import Batches
from everynode.datasets.splits import FEW
from everynode.graph import Graph
from everynode.progress import Bar, StopEstimate, describe
from everynode.selection.cross_validation import check_monitor, with_validation
from everynode.selection.ensemble import train_more
from everynode.selection.successive_halving import Standing, successive_halving
from everynode.settings import Settings
from everynode.training.callbacks import Callback
from everynode.training.result import TrainingResult


class SingleFit(NamedTuple):
    """The networks of a fit with one model.

    Attributes
    ----------
    graph : Graph
        The graph with its folds.
    folds : sequence of int
        The folds of the networks.
    results : list of TrainingResult
        The networks.
    standings : dict of str to Standing
        The validation result of each candidate.
    total : int
        The planned number of networks.
    """

    graph: Graph
    folds: Sequence[int]
    results: list[TrainingResult]
    standings: dict[str, Standing]
    total: int

    @property
    def interruption(self) -> str:
        """Where Ctrl-C ended the training; empty if it did not."""
        first, *more = self.results
        if not first.interrupted:
            return ""
        if len(more) >= len(self.folds):
            return f"in network {len(self.results)} of {self.total}"
        return f"after {first.epochs} epochs"


def fit_candidates(
    given: Graph,
    candidates: Mapping[str, Settings],
    *,
    fold: int = 0,
    cv: float | None = None,
    networks: int = 1,
    shares_patience: bool = False,
    seed: int = 0,
    checkpoint: Path | None = None,
    verbose: bool | None = None,
    callbacks: Sequence[Callback] = (),
    title: str = "",
    prefix: str = "",
    workers: int | None = None,
    batches: Batches | None = None,
) -> SingleFit:
    """Select the best of some settings on the validation nodes, and train its networks.

    Parameters
    ----------
    given : Graph
        The graph.
    candidates : mapping of str to Settings
        The settings by objective. They share a backbone and a monitored metric.
    fold : int
        The fold of the graph.
    cv : int or float, optional
        Folds, or the share of the labels to hold out once, if there are no validation nodes.
    networks : int
        The number of networks per fold.
    shares_patience : bool
        Whether several folds share one round and the patience if there are few labels
        (docs/archive/accuracy.md, "Few labels").
    seed : int
        The seed of everything.
    checkpoint : Path, optional
        A folder for the state of the training.
    verbose : bool, optional
        Whether to show progress; None: only in a terminal.
    callbacks : sequence of Callback
        Called after every epoch.
    title : str
        The title of the progress bar; empty: the backbone.
    prefix : str
        The start of the names of the files in ``checkpoint``.
    workers : int, optional
        Trainings at once; None: one per core.
    batches : Batches, optional
        The mini-batches; None: the full graph.
    """
    prefix += "" if batches is None else f"{batches.size}-"
    graph, folds = with_validation(given, fold=fold, cv=cv, seed=seed)
    first = next(iter(candidates.values()))
    check_monitor(graph, folds, first.monitor)
    epochs = max(settings.epochs for settings in candidates.values())
    total = networks * len(folds)
    few = sum(len(graph.nodes("val", fold)) for fold in folds) < FEW
    estimate = StopEstimate(epochs, first.patience, first.monitor)
    runs: dict[str, Any] = {"checkpoint": checkpoint, "prefix": prefix, "workers": workers}
    with Bar(title or first.backbone, epochs, unit="epochs", show=verbose, early=True) as bar:
        follow = _Follower(bar, estimate, callbacks, total)
        trained, standings = successive_halving(
            graph, candidates, folds=folds, share=shares_patience and len(folds) > 1 and few,
            seed=seed, batches=batches, report=follow.tell, show=follow.show, **runs,
        )  # fmt: skip
        results = train_more(
            trained, graph, folds, total, report=follow.tell_more, show=follow.show_more, **runs
        )
    return SingleFit(graph, folds, results, standings, total)


@dataclass
class _Follower:
    """Tells the callbacks and the progress bar of every epoch."""

    bar: Bar
    estimate: StopEstimate
    callbacks: Sequence[Callback]
    total: int

    def show(self, name: str, epoch: int, row: dict[str, float]) -> None:
        """Advance the bar."""
        last = self.estimate(name, epoch, row)
        self.bar.advance(f"{name} {describe(row)}", to=epoch + 1, last=last)

    def tell(self, name: str, epoch: int, row: dict[str, float]) -> None:
        """Call the callbacks, and advance the bar."""
        for callback in self.callbacks:
            callback(name, epoch, row)
        self.show(name, epoch, row)

    def show_more(self, number: int, epoch: int, row: dict[str, float]) -> None:
        """Advance the bar for a further network."""
        self.show(self._title(number), epoch, row)

    def tell_more(self, number: int, epoch: int, row: dict[str, float]) -> None:
        """Call the callbacks for a further network, and advance the bar."""
        self.tell(self._title(number), epoch, row)

    def _title(self, number: int) -> str:
        return f"network {number} of {self.total}"
