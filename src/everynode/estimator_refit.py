"""The refit of NodeClassifier: the chosen models learn from all labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from everynode.errors import UsageError
from everynode.estimator_inputs import moved, with_type_weights
from everynode.estimator_settings import memory_plan, portfolio_options
from everynode.graph import Graph
from everynode.graph.label_encoding import in_order
from everynode.machine import usable_device
from everynode.selection.refit import Refit, refit_portfolio, refit_single

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.training.callbacks import Callback
    from everynode.training.process_pool import Engine


def refit_classifier(
    model: NodeClassifier,
    graph: Graph,
    nodes: Tensor | None,
    checkpoint: Path | str | None,
    engine: Engine | None,
    callbacks: Sequence[Callback] = (),
) -> Refit:
    """Train the chosen models of a fitted classifier on all labels of a graph."""
    if not isinstance(graph, Graph):
        raise UsageError(f"refit takes the Graph of the fit. Got a {type(graph).__name__}.")
    if in_order(graph.classes).tolist() != model.classes_.tolist():
        raise UsageError("refit takes the graph of the fit, but this one has other classes.")
    graph = with_type_weights(graph, model.edge_types_)
    if model.device is not None:
        graph = moved(graph, usable_device(model.device))
    states = None if checkpoint is None else Path(checkpoint)
    plan = memory_plan(model, graph, here=engine is None)
    options, first = portfolio_options(model, engine, callbacks, plan=plan), model.fitted_
    if model.ensemble_ is not None:
        return refit_portfolio(
            graph, nodes, model.ensemble_, options, seed=first.seed, checkpoint=states,
            verbose=model.verbose,
        )  # fmt: skip
    return refit_single(
        graph, nodes, first, model.objective_, networks=len(model.networks_), cv=options.cv,
        checkpoint=states, verbose=model.verbose, callbacks=callbacks, workers=options.workers,
    )  # fmt: skip
