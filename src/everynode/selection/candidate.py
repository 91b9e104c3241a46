"""Candidates of the portfolio: a model, an objective and a preparation of the features.

The portfolio is data: ``presets/portfolio.toml`` lists the candidates and the efforts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from everynode.errors import unknown
from everynode.graph import Graph
from everynode.graph.preparation import suggest
from everynode.models.names import model_names
from everynode.presets import preset, read_preset
from everynode.settings import Settings, declarations

#: What a candidate learns from: the features alone, the graph alone, or both.
Uses = Literal["features", "graph", "both"]


@dataclass(frozen=True)
class Candidate:
    """One entry of the portfolio.

    Parameters
    ----------
    name : str
        The name on the leaderboard.
    settings : Settings
        The model, the objective and the optimizer.
    preparation : str
        The scaling of the features; see :mod:`everynode.graph.preparation`.
    uses : str
        ``features``, ``graph`` or ``both``.
    for_new_nodes : bool
        Whether the candidate can predict nodes that were not in the training graph.
    seeded : bool
        Whether another seed gives another model.
    """

    name: str
    settings: Settings
    preparation: str
    uses: Uses
    for_new_nodes: bool = True
    seeded: bool = True


@dataclass(frozen=True)
class Effort:
    """The size of a search.

    Parameters
    ----------
    name : str
        ``quick``, ``standard`` or ``best``.
    candidates : tuple of str
        The candidates in the order of their start, as ``name:preparation``.
    folds, many_folds : int
        Folds of cross-validation with few labels, and with at least ``many_labels`` labels.
    many_labels : int
        See ``many_folds``.
    networks : int
        Networks of a finalist, over all folds; with fewer folds it trains several seeds a fold.
    keep : tuple of int
        The largest number of candidates after the first round, the second round, and so on.
    time_limit : float, optional
        The default time limit in seconds.
    """

    name: str
    candidates: tuple[str, ...]
    folds: int
    many_folds: int
    many_labels: int
    networks: int
    keep: tuple[int, ...]
    time_limit: float | None = None

    @classmethod
    def named(cls, name: str) -> Effort:
        """Return an effort by name.

        >>> Effort.named("quick").name
        'quick'
        """
        table = read_preset("portfolio")["effort"]
        if name not in table:
            unknown("effort", name, table)
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in table[name].items()
        }
        return cls(name, **values)


def efforts() -> tuple[str, ...]:
    """Return the names of the efforts.

    >>> efforts()
    ('quick', 'standard', 'best')
    """
    return tuple(read_preset("portfolio")["effort"])


def portfolio(
    effort: Effort,
    graph: Graph,
    *,
    changes: Mapping[str, Any] | None = None,
    for_new_nodes: bool = False,
) -> list[Candidate]:
    """Return the candidates that suit a graph.

    Left out are preparations that do not suit its features, models that need edges on a graph
    without edges, and models that need directions on an undirected graph.

    Parameters
    ----------
    effort : Effort
        Its list of candidates.
    graph : Graph
        The graph.
    changes : mapping, optional
        Settings that replace those of every candidate.
    for_new_nodes : bool
        Leave out candidates that cannot predict nodes outside the training graph.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> {c.preparation for c in portfolio(Effort.named("quick"), generate(60, 120, 8, 3))}
    {'standardize'}
    """
    table, known = read_preset("portfolio")["candidates"], model_names()
    preparations, consistent = suggest(graph), consistency_pays(graph)
    chosen: dict[str, Candidate] = {}
    for entry in effort.candidates:
        name, _, preparation = entry.partition(":")
        if not consistent:
            name = name.removesuffix("-consistency")
        values = dict(table[name])
        uses: Uses = values.pop("uses")
        one_way, at_all = values.pop("directed", False), values.pop("for_new_nodes", True)
        seeded = values.pop("seeded", True)
        preparation = preparation or preparations[0]  # the model ignores it
        if preparation == "structure":
            uses, at_all = "graph", False
        needs_edges = uses != "features" and not graph.num_edges
        if preparation not in preparations or values["backbone"] not in known or needs_edges:
            continue
        if (one_way and not graph.directed) or (for_new_nodes and not at_all):
            continue
        full_name = f"{name}-{preparation}" if ":" in entry else name
        candidate = Candidate(
            full_name, _settings(values, changes or {}), preparation, uses, at_all, seeded
        )
        if not any(_same(candidate, other) for other in chosen.values()):
            chosen[full_name] = candidate
    if not chosen:  # without features and edges, only the class shares can be learned
        values = {key: value for key, value in table["mlp"].items() if key != "uses"}
        settings = _settings(values, changes or {})
        chosen["mlp"] = Candidate("mlp", settings, "raw", "features")
    return list(chosen.values())


def labels_per_class(graph: Graph) -> float:
    """Return the mean number of training labels of a class, in the first fold."""
    nodes = graph.nodes("train") if graph.splits else (graph.labels >= 0).nonzero()[:, 0]
    return len(nodes) / max(len(graph.labels[nodes].unique()), 1)


def consistency_pays(graph: Graph) -> bool:
    """Whether a graph has enough labels for consistency."""
    least = read_preset("portfolio")["consistency"]["least_labels_per_class"]
    return bool(labels_per_class(graph) >= least)


def _same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are equal under the changes of the user."""
    equal = one.settings.identity() == other.settings.identity()
    return equal and one.preparation == other.preparation


def _settings(values: dict[str, Any], changes: Mapping[str, Any]) -> Settings:
    """Return the settings of a candidate: the base, its own, then the changes of the user."""
    base = dict(read_preset("portfolio")["base"])
    objective = values.pop("objective", "ce")
    own = {k: v for k, v in (base | values | dict(changes)).items() if k in declarations()}
    settings = preset("default", objective=objective, **own).for_objective(objective)
    if settings.consistency and not (settings.dropout or settings.layer_dropout):
        return settings.replace(consistency=0.0)  # without dropout, every pass is the same
    return settings
