"""Refit: train the chosen models again on all labels, after the quality was measured.

The measured model never saw the held-out labels; the delivered model learns from them too. It
keeps the chosen members, settings and weights. Cross-validation over all labels selects its epochs
and temperatures.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from everynode.datasets.splits import FOLDS
from everynode.errors import EverynodeError
from everynode.evaluation.calibration import HeldOut
from everynode.graph import Graph, Split
from everynode.progress import Bar
from everynode.selection.candidate import Effort
from everynode.selection.cross_validation import with_validation
from everynode.selection.ensemble import held_out
from everynode.selection.portfolio import JobRunner, fold_seeds, start_race
from everynode.selection.portfolio_ensemble import PortfolioEnsemble, assemble
from everynode.selection.portfolio_fit import PortfolioOptions, fold_count, seeds_per_fold
from everynode.selection.portfolio_job import Job
from everynode.selection.race import Race
from everynode.selection.single_fit import fit_candidates
from everynode.selection.time_limit import parse_time
from everynode.training.callbacks import Callback
from everynode.training.result import TrainingResult

#: The start of the names of checkpoint files, which lie beside those of the first fit.
PREFIX = "refit-"
#: The title of the progress bar.
TITLE = "all labels"


class Refit(NamedTuple):
    """Networks that learned from all labels.

    Attributes
    ----------
    graph : Graph
        The graph with its folds.
    results : list of TrainingResult
        The networks; the first one carries the seconds of all.
    held_out : HeldOut
        The out-of-fold predictions of all labeled nodes.
    ensemble : PortfolioEnsemble or None
        The members with their weights; None for a single model.
    """

    graph: Graph
    results: list[TrainingResult]
    held_out: HeldOut
    ensemble: PortfolioEnsemble | None = None


def labels_to_teach(
    given: Graph, split: Graph, *, fold: int = 0, refit: bool | None = None
) -> Tensor | None:
    """Return the labeled nodes that the delivered model learns from; None: no refit is needed.

    Parameters
    ----------
    given : Graph
        The graph as the user gave it, with the user's own split if there is one.
    split : Graph
        The same graph with the split of the measured model.
    fold : int
        The fold of the user's split.
    refit : bool, optional
        True: every label, also those of the user's validation and test nodes. False: none. None:
        all labels, except the user's own validation and test nodes.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph = generate(60, 120, 8, 3)
    >>> labels_to_teach(graph, graph) is None  # the user's split stays
    True
    >>> len(labels_to_teach(graph.with_splits([]), graph))
    60
    """
    if refit is False:
        return None
    every = (given.labels >= 0).nonzero()[:, 0]
    nodes = given.nodes("train", fold) if given.splits and not refit else every
    taught = split.nodes("train")
    return None if torch.isin(nodes, taught.to(nodes.device)).all() else nodes


def graph_to_teach(graph: Graph, nodes: Tensor | None) -> Graph:
    """Return the graph with some labeled nodes for training (None: all), and no other part."""
    every = (graph.labels >= 0).nonzero()[:, 0]
    empty = every[:0]
    return graph.with_splits([Split(every if nodes is None else nodes, empty, empty)])


def refit_single(
    graph: Graph,
    nodes: Tensor | None,
    first: TrainingResult,
    objective: str,
    *,
    networks: int = 1,
    cv: float | None = None,
    checkpoint: Path | None = None,
    verbose: bool | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int | None = None,
) -> Refit:
    """Train the chosen settings on folds of the labels.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : Tensor, optional
        The labeled nodes to learn from; None: all.
    first : TrainingResult
        The first network of the measured model: settings and seed.
    objective : str
        The name of its objective.
    networks : int
        The number of networks of the measured model. There are at least as many.
    cv : int or float, optional
        The folds, or the share of the labels to hold out once; None: 3 folds.
    checkpoint : Path, optional
        The folder of the training states.
    verbose : bool, optional
        Whether to show progress.
    callbacks : sequence of Callback
        Called after every epoch.
    workers : int, optional
        Trainings at once; None: one per core.
    """
    folds = cv or FOLDS
    fitted = fit_candidates(
        graph_to_teach(graph, nodes), {objective: first.settings}, cv=folds,
        networks=math.ceil(networks / max(folds, 1)), seed=first.seed, checkpoint=checkpoint,
        verbose=verbose, callbacks=callbacks, title=f"{first.settings.backbone}, {TITLE}",
        prefix=PREFIX, workers=workers, batches=first.batches,
    )  # fmt: skip
    if fitted.interruption:
        raise KeyboardInterrupt
    results = fitted.results
    return Refit(fitted.graph, results, held_out(results, fitted.graph))


def refit_portfolio(
    graph: Graph,
    nodes: Tensor | None,
    ensemble: PortfolioEnsemble,
    options: PortfolioOptions,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    verbose: bool | None = None,
) -> Refit:
    """Train the members of an ensemble on folds of the labels, and keep their weights.

    The longest trainings start first or, if the time limit may leave some out, those of the member
    with the largest weight. After the limit, members without all folds are left out.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : Tensor, optional
        The labeled nodes to learn from; None: all.
    ensemble : PortfolioEnsemble
        The measured ensemble.
    options : PortfolioOptions
        Those of the measured fit. The refit has a time limit of the same length.
    seed : int
        The seed of everything.
    checkpoint : Path, optional
        A folder for finished trainings. The same call continues with the missing ones.
    verbose : bool, optional
        Whether to show progress.
    """
    bare = graph_to_teach(graph, nodes)
    cv = options.cv or fold_count(bare, 0, options.effort)
    folded, folds = with_validation(bare, cv=cv, seed=seed)
    units = fold_seeds(folds, seeds_per_fold(options, len(folds)), seed)
    candidates = [member.candidate for member in ensemble]
    limit = parse_time(options.time_limit) or Effort.named(options.effort).time_limit
    start = time.monotonic()
    with Bar(TITLE, 1, unit="trainings", show=verbose) as bar:
        runner = start_race(
            folded, candidates, folds=folds, time_limit=limit, engine=options.engine,
            workers=options.workers, checkpoint=checkpoint, callbacks=options.callbacks,
            report=lambda done, total, _note: bar.advance(to=done, total=total),
            batches={member.candidate.name: member.results[0].batches for member in ensemble},
        )  # fmt: skip
        runner.known = {
            member.candidate.name: max(result.seconds for result in member.results)
            for member in ensemble
        }
        _train(runner, units)
    race = runner.race
    race.seconds = time.monotonic() - start
    if race.interrupted:
        raise KeyboardInterrupt
    weights = {member.candidate.name: member.weight for member in ensemble}
    complete = [name for name in weights if _is_complete(race, name, units)]
    if not complete:
        reason = next(iter(race.outcomes.values()), "the time limit is too short")
        raise EverynodeError(f"No member of the ensemble could learn from all labels: {reason}.")
    if len(folds) > 1:
        folded = race.add_all_labels()
    total = sum(weights[name] for name in complete)
    taught, predicted = assemble(
        race, {name: weights[name] / total for name in complete}, sorted(folds)
    )
    first, *more = taught.results
    first = dataclasses.replace(first, seconds=race.seconds)
    return Refit(folded, [first, *more], predicted, taught)


def _train(runner: JobRunner, units: list[tuple[int, int]]) -> None:
    """Run the missing trainings of all candidates."""
    race = runner.race
    jobs = [
        Job(name, fold, seed, prefix=PREFIX)
        for name in race.candidates
        for fold, seed in units
        if race.needs(name, (fold, seed), units)
    ]
    runner.total = len(jobs)
    runner.run(jobs)


def _is_complete(race: Race, name: str, units: list[tuple[int, int]]) -> bool:
    """Whether a candidate has finished every fold."""
    return name not in race.outcomes and race.folds(name) == {fold for fold, _seed in units}
