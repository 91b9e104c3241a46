"""A tuning study: the search space, the settings to start from, and the runs that judge a trial.

Nothing here needs PyTorch or Optuna.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Literal

from everynode import __version__, plugins
from everynode.errors import DataError, UsageError
from everynode.machine import versions
from everynode.objective_names import named_terms, parse_objective
from everynode.presets import NoSettings, Place, candidates, read_file, tuned_rows
from everynode.settings import TERMS, Search, Settings, declarations

#: The first seed of tuning. Final results start at seed 0, so no choice has seen their seeds.
FIRST_SEED = 1000
#: The weight of a plugin's term is searched between its default divided and multiplied by this.
PLUGIN_FACTOR = 30.0
#: By setting: ``low`` and ``high`` (with ``log``, and ``off`` if 0 is allowed too), or ``choices``.
Space = dict[str, dict[str, Any]]
#: The parameters of trials by their origin.
Starts = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """What is tuned, and how a trial is judged. Studies with the same ``name`` are the same study.

    Parameters
    ----------
    dataset, graph_digest, split, backbone, objective : str
        The place that settings are tuned for.
    over : "seeds" or "folds"
        Whether a trial runs several seeds on fold 0, or one seed on each of the first folds.
    count : int
        The number of seeds or folds.
    base : Settings
        The settings that are not searched.
    space : dict
        The settings that are searched.
    starts : dict
        The parameters of the first trials, by the preset that they come from.
    changes : dict
        The flags in which this study differs from others of its place.
    versions : dict
        The versions of the packages that decide the numbers.
    """

    dataset: str
    graph_digest: str
    split: str
    backbone: str
    objective: str
    over: Literal["seeds", "folds"]
    count: int
    base: Settings
    space: Space
    starts: Starts = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(
        default_factory=lambda: (
            versions() | {"everynode": __version__, "optuna": installed("optuna")}
        )
    )

    @property
    def name(self) -> str:
        """The name of the study and of its journal."""
        what = (self.dataset, self.split, self.backbone, self.objective, f"{self.count}{self.over}")
        changes = [f"{key}={_spelled(value)}" for key, value in sorted(self.changes.items())]
        return "-".join([*what, *changes]).replace("/", "_")

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The fold and seed of each run of a trial."""
        return [
            (0, FIRST_SEED + i) if self.over == "seeds" else (i, FIRST_SEED)
            for i in range(self.count)
        ]

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that a trial chose, by name, rounded to four digits for presets."""
        chosen = {
            name: 0.0 if parameters.get(switch(name)) else parameters[name] for name in self.space
        }
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in chosen.items()
        }

    def num_terms(self, parameters: Mapping[str, Any]) -> int:
        """Return the number of terms besides cross-entropy in a trial's objective."""
        return len(self.settings(parameters).active_terms())

    def settings(self, parameters: Mapping[str, Any]) -> Settings:
        """Return all settings of a trial."""
        values = self.values(parameters)
        outside = {name: values.pop(name) for name in list(values) if name not in declarations()}
        weights = dict(self.base.weights) | outside
        return self.base.replace(weights=weights, **values).for_objective(self.objective)


def _spelled(value: Any) -> str:
    """Return a value as a flag spells it.

    >>> _spelled({"yes": 5.0, "no": 1.0}), _spelled(0.5)
    ('yes=5,no=1', '0.5')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{name}={weight:g}" for name, weight in value.items())
    return str(value)


def flag_words(name: str, value: Any) -> str:
    """Return the flag that makes a change.

    >>> flag_words("normalize_features", False), flag_words("weights", {"hub": 0.2})
    ('--no-normalize-features', '--term-weight hub=0.2')
    """
    flags = declarations()[name].flags if name in declarations() else ()
    flag = flags[0] if flags else f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return flag if value else f"--no-{flag.removeprefix('--')}"
    return f"{flag} {_spelled(value)}"


def plan_study(
    place: Place,
    *,
    preset: str,
    changes: Mapping[str, Any],
    graph_changes: Mapping[str, Any],
    digest: str,
    over: Literal["seeds", "folds"],
    count: int,
    space: Path | None = None,
    start_from: Sequence[Path] = (),
) -> Study:
    """Return the study for a place.

    Parameters
    ----------
    place : Place
        Split, graph, backbone and objective.
    preset : str
        The preset of the settings that are not searched.
    changes : mapping
        Settings that replace those of the preset. They are not searched.
    graph_changes : mapping
        How the graph differs from the public one of its name, such as the seed of a random split.
    digest : str
        The digest of the graph.
    over, count
        See :class:`Study`.
    space : Path, optional
        A user's search space; see :func:`search_space`.
    start_from : sequence of Path
        The presets to start from; see :func:`starting_points`.
    """
    split, dataset, backbone, objective = place
    whole = search_space(backbone, objective, space)
    searched = {name: choice for name, choice in whole.items() if name not in changes}
    named = {**changes, **graph_changes}
    if preset != "default":
        named["preset"] = Path(preset).name
    if space:
        named["space"] = space.name
    return Study(
        dataset,
        digest,
        split,
        backbone,
        objective,
        over,
        count,
        Settings.preset(
            preset, graph=dataset, split=split, backbone=backbone, objective=objective, **changes
        ),
        searched,
        starting_points(searched, dataset, split, backbone, objective, start_from),
        named,
    )


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
    terms = parse_objective(objective)
    space: Space = {}
    for name, declared in declarations().items():
        term = name if declared.term else declared.of_term
        if declared.search and declared.is_of(backbone) and (not term or term in terms):
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
                f"{file}: {name} needs a low and a higher high (above 0 with log = true), or "
                "choices."
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


def starting_points(
    space: Space, dataset: str, split: str, backbone: str, objective: str, files: Sequence[Path]
) -> Starts:
    """Return the parameters of the first trials: those of the presets in ``files``.

    Without files they come from the built-in presets. A tuned preset gives the settings of all its
    objectives, which share most parameters. For ENC, the settings of cross-entropy are also tried
    with light terms, because good terms are often close to the best cross-entropy: all terms, TV
    alone, consistency alone, consistency with the class prior, and the terms that the same preset
    has for ENC.
    """
    place: dict[str, Any] = {"graph": dataset, "split": split, "backbone": backbone}
    starts: Starts = {}
    default = candidates(**place)
    extra = {
        "consistency": within(space, default["ce"].replace(consistency=1.0)),
        "consistency, class prior": within(
            space, default["ce"].replace(consistency=1.0, prior=3.0)
        ),
    }
    if not files:
        # Cross-entropy too, whatever the objective: it may need little of its terms.
        for name, settings in default.items():
            starts[f"default {name}"] = within(space, settings)
        if objective == "enc":
            starts |= {f"default ce, {name}": parameters for name, parameters in extra.items()}
        with suppress(NoSettings):  # the paper does not have every graph
            starts["paper"] = within(space, Settings.preset("paper", objective=objective, **place))
    of_objective = {*default["ce"].group("Objective"), *plugins_of(objective)}

    def only_terms(parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: value
            for key, value in parameters.items()
            if key.removeprefix(switch("")) in of_objective
        }

    light: Starts = {}
    if objective == "enc":
        light = {name: only_terms(parameters) for name, parameters in extra.items()}
        for name in ("enc", "tv"):
            lighter = default["light-enc"].for_objective(name)
            light[f"light {name}"] = only_terms(within(space, lighter))
    if len({file.name for file in files}) < len(files):
        raise UsageError(
            "Two files of --start-from have the same name, and a study needs different names: "
            "rename one."
        )
    for preset in map(str, files or ("tuned", "authors")):
        title = Path(preset).name
        rows = tuned_rows(preset)
        objectives = [o for s, g, b, o in rows if (s, g, b) == (split, dataset, backbone)]
        if not objectives and files:
            raise NoSettings(
                f"{preset} has no settings for {backbone} on graph {dataset!r} with split "
                f"{split!r} to start from."
            )
        for other in objectives:
            settings = Settings.preset(preset, objective=other, **place)
            starts[f"{title} {other}"] = within(space, settings)
        if "ce" in objectives and objective == "enc":
            crossed = dict(light)
            if "enc" in objectives:
                crossed["terms of enc"] = only_terms(starts[f"{title} enc"])
            for name, weights in crossed.items():
                starts[f"{title} ce, {name}"] = starts[f"{title} ce"] | weights
    distinct: Starts = {}
    for name, parameters in starts.items():
        if parameters not in distinct.values():
            distinct[name] = parameters
    return distinct


def plugins_of(objective: str) -> tuple[str, ...]:
    """Return the terms of plugins that an objective names."""
    return tuple(term for term in parse_objective(objective) if term not in TERMS)


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
