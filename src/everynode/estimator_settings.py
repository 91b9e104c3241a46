"""The settings that follow from the parameters of NodeClassifier."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from everynode import plugins
from everynode.datasets.splits import FOLDS
from everynode.errors import UsageError, require, unknown
from everynode.fit_options import FitOptions, fit_declarations
from everynode.graph import Graph
from everynode.machine import cores
from everynode.objective_names import objective_parts, parse_objective
from everynode.presets import candidates
from everynode.selection.candidate import Effort, portfolio
from everynode.selection.portfolio_fit import PortfolioOptions
from everynode.selection.time_limit import parse_time
from everynode.settings import Settings, declarations
from everynode.training.memory_plan import FULL, MemoryPlan, plan_memory

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.training.callbacks import Callback
    from everynode.training.process_pool import Engine


@dataclass(frozen=True)
class Choices:
    """What the parameters of a classifier choose.

    Parameters
    ----------
    objective : str
        The names of the objective, joined by ``+``; ``ce`` if it lists term objects only.
    weights : dict of str to float
        The weights of the term objects of the objective, by name.
    options : FitOptions
        The preset and the number of networks.
    changes : dict
        The settings that differ from the preset, with ``weights``.
    """

    objective: str
    weights: dict[str, float]
    options: FitOptions
    changes: dict[str, Any]

    @classmethod
    def of(cls, model: NodeClassifier) -> Choices:
        """Read the parameters; refuse unknown names and wrong types."""
        changes = settings_as_dict(model.settings)
        for name in changes:
            if name not in declarations() and name not in fit_declarations():
                unknown("setting", name, [*declarations(), *fit_declarations()])
        options = {name: changes.pop(name) for name in fit_declarations() if name in changes}
        objective, weights = _objective_parts(model.objective)
        if weights:
            changes["weights"] = dict(changes.get("weights") or ()) | weights
        return cls(objective, weights, FitOptions(**options), changes | _own_settings(model))

    @property
    def is_portfolio(self) -> bool:
        """Whether neither a model nor an objective, preset or term is chosen."""
        chosen = self.weights or "backbone" in self.changes or self.options.preset != "default"
        return self.objective == "auto" and not chosen

    @property
    def shares_patience(self) -> bool:
        """Whether folds with few labels share the patience.

        Only the default candidates do, and only without an explicit patience: a chosen objective
        may need many epochs.
        """
        default = self.objective == "auto" and self.options.preset == "default"
        return default and "patience" not in self.changes

    def candidates(self, graph: Graph) -> dict[str, Settings]:
        """Return the settings to train with by objective: one, or those of ``auto``."""
        preset = self.options.preset
        # Presets distinguish splits by name; a graph knows only its number of folds.
        several = len(graph.splits) > 1
        official = graph.name == "ogbn-arxiv"
        split = "geom-gcn" if several else "official" if official else "public"
        place = {"graph": graph.name, "split": split}
        if self.objective == "auto":
            return candidates(preset, **self.changes, **place)
        named = objective_parts(self.objective)
        own = [term for term in self.weights if term not in named and "enc" not in named]
        objective = "+".join([self.objective, *own])
        parse_objective(objective)
        chosen = Settings.preset(preset, objective=self.objective, **self.changes, **place)
        return {objective: chosen.for_objective(objective)}


def settings_as_dict(settings: Any) -> dict[str, Any]:
    """Return the ``settings`` of a classifier as a dict; a text or a path names a preset.

    >>> settings_as_dict("paper"), settings_as_dict({"epochs": 9}), settings_as_dict(None)
    ({'preset': 'paper'}, {'epochs': 9}, {})
    """
    if isinstance(settings, Settings):
        return asdict(settings)
    if isinstance(settings, str | os.PathLike):
        return {"preset": str(settings)}
    expected = "None, a Settings, a dict, or the name or file of a preset"
    require(isinstance(settings, Mapping | None), "settings", "NodeClassifier", expected, settings)
    values = dict(settings or ())
    path = values.get("preset")
    return values | {"preset": str(path)} if isinstance(path, os.PathLike) else values


def _own_settings(model: NodeClassifier) -> dict[str, Any]:
    """Return the parameters of a classifier that are settings, where they have a value."""
    own = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name in declarations() and value is not None
    }
    if model.backbone == "auto":
        del own["backbone"]  # the default does not override a backbone in `settings`
    elif isinstance(model.backbone, type):
        own["backbone"] = plugins.register(model.backbone)
    return own


def _objective_parts(objective: object) -> tuple[str, dict[str, float]]:
    """Return the names of an objective, and the weights of its term objects."""
    parts = [objective] if isinstance(objective, str) else objective
    expected = "a name, or a list of names and terms such as ['mi', MyTerm(weight=0.2)]"
    listed = parts if isinstance(parts, Sequence) else ()
    require(len(listed) > 0, "objective", "NodeClassifier", expected, objective)
    names: list[str] = []
    weights: dict[str, float] = {}
    for part in listed:
        if isinstance(part, str):
            names.append(part)
            continue
        name = plugins.register_term(part)
        if name in weights:
            raise UsageError(f"NodeClassifier has two terms named {name!r}: rename one.")
        weights[name] = float(part.weight)
    return "+".join(names) or "ce", weights


def check_parameters(model: NodeClassifier) -> None:
    """Refuse wrong values, also of parameters that the fit at hand does not use."""
    Effort.named(model.effort)
    parse_time(model.time_limit)
    cv, n_jobs, state, verbose = model.cv, model.n_jobs, model.random_state, model.verbose
    share = isinstance(cv, numbers.Real) and 0 < cv < 1
    drawn = state is None or isinstance(state, np.random.RandomState)
    for name, good, expected in (
        ("cv", cv == "auto" or _is_whole(cv, 2) or share,
         "'auto', a number of folds >= 2, or a share of the labels between 0 and 1 such as 0.2"),
        ("n_jobs", n_jobs in (None, -1) or _is_whole(n_jobs, 1),
         "None or -1 (one per core), or a whole number >= 1"),
        ("random_state", drawn or _is_whole(state, 0),
         "None, a whole number >= 0, or a RandomState"),
        ("verbose", verbose is None or isinstance(verbose, numbers.Integral | np.bool_),
         "None, True or False"),
    ):  # fmt: skip
        require(good, name, "NodeClassifier", expected, getattr(model, name))


def _is_whole(value: object, low: int) -> bool:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and int(cast(Any, value)) >= low


def _workers(model: NodeClassifier) -> int | None:
    """Return the number of parallel trainings; None: one per core."""
    return None if model.n_jobs == -1 else model.n_jobs


def portfolio_options(
    model: NodeClassifier,
    engine: Engine | None,
    callbacks: Sequence[Callback],
    *,
    for_new_nodes: bool = False,
    plan: MemoryPlan | None = None,
) -> PortfolioOptions:
    """Return the options of the portfolio."""
    return PortfolioOptions(
        model.effort, model.time_limit, for_new_nodes, None if model.cv == "auto" else model.cv,
        Choices.of(model).options.n_estimators, _workers(model) if plan is None else plan.workers,
        engine, callbacks, plan or FULL,
    )  # fmt: skip


def memory_plan(
    model: NodeClassifier, graph: Graph, *, for_new_nodes: bool = False, here: bool = True
) -> MemoryPlan:
    """Return how a fit stays within the memory; ``here``: whether it runs on this machine."""
    choices = Choices.of(model)
    by_memory = model.batch_size == "auto"
    on_cpu = torch.device(model.device or graph.labels.device).type == "cpu"
    options: dict[str, Any] = {"batch_size": model.batch_size}
    if by_memory and not (here and on_cpu):
        options = {"batch_size": None}
    if not choices.is_portfolio:
        settings = list(choices.candidates(graph).values())
        held_out = len(graph.splits) > 0 and len(graph.nodes("val")) > 0
        folds = 1 if held_out else int(model.cv) if model.cv != "auto" and model.cv > 1 else FOLDS
        trainings = len(settings) * folds * choices.options.n_estimators
        workers = min(_workers(model) or cores(), trainings)
        return plan_memory(graph, settings, workers=workers, preparations=0, **options)
    entries = portfolio(
        Effort.named(model.effort), graph, changes=choices.changes, for_new_nodes=for_new_nodes
    )
    return plan_memory(
        graph, [entry.settings for entry in entries], workers=_workers(model),
        preparations=len({entry.preparation for entry in entries} - {"raw"}), **options,
    )  # fmt: skip


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed of a random state, drawn from it if it is a generator or None.

    >>> draw_seed(7)
    7
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int((random_state or np.random.mtrand._rand).randint(2**31))
    return int(random_state)
