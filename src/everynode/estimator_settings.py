"""The settings that follow from the parameters of NodeClassifier."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from everynode import plugins
from everynode.errors import UsageError, require, unknown
from everynode.graph import Graph
from everynode.objective_names import parse_objective
from everynode.presets import candidates
from everynode.selection.portfolio_fit import PortfolioOptions
from everynode.settings import Settings, declarations

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.training.callbacks import Callback
    from everynode.training.process_pool import Engine


def settings_changes(model: NodeClassifier) -> dict[str, Any]:
    """Return the settings that differ from the preset: ``settings``, then the parameters."""
    changes = asdict(model.settings) if isinstance(model.settings, Settings) else {}
    if isinstance(model.settings, Mapping):
        for name in model.settings:
            if name not in declarations():
                unknown("setting", name, declarations())
        changes = dict(model.settings)
    elif not isinstance(model.settings, Settings | None):
        expected = "None, a Settings or a dict"
        require(False, "settings", "NodeClassifier", expected, model.settings)
    own = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name in declarations() and value is not None
    }
    if model.backbone == "auto":
        del own["backbone"]  # the default does not override a backbone in `settings`
    elif isinstance(model.backbone, type):
        own["backbone"] = plugins.register(model.backbone)
    weights: dict[str, float] = {}
    if not isinstance(model.terms, Sequence | None):
        require(False, "terms", "NodeClassifier", "a list of terms", model.terms)
    for term in model.terms or ():
        name = plugins.register_term(term)
        if name in weights:
            raise UsageError(f"NodeClassifier has two terms named {name!r}: rename one.")
        weights[name] = float(term.weight)
    if weights:
        own["weights"] = dict(changes.get("weights") or ()) | weights
    return changes | own


def uses_portfolio(model: NodeClassifier) -> bool:
    """Whether neither a model nor an objective, preset or term is chosen."""
    chosen = model.terms or "backbone" in settings_changes(model) or model.preset != "default"
    return model.objective == "auto" and model.backbone == "auto" and not chosen


def candidate_settings(model: NodeClassifier, graph: Graph) -> dict[str, Settings]:
    """Return the settings to train with by objective: one, or those of ``auto``."""
    changes = settings_changes(model)
    # Presets distinguish splits by name; a graph knows only its number of folds.
    several = len(graph.splits) > 1
    official = graph.name == "ogbn-arxiv"
    split = "geom-gcn" if several else "official" if official else "public"
    changes |= {"graph": graph.name, "split": split}
    if model.objective == "auto":
        return candidates(model.preset, **changes)
    objective = model.objective
    named = objective.lower().split("+")
    if model.terms and "enc" not in named:
        own = [term for term in changes["weights"] if term not in named]
        objective = "+".join([objective, *own])
    parse_objective(objective)
    chosen = Settings.preset(model.preset, objective=model.objective, **changes)
    return {objective: chosen.for_objective(objective)}


def check_parameters(model: NodeClassifier) -> None:
    """Refuse a wrong ``n_estimators`` or ``cv``."""
    whole = isinstance(model.n_estimators, numbers.Integral) and model.n_estimators >= 1
    require(whole, "n_estimators", "NodeClassifier", "a whole number >= 1", model.n_estimators)
    whole = isinstance(model.cv, numbers.Integral) and int(model.cv) >= 2
    share = isinstance(model.cv, numbers.Real) and 0 < model.cv < 1
    expected = (
        "'auto', a number of folds >= 2, or a share of the labels between 0 and 1 such as 0.2"
    )
    require(model.cv == "auto" or whole or share, "cv", "NodeClassifier", expected, model.cv)


def shares_patience(model: NodeClassifier) -> bool:
    """Whether folds with few labels share the patience.

    Only the default candidates do, and only without an explicit patience: a chosen objective may
    need many epochs.
    """
    default = model.objective == "auto" and model.preset == "default"
    return default and "patience" not in settings_changes(model)


def portfolio_options(
    model: NodeClassifier, engine: Engine | None, callbacks: Sequence[Callback]
) -> PortfolioOptions:
    """Return the options of the portfolio."""
    return PortfolioOptions(
        model.effort, model.time_limit, model.for_new_nodes,
        None if model.cv == "auto" else model.cv, model.n_estimators, model.n_jobs, engine,
        callbacks,
    )  # fmt: skip


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed of a random state, drawn from it if it is a generator or None.

    >>> draw_seed(7)
    7
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int((random_state or np.random.mtrand._rand).randint(2**31))
    return int(random_state)
