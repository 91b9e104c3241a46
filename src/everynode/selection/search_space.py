"""The search space of a study: the settings that it searches, with their ranges.

Nothing here needs Optuna.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from everynode import plugins
from everynode.errors import DataError
from everynode.objective_names import named_terms, parse_objective
from everynode.presets import read_file
from everynode.settings import TERMS, Search, Settings, declarations

#: The weight of a plugin's term is searched from its default divided by this to its default times
#: this.
PLUGIN_FACTOR = 30.0
#: By setting: ``low`` and ``high`` (with ``log``, and ``off`` if 0 is allowed too), or ``choices``.
Space = dict[str, dict[str, Any]]


def switch(name: str) -> str:
    """Return the name of the parameter that decides whether another one is off."""
    return f"no_{name}"


def search_space(backbone: str, objective: str, file: Path | None = None) -> Space:
    """Return the settings that a study searches, with their ranges.

    They are the settings with a :class:`~everynode.settings.Search` that the backbone and the
    terms of the objective use. A term that the objective names has a weight; under ``enc``, which
    names none, it may also be off. ``file`` is a user's TOML file with tables ``[all]``,
    ``[backbone.NAME]`` and ``[term.NAME]``.

    >>> sorted(set(search_space("gcn", "tv")) - set(search_space("gcn", "ce")))
    ['tv', 'tv_gate', 'tv_sigma']
    """
    if file is None:
        space = _declared_space(backbone, objective)
    else:
        space = _read_space(backbone, objective, file)
    for name in named_terms(objective):
        if name in space:
            space[name] = {key: value for key, value in space[name].items() if key != "off"}
    return space


def _declared_space(backbone: str, objective: str) -> Space:
    from everynode.models.build import unused_settings  # imports PyTorch

    terms, unused = parse_objective(objective), unused_settings(backbone)
    space: Space = {}
    for name, declared in declarations().items():
        term = name if declared.term else declared.of_term
        if declared.search and name not in unused and (not term or term in terms):
            space[name] = declared.search.space(backbone) | ({"off": True} if declared.term else {})
    for name in terms:
        if name not in TERMS:
            default = plugins.terms()[name].default_weight or 1.0
            search = Search(default / PLUGIN_FACTOR, default * PLUGIN_FACTOR, log=True)
            space[name] = search.space(backbone)
    return space


def _read_space(backbone: str, objective: str, file: Path) -> Space:
    table = read_file(str(file), "search space")
    space: Space = {}
    try:
        of_terms = [table.get("term", {}).get(term, {}) for term in parse_objective(objective)]
        for part in (table.get("all", {}), table.get("backbone", {}).get(backbone, {}), *of_terms):
            space |= part
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"{file} is not a search space: it needs tables [all], [backbone.NAME] and [term.NAME]."
        ) from None
    searchable = {*declarations(), *parse_objective(objective)} - {"backbone"}
    for name, choice in space.items():
        if name not in searchable:
            raise DataError(f"{file}: {name!r} is not a setting. Remove it from the search space.")
        if not isinstance(choice, dict) or not (choice.get("choices") or _is_range(choice)):
            raise DataError(
                f"{file}: {name} needs choices, or a low below its high (above 0 with log = true)."
            )
        if choice.get("off") and (name not in TERMS or "choices" in choice):
            raise DataError(
                f"{file}: {name} cannot be off: only the weight of a term with a low and a high "
                "can."
            )
    if not space:
        raise DataError(
            f"{file} has nothing to search for {backbone} and {objective}: it needs [all], "
            f"[backbone.{backbone}] or [term.*]."
        )
    return space


def _is_range(choice: dict[str, Any]) -> bool:
    low, high = (choice.get(end) for end in ("low", "high"))
    return (
        isinstance(low, int | float)
        and isinstance(high, int | float)
        and (0 if choice.get("log") else -math.inf) < low < high
    )


def within(space: Space, settings: Settings) -> dict[str, Any]:
    """Return settings as the parameters of a trial, moved into the ranges of the space.

    >>> space = {"tv": {"low": 0.1, "high": 2.0}, "num_layers": {"choices": [4, 8]}}
    >>> within(space, Settings(tv=5.0, num_layers=2))
    {'tv': 2.0, 'num_layers': 4}
    >>> within({"tv": {"low": 0.1, "high": 2.0, "off": True}}, Settings(tv=0.0))
    {'tv': 0.1, 'no_tv': True}
    """
    parameters: dict[str, Any] = {}
    for name, choice in space.items():
        if name in declarations():
            value = getattr(settings, name)
        else:
            value = dict(settings.weights).get(name, plugins.terms()[name].default_weight)
        if "choices" not in choice:
            parameters[name] = min(max(value, choice["low"]), choice["high"])
            if choice.get("off"):
                parameters[switch(name)] = value == 0
        elif isinstance(value, str):
            parameters[name] = value if value in choice["choices"] else choice["choices"][0]
        else:
            parameters[name] = min(choice["choices"], key=lambda other: abs(other - value))
    return parameters
