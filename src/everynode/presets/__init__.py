"""Presets: settings as data (TOML), by where they come from.

``default`` are the field defaults of :class:`everynode.Settings` with the changes of
``default.toml``; ``paper`` the tables of the paper; ``tuned`` and ``authors`` go by graph, split,
backbone and objective, as does a file that ``everynode tune --export`` wrote.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from everynode.datasets.entries import is_generated
from everynode.errors import DataError, UsageError, unknown
from everynode.models.names import MODELS, model_names
from everynode.objective_names import objective_name
from everynode.settings import Settings

PRESETS = ("default", "paper", "tuned", "authors")
#: The key of a tuned preset: split, graph, backbone, objective.
Place = tuple[str, str, str, str]


class NoSettings(UsageError):
    """A preset has nothing for this graph, split, backbone and objective."""


def preset(
    name: str = "default",
    *,
    graph: str = "",
    split: str = "",
    backbone: str = "gcn",
    objective: str = "enc",
    **changes: Any,
) -> Settings:
    """Return the settings of a preset, with ``changes`` on top (None does not count).

    ``name``: one of :data:`PRESETS`, or a TOML file that ``everynode tune --export`` wrote. Terms
    that the objective does not name keep their weight: see :meth:`Settings.for_objective`.
    """
    if name not in PRESETS and not name.endswith(".toml"):
        unknown("preset", name, [*PRESETS, "a file that ends in .toml"])
    if backbone not in MODELS and backbone not in model_names():
        unknown("backbone", backbone, model_names())
    if name == "default":
        values = dict(read_preset("default")["backbone"].get(backbone, {}))
    elif name == "paper":
        table = read_preset("paper")
        values = table["base"] | table["backbone"].get(backbone, {})
        values |= _paper_row(table, graph, split, backbone, objective_name(objective))
    else:
        values = _tuned_row(name, graph, split, backbone, objective_name(objective))
    given = {key: value for key, value in changes.items() if value is not None}
    where = f"The preset {name} for {backbone} {objective} on {graph or 'any graph'}"
    return Settings.from_dict({"backbone": backbone} | values, where).replace(**given)


def entrants(name: str = "default", **choice: Any) -> dict[str, Settings]:
    """Return the candidates that race when no objective is chosen, the simplest first.

    ``choice``: see :func:`preset`. Of another preset than ``default``, whose settings suit their
    graph already, its cross-entropy and its ENC race.

    >>> list(entrants()), list(entrants("paper", graph="cora", split="public"))
    (['ce', 'enc', 'light-ce', 'light-enc'], ['ce', 'enc'])
    """
    given = {key: value for key, value in choice.items() if value is not None}
    table = (
        read_preset("default")["race"]
        if name == "default"
        else {objective: {"objective": objective} for objective in ("ce", "enc")}
    )
    return {
        entrant: preset(name, **values | given).for_objective(values["objective"])
        for entrant, values in table.items()
    }


def _paper_row(
    table: dict[str, Any], graph: str, split: str, backbone: str, objective: str
) -> dict[str, Any]:
    """Return the paper's settings; its random splits of Cora follow its public-split table.

    Cross-entropy has ENC's settings, but for what a table ``ce`` within them says.
    """
    if is_generated(graph):
        graph, split = "ogbn-arxiv", "official"  # for which it stands in
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
    """Return a tuned preset's settings, without the record of its study."""
    rows = tuned_rows(name)
    row = rows.get((split, graph, backbone, objective))
    if row is None and split == "random":  # there are too many random splits to tune for each
        row = rows.get(("public", graph, backbone, objective))
    if row is None:
        here = [f"{b} {o}" for s, g, b, o in rows if (s, g) == (split, graph)]
        known = f"for that graph and split it has {', '.join(here)}"
        raise NoSettings(
            f"The preset {name} has no settings for {backbone} with objective {objective} on graph "
            f"{graph!r} with split {split!r}; {known if here else f'it knows {_graphs(rows)}'}. "
            "Choose from these, --preset default, or `everynode tune`."
        )
    return {key: value for key, value in row.items() if key != "study"}


def tuned_rows(name: str) -> dict[Place, dict[str, Any]]:
    """Return every row of a preset that goes by objective: ``tuned``, ``authors``, or a file."""
    table = read_preset(name) if name in PRESETS else read_file(name)
    try:
        return {
            (split, graph, backbone, objective): dict(row)
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
    """Read a user's TOML file, which should be a preset (or ``what``)."""
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
