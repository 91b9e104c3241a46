"""Presets: settings as data (TOML), by where they come from.

``default`` holds the field defaults of :class:`everynode.Settings` with the changes in
``default.toml``. ``paper`` holds the tables of the paper. ``tuned`` and ``authors`` depend on the
graph, split, backbone and objective, like a file that ``everynode tune --export`` wrote.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from everynode.datasets.entries import is_generated
from everynode.errors import DataError, UsageError, unknown
from everynode.fit_options import OBJECTIVE, FitOptions
from everynode.models.names import MODELS, model_names
from everynode.objective_names import objective_name
from everynode.settings import Settings

PRESETS = ("default", "paper", "tuned", "authors")


class Place(NamedTuple):
    """The key of a tuned preset.

    Attributes
    ----------
    split, graph : str
        The names of the split and of the graph.
    backbone, objective : str
        The names of the model and of the objective.
    """

    split: str
    graph: str
    backbone: str
    objective: str


class NoSettings(UsageError):
    """A preset has no settings for this graph, split, backbone and objective."""


def preset(
    name: str = FitOptions.preset,
    *,
    graph: str = "",
    split: str = "",
    backbone: str = Settings.backbone,
    objective: str = OBJECTIVE,
    **changes: Any,
) -> Settings:
    """Return the settings of a preset.

    Parameters
    ----------
    name : str
        One of :data:`PRESETS`, or a TOML file that ``everynode tune --export`` wrote.
    graph, split, backbone, objective : str
        The place that the settings are for. Terms outside the objective keep their weight; see
        :meth:`Settings.for_objective`.
    changes
        Settings that replace those of the preset; None leaves one alone.
    """
    if name not in PRESETS and not name.endswith(".toml"):
        unknown("preset", name, [*PRESETS, "a file that ends in .toml"])
    if backbone not in MODELS and backbone not in model_names():
        unknown("backbone", backbone, model_names())
    if name == "default":
        values = _default_row(backbone)
    elif name == "paper":
        table = read_preset("paper")
        values = table["base"] | table["backbone"].get(backbone, {})
        values |= _paper_row(table, graph, split, backbone, objective_name(objective))
    else:
        values = _tuned_row(name, graph, split, backbone, objective_name(objective))
    changed = {key: value for key, value in changes.items() if value is not None}
    where = f"The preset {name} for {backbone} {objective} on {graph or 'any graph'}"
    return Settings.from_dict({"backbone": backbone} | values, where).replace(**changed)


def candidates(name: str = FitOptions.preset, **choice: Any) -> dict[str, Settings]:
    """Return the candidates of successive halving where no objective is chosen, simplest first.

    ``choice``: see :func:`preset`. Candidates that are equal under these changes appear once. The
    candidates of another preset than ``default`` are its cross-entropy and its ENC.

    >>> list(candidates()), list(candidates("paper", graph="cora", split="public"))
    (['ce', 'enc', 'light-ce', 'light-enc'], ['ce', 'enc'])
    """
    changed = {key: value for key, value in choice.items() if value is not None}
    table = (
        read_preset("default")["candidates"]
        if name == "default"
        else {objective: {"objective": objective} for objective in ("ce", "enc")}
    )
    distinct: dict[str, Settings] = {}
    for candidate, values in table.items():
        settings = preset(name, **values | changed).for_objective(values["objective"])
        if settings.identity() not in [other.identity() for other in distinct.values()]:
            distinct[candidate] = settings
    return distinct


def _default_row(backbone: str) -> dict[str, Any]:
    """Return the default settings of a model: its own, on top of the model that it is ``like``.

    >>> _default_row("resgcn") == _default_row("mlp") | {"dropout": 0.3, "layer_dropout": 0.3}
    True
    """
    row = dict(read_preset("default")["backbone"].get(backbone, {}))
    like = row.pop("like", None)
    return row if like is None else _default_row(like) | row


def _paper_row(
    table: dict[str, Any], graph: str, split: str, backbone: str, objective: str
) -> dict[str, Any]:
    """Return the settings of the paper; random splits of Cora follow the public split.

    Cross-entropy has the settings of ENC, except for those in a table ``ce`` within them.
    """
    if is_generated(graph):
        graph, split = "ogbn-arxiv", "official"  # generated graphs stand in for it
    rows = table.get("public" if split == "random" else split, {})
    if graph not in rows or backbone not in rows[graph]:
        raise NoSettings(
            f"The paper has no hyper-parameters for {backbone} on graph {graph!r} with split "
            f"{split!r}: use --preset default."
        )
    row = dict(rows[graph][backbone])
    of_cross_entropy: dict[str, Any] = row.pop("ce", {})
    return row | of_cross_entropy if objective == "ce" else row


def _tuned_row(name: str, graph: str, split: str, backbone: str, objective: str) -> dict[str, Any]:
    """Return the settings of a tuned preset, without the record of its study."""
    rows = tuned_rows(name)
    row = rows.get(Place(split, graph, backbone, objective))
    if row is None and split == "random":  # there are too many random splits to tune for each
        row = rows.get(Place("public", graph, backbone, objective))
    if row is None:
        here = [f"{b} {o}" for s, g, b, o in rows if (s, g) == (split, graph)]
        choices = f"for that graph and split it has {', '.join(here)}"
        raise NoSettings(
            f"The preset {name} has no settings for {backbone} with objective {objective} on graph "
            f"{graph!r} with split {split!r}; {choices if here else f'it has {_graphs(rows)}'}. "
            "Choose from these, --preset default, or `everynode tune`."
        )
    return {key: value for key, value in row.items() if key != "study"}


def tuned_rows(name: str) -> dict[Place, dict[str, Any]]:
    """Return the rows of ``tuned``, ``authors`` or a file, by split, graph, backbone, objective."""
    table = read_preset(name) if name in PRESETS else read_file(name)
    try:
        return {
            Place(split, graph, backbone, objective): dict(row)
            for split, graphs in table.items()
            for graph, backbones in graphs.items()
            for backbone, objectives in backbones.items()
            for objective, row in objectives.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"{name} is not a preset of `everynode tune`: "
            "its tables must be [SPLIT.GRAPH.BACKBONE.OBJECTIVE]."
        ) from None


def _graphs(rows: Iterable[Place]) -> str:
    """List the graphs of a tuned preset, each with its splits."""
    splits_of: dict[str, list[str]] = {}
    for split, graph, *_ in rows:
        if split not in splits_of.setdefault(graph, []):
            splits_of[graph].append(split)
    listed = (f"{graph} ({', '.join(splits)})" for graph, splits in splits_of.items())
    return ", ".join(listed) or "no graph yet"


def read_file(path: str, what: str = "preset") -> dict[str, Any]:
    """Read a TOML file of a user; ``what`` names its purpose in an error."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no {what} {path}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a {what} ({error}).") from error


@cache
def read_preset(name: str) -> dict[str, Any]:
    """Read the TOML file of a built-in preset."""
    text = resources.files("everynode.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
