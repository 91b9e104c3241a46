"""Fit the portfolio to a graph: folds, candidates, race, ensemble."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from everynode.fit_options import EFFORT, FitOptions
from everynode.graph import Graph
from everynode.progress import Bar
from everynode.selection.candidate import Effort, portfolio
from everynode.selection.cross_validation import check_monitor, with_validation
from everynode.selection.portfolio import require_results, run_portfolio
from everynode.selection.portfolio_ensemble import Selection, select
from everynode.selection.race import Race
from everynode.selection.time_limit import parse_time
from everynode.training.callbacks import Callback
from everynode.training.memory_plan import FULL, MemoryPlan
from everynode.training.process_pool import Engine
from everynode.training.result import TrainingResult


@dataclasses.dataclass(frozen=True)
class PortfolioOptions:
    """The choices of a user.

    Parameters
    ----------
    effort : str
        ``quick``, ``standard`` or ``best``.
    time_limit : float or str, optional
        Seconds, or a text such as ``10m``; None: the limit of the effort.
    for_new_nodes : bool
        Leave out candidates that cannot predict nodes outside the training graph.
    cv : int or float, optional
        Folds, or the share of the labels to hold out once, where the graph has no validation
        nodes; None: as the effort says.
    networks : int
        Least number of seeds per fold.
    workers : int, optional
        Jobs at once; None: one per core.
    engine : Engine, optional
        The engine of the jobs; None: processes on this machine.
    callbacks : sequence of Callback
        Called for every epoch when a job has ended.
    plan : MemoryPlan
        The mini-batches, by the memory or by choice.
    """

    effort: str = EFFORT
    time_limit: float | str | None = None
    for_new_nodes: bool = False
    cv: float | None = None
    networks: int = FitOptions.n_estimators
    workers: int | None = None
    engine: Engine | None = None
    callbacks: Sequence[Callback] = ()
    plan: MemoryPlan = FULL


class Fitted(NamedTuple):
    """The graph with its folds, the race, and the selection.

    After cross-validation, the last split of the graph trains on all labels.

    Attributes
    ----------
    graph : Graph
        The graph.
    race : Race
        The results of all candidates.
    selection : Selection
        The selected candidates and their weights.
    """

    graph: Graph
    race: Race
    selection: Selection

    @property
    def results(self) -> list[TrainingResult]:
        """The networks; the first one carries the time of all."""
        first, *more = self.selection.ensemble.results
        race = self.race
        first = dataclasses.replace(first, seconds=race.seconds, interrupted=race.interrupted)
        return [first, *more]


def fit_portfolio(
    graph: Graph,
    options: PortfolioOptions,
    *,
    fold: int = 0,
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    checkpoint: Path | None = None,
    verbose: bool | None = None,
) -> Fitted:
    """Race the candidates on a graph, and build the ensemble.

    The validation nodes of the fold judge the candidates. Without any, the training nodes are dealt
    into folds, so that every label teaches and judges.

    Parameters
    ----------
    graph : Graph
        The graph.
    options : PortfolioOptions
        Effort, time limit and workers.
    fold : int
        The fold of the graph.
    changes : mapping, optional
        Settings that replace those of every candidate.
    seed : int
        The seed of everything.
    checkpoint : Path, optional
        A folder for finished jobs.
    verbose : bool, optional
        Whether to show progress; None: only in a terminal.
    """
    effort, limit = Effort.named(options.effort), parse_time(options.time_limit)
    folded, folds = with_validation(
        graph, fold=fold, cv=options.cv or fold_count(graph, fold, options.effort), seed=seed
    )  # fmt: skip
    candidates = portfolio(effort, folded, changes=changes, for_new_nodes=options.for_new_nodes)
    check_monitor(folded, folds, candidates[0].settings.monitor)
    seeds = seeds_per_fold(options, len(folds))
    title = f"{effort.name} portfolio, {len(candidates)} candidates"
    with Bar(title, len(candidates), unit="trainings", show=verbose) as bar:
        race = run_portfolio(
            folded, candidates, folds=folds, seeds=seeds, seed=seed, keep=effort.keep,
            time_limit=limit or effort.time_limit, engine=options.engine, workers=options.workers,
            checkpoint=checkpoint, callbacks=options.callbacks, plan=options.plan,
            report=lambda done, total, note: bar.advance(note, to=done, total=total),
        )  # fmt: skip
    require_results(race)
    if len(folds) > 1:
        folded = race.add_all_labels()
    return Fitted(folded, race, select(race, seed=seed))


def seeds_per_fold(options: PortfolioOptions, folds: int) -> int:
    """Return the number of networks of a finalist on each fold."""
    return max(options.networks, math.ceil(Effort.named(options.effort).networks / folds))


def fold_count(graph: Graph, fold: int, effort_name: str) -> int:
    """Return the number of folds for the training labels of a graph."""
    nodes = graph.nodes("train", fold) if graph.splits else (graph.labels >= 0).nonzero()[:, 0]
    return folds_of_nodes(effort_name, nodes)


def folds_of_nodes(effort_name: str, nodes: Tensor) -> int:
    """Return the number of folds for some labeled nodes."""
    effort = Effort.named(effort_name)
    return effort.folds if len(nodes) < effort.many_labels else effort.many_folds
