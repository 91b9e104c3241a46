"""A tuning study: its settings, the trials to start from, and the runs that judge a trial.

Nothing here needs PyTorch or Optuna.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Literal

from everynode import __version__
from everynode.errors import UsageError
from everynode.machine import versions
from everynode.presets import NoSettings, Place, candidates, tuned_rows
from everynode.selection.search_space import Space, search_space, switch, within
from everynode.settings import Settings, declarations

#: The first seed of tuning. Final results start at seed 0, so no choice has seen their seeds.
FIRST_SEED = 1000
#: The seeds of a trial, unless a number is given.
SEEDS = 3
#: The parameters of trials by their origin.
Starts = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """The subject of a study, and how it judges a trial. Its ``name`` is its identity.

    Parameters
    ----------
    dataset, graph_digest, split, backbone, objective : str
        What the settings are tuned for.
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
        The flags that distinguish this study from others on the same graph, model and objective.
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
    declared = declarations().get(name)
    flag = declared.flag(name) if declared else f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return flag if value else f"--no-{flag.removeprefix('--')}"
    return f"{flag} {_spelled(value)}"


def check_numbers(trials: int, seeds: int | None, folds: int | None) -> None:
    """Refuse numbers of trials, seeds and folds that make no study."""
    if any(number is not None and number < 1 for number in (trials, seeds, folds)):
        raise UsageError("--trials, --seeds and --folds must be at least 1.")
    if folds is not None and seeds is not None:
        raise UsageError("--folds takes one seed on each fold: leave out --seeds.")


def judging_runs(
    seeds: int | None, folds: int | None, available: int, where: str
) -> tuple[Literal["seeds", "folds"], int]:
    """Return what the runs of a trial vary, and their number.

    Parameters
    ----------
    seeds, folds : int, optional
        The number of seeds or of folds; None for both: three seeds.
    available : int
        Number of folds of the split.
    where : str
        The name of the split, for an error.

    Examples
    --------
    >>> judging_runs(None, None, 1, "Split 'public'"), judging_runs(None, 5, 10, "Split 'geom-gcn'")
    (('seeds', 3), ('folds', 5))
    """
    if folds is None:
        return "seeds", seeds or SEEDS
    if folds > available:
        raise UsageError(
            f"{where} has {available} fold(s), not {folds}: choose fewer --folds, or another "
            "--split."
        )
    return "folds", folds


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
        Differences from the public graph of the same name, such as the seed of a random split.
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
    starts = {} if files else _default_starts(space, place, objective)
    if len({file.name for file in files}) < len(files):
        raise UsageError(
            "Two files of --start-from have the same name. A study needs different names: rename "
            "one."
        )
    light = _light_terms(space, place) if objective == "enc" else {}
    for preset in map(str, files or ("tuned", "authors")):
        title, settings = Path(preset).name, _preset_settings(preset, place)
        if not settings and files:
            raise NoSettings(
                f"{preset} has no settings for {backbone} on graph {dataset!r} with split "
                f"{split!r} to start from."
            )
        for other, chosen in settings.items():
            starts[f"{title} {other}"] = within(space, chosen)
        if "ce" in settings and objective == "enc":
            crossed = dict(light)
            if "enc" in settings:
                crossed["terms of enc"] = _only_terms(starts[f"{title} enc"])
            for name, weights in crossed.items():
                starts[f"{title} ce, {name}"] = starts[f"{title} ce"] | weights
    distinct: Starts = {}
    for name, parameters in starts.items():
        if parameters not in distinct.values():
            distinct[name] = parameters
    return distinct


def _default_starts(space: Space, place: Mapping[str, Any], objective: str) -> Starts:
    """Return the candidates of the default preset, and the paper's settings if there are any."""
    # Cross-entropy for every objective: the best weights of its terms may be small.
    starts = {
        f"default {name}": within(space, settings) for name, settings in candidates(**place).items()
    }
    if objective == "enc":
        added = _added_terms(space, place)
        starts |= {f"default ce, {name}": parameters for name, parameters in added.items()}
    with suppress(NoSettings):  # the paper does not have every graph
        starts["paper"] = within(space, Settings.preset("paper", objective=objective, **place))
    return starts


def _added_terms(space: Space, place: Mapping[str, Any]) -> Starts:
    """Return the default settings of cross-entropy with terms that the paper does not have."""
    plain = candidates(**place)["ce"]
    return {
        "consistency": within(space, plain.replace(consistency=1.0)),
        "consistency, class prior": within(space, plain.replace(consistency=1.0, prior=3.0)),
    }


def _light_terms(space: Space, place: Mapping[str, Any]) -> Starts:
    """Return light weights of terms, to be added to any settings of cross-entropy."""
    starts = _added_terms(space, place)
    for name in ("enc", "tv"):
        lighter = candidates(**place)["light-enc"].for_objective(name)
        starts[f"light {name}"] = within(space, lighter)
    return {name: _only_terms(parameters) for name, parameters in starts.items()}


def _preset_settings(preset: str, place: Mapping[str, Any]) -> dict[str, Settings]:
    """Return the settings that a tuned preset has for a place, by objective."""
    wanted = (place["split"], place["graph"], place["backbone"])
    objectives = [objective for *row, objective in tuned_rows(preset) if tuple(row) == wanted]
    return {name: Settings.preset(preset, objective=name, **place) for name in objectives}


def _only_terms(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the objective: weights, options and switches of terms."""
    others = {name for name, declared in declarations().items() if declared.group != "Objective"}
    return {
        name: value
        for name, value in parameters.items()
        if name.removeprefix(switch("")) not in others
    }
