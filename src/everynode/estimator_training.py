"""The training of NodeClassifier: a portfolio, or one model with its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import torch

from everynode.estimator_settings import Choices
from everynode.evaluation.calibration import (
    LEAST_TO_COMPARE,
    HeldOut,
    nodes_without,
    temperature,
    temperature_of_average,
)
from everynode.graph import Graph
from everynode.selection.ensemble import held_out, log_probabilities_by_fold
from everynode.selection.graph_gain import GraphGain
from everynode.selection.leaderboard import Leaderboard
from everynode.selection.portfolio_ensemble import PortfolioEnsemble
from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio
from everynode.selection.single_fit import fit_candidates
from everynode.selection.successive_halving import Standing
from everynode.training.result import TrainingResult

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.selection.refit import Refit


class Trained(NamedTuple):
    """The networks of a fit, and how they were chosen.

    Attributes
    ----------
    graph : Graph
        The graph with its folds.
    results : list of TrainingResult
        The networks; the first one carries the time of all.
    held_out : HeldOut
        The out-of-fold predictions of the validation nodes.
    ensemble : PortfolioEnsemble or None
        The members of a portfolio's ensemble.
    standings : mapping of str to Standing
        The result of each candidate of successive halving; empty for a portfolio.
    leaderboard : Leaderboard or None
        Every candidate of a portfolio.
    gain : GraphGain or None
        The gain of the graph over the features alone, and the reverse.
    interruption : str
        Where Ctrl-C ended the training; empty if it did not.
    """

    graph: Graph
    results: list[TrainingResult]
    held_out: HeldOut
    ensemble: PortfolioEnsemble | None = None
    standings: Mapping[str, Standing] = MappingProxyType({})
    leaderboard: Leaderboard | None = None
    gain: GraphGain | None = None
    interruption: str = ""


def train_classifier(
    model: NodeClassifier,
    graph: Graph,
    options: PortfolioOptions,
    *,
    seed: int,
    checkpoint: Path | None,
) -> Trained:
    """Race the portfolio, or train the named model or objective."""
    choices = Choices.of(model)
    if choices.is_portfolio:
        raced = fit_portfolio(
            graph, options, fold=model._fold, changes=choices.changes, seed=seed,
            checkpoint=checkpoint, verbose=model.verbose,
        )  # fmt: skip
        chosen, results = raced.selection, raced.results
        interruption = f"after {len(results)} networks" if raced.race.interrupted else ""
        return Trained(
            raced.graph, results, chosen.held_out, chosen.ensemble,
            leaderboard=chosen.leaderboard, gain=chosen.gain, interruption=interruption,
        )  # fmt: skip
    fitted = fit_candidates(
        graph, choices.candidates(graph), fold=model._fold, cv=options.cv,
        networks=options.networks, shares_patience=choices.shares_patience, seed=seed,
        checkpoint=checkpoint, verbose=model.verbose, callbacks=options.callbacks,
        workers=options.workers, batches=options.plan.batches,
    )  # fmt: skip
    return Trained(
        fitted.graph, fitted.results, held_out(fitted.results, fitted.graph),
        standings=fitted.standings, interruption=fitted.interruption,
    )  # fmt: skip


def taught_nodes(trained: Trained | Refit) -> torch.Tensor:
    """Return the labeled nodes that the networks learned from."""
    folds = {one.fold for one in trained.results}
    return torch.cat([trained.graph.nodes("train", fold) for fold in folds]).unique()


def num_folds(trained: Trained | Refit) -> int:
    """Return the number of folds that judged the networks."""
    judged = [fold for fold, split in enumerate(trained.graph.splits) if len(split.val)]
    return len({one.fold for one in trained.results}.intersection(judged) or judged)


def temperatures(trained: Trained | Refit) -> tuple[float, float]:
    """Return the temperatures of the out-of-fold predictions and of the predictions.

    They differ where several folds are averaged, or where members learned from all of them.
    """
    graph, ensemble = trained.graph, trained.ensemble
    nodes, log_probabilities = trained.held_out
    single = temperature(log_probabilities, graph.labels[nodes])
    others = nodes_without(taught_nodes(trained), graph.num_nodes)
    if num_folds(trained) == 1 or len(others) < LEAST_TO_COMPARE:
        return single, single
    if ensemble is None:
        each, delivered = log_probabilities_by_fold(trained.results, graph, others), None
    else:
        each = ensemble.by_fold(graph, others)
        delivered = ensemble.unshifted(graph, others)
    return single, temperature_of_average(each, single, delivered)
