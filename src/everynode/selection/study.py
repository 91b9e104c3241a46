"""A tuning study: what is searched, where it starts, and how a trial is judged. Nothing here needs PyTorch or Optuna."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Literal

from everynode import __version__
from everynode.errors import DataError, UsageError
from everynode.experiments.run_spec import versions
from everynode.objective_names import named_terms, parse_objective
from everynode.presets import NoSettings, entrants, read_file, read_preset, tuned_rows
from everynode.settings import TERMS, Settings

#: The first seed of the runs that judge a trial: final numbers, which begin at seed 0, come from seeds that no choice has seen.
FIRST_SEED = 1000
#: A parameter's ``low`` and ``high`` (and ``log``, and whether it may be ``off``), or its ``choices``, by the parameter's name.
Space = dict[str, dict[str, Any]]
#: Parameters of trials by where they come from.
Known = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """What is tuned, and how a trial is judged. Two studies of one ``name`` are the same study."""

    dataset: str
    graph_digest: str
    split: str
    backbone: str
    objective: str
    #: The runs of a trial: so many seeds on fold 0, or one seed on each of the first so many folds.
    over: Literal["seeds", "folds"]
    count: int
    #: What the search leaves as it is.
    base: Settings
    space: Space
    #: Parameters that are tried first, by the preset that they are from.
    known: Known = field(default_factory=dict)
    #: How this study differs from others of the same graph, backbone and objective: the preset, flags, or a drawn split.
    changes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(
        default_factory=lambda: (
            versions() | {"everynode": __version__, "optuna": installed("optuna")}
        )
    )

    @property
    def name(self) -> str:
        """Its name, which is the journal's too."""
        what = (self.dataset, self.split, self.backbone, self.objective, f"{self.count}{self.over}")
        return "-".join([*what, *(f"{key}={value}" for key, value in sorted(self.changes.items()))])

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Fold and seed of the runs that judge a trial."""
        return [
            (0, FIRST_SEED + i) if self.over == "seeds" else (i, FIRST_SEED)
            for i in range(self.count)
        ]

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial's parameters mean, by the setting's name. Numbers have four digits, so that a preset can print them."""
        chosen = {
            name: 0.0 if parameters.get(switch(name)) else parameters[name] for name in self.space
        }
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in chosen.items()
        }

    def terms(self, parameters: Mapping[str, Any]) -> int:
        """How many terms a trial's objective has besides cross-entropy."""
        return sum(bool(getattr(self.settings(parameters), term)) for term in TERMS)

    def settings(self, parameters: Mapping[str, Any]) -> Settings:
        """A trial's settings."""
        return dataclasses.replace(self.base, **self.values(parameters)).for_objective(
            self.objective
        )


def switch(name: str) -> str:
    """The trial's parameter that says whether another is off."""
    return f"no_{name}"


def search_space(backbone: str, objective: str, file: Path | None = None) -> Space:
    """The parameters that a study searches, and their ranges: those for all, the backbone's, and those of the objective's terms.

    A term that the objective names is there; only of ``enc``, which names none, may a term be off.

    >>> sorted(set(search_space("gcn", "tv")) - set(search_space("gcn", "ce")))
    ['tv', 'tv_gate', 'tv_sigma']
    """
    table = read_preset("search") if file is None else read_file(str(file), "search space")
    found: Space = {}
    try:
        of_terms = [table.get("term", {}).get(term, {}) for term in parse_objective(objective)]
        for part in (table.get("all", {}), table.get("backbone", {}).get(backbone, {}), *of_terms):
            found |= part
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"{file} is not a search space: it needs tables [all], [backbone.NAME] and [term.NAME]."
        ) from None
    names = {f.name for f in dataclasses.fields(Settings)} - {"backbone"}
    for name, choice in found.items():
        if name not in names:
            raise DataError(f"{file}: {name} is no setting, so it cannot be searched.")
        if not isinstance(choice, dict) or not (choice.get("choices") or _is_range(choice)):
            raise DataError(
                f"{file}: {name} needs a low and a higher high (above 0 with log = true), or choices."
            )
        if choice.get("off") and (name not in TERMS or "choices" in choice):
            raise DataError(
                f"{file}: {name} cannot be off: only the weight of a term with a low and a high can."
            )
        if name in named_terms(objective):
            found[name] = {key: value for key, value in choice.items() if key != "off"}
    if not found:
        raise DataError(
            f"{file} names nothing to search for {backbone} and {objective}: it needs [all], [backbone.{backbone}] or [term.*]."
        )
    return found


def _is_range(choice: dict[str, Any]) -> bool:
    low, high = (choice.get(end) for end in ("low", "high"))
    return (
        isinstance(low, int | float)
        and isinstance(high, int | float)
        and (0 if choice.get("log") else -math.inf) < low < high
    )


def known_parameters(
    space: Space, dataset: str, split: str, backbone: str, objective: str, files: Sequence[Path]
) -> Known:
    """What is tried first: what the presets in ``files`` would choose; without files, what everynode's own would.

    Of tuned presets the settings of all objectives, which have most parameters in common. Terms that help are often not far from where
    cross-entropy is best: so for ENC its settings are tried with light terms too, with all and with TV alone, with consistency alone
    and with it and the class prior, and with the terms that the same preset has for ENC.
    """
    place: dict[str, Any] = {"graph": dataset, "split": split, "backbone": backbone}
    found: Known = {}
    racing = entrants(**place)
    later = {
        "consistency": within(space, dataclasses.replace(racing["ce"], consistency=1.0)),
        "consistency, class prior": within(
            space, dataclasses.replace(racing["ce"], consistency=1.0, prior=3.0)
        ),
    }
    if not files:
        for (
            entrant,
            settings,
        ) in (
            racing.items()
        ):  # what the default race has, cross-entropy's too: ENC may have little need
            found[f"default {entrant}"] = within(space, settings)
        if objective == "enc":
            found |= {f"default ce, {name}": parameters for name, parameters in later.items()}
        with suppress(NoSettings):  # the paper does not know every graph
            found["paper"] = within(space, Settings.preset("paper", objective=objective, **place))
    of_terms = racing["ce"].group("Objective")

    def terms(parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: value
            for key, value in parameters.items()
            if key.removeprefix(switch("")) in of_terms
        }

    light: Known = (
        {name: terms(parameters) for name, parameters in later.items()}
        if objective == "enc"
        else {}
    )
    for name in ("enc", "tv") if objective == "enc" else ():
        light[f"light {name}"] = terms(within(space, racing["light-enc"].for_objective(name)))
    if len({file.name for file in files}) < len(files):
        raise UsageError(
            "Two files to start from have the same name, by which a study tells them apart: rename one."
        )
    for preset in map(str, files or ("tuned", "authors")):
        others = [
            other
            for s, g, b, other in tuned_rows(preset)
            if (s, g, b) == (split, dataset, backbone)
        ]
        if not others and files:
            raise NoSettings(
                f"{preset} has no settings for {backbone} on graph {dataset!r} with split {split!r} to start from."
            )
        for other in others:
            found[f"{Path(preset).name} {other}"] = within(
                space, Settings.preset(preset, objective=other, **place)
            )
        if "ce" in others and objective == "enc":
            crossed = (
                {"terms of enc": terms(found[f"{Path(preset).name} enc"])}
                if "enc" in others
                else {}
            )
            for name, weights in (light | crossed).items():
                found[f"{Path(preset).name} ce, {name}"] = (
                    found[f"{Path(preset).name} ce"] | weights
                )
    return {
        name: parameters
        for i, (name, parameters) in enumerate(found.items())
        if parameters not in list(found.values())[:i]
    }


def within(space: Space, settings: Settings) -> dict[str, Any]:
    """Settings as a trial's parameters, moved into the ranges where they lie outside.

    >>> within({"tv": {"low": 0.1, "high": 2.0}, "layers": {"choices": [4, 8]}}, Settings(tv=5.0, num_layers=2))
    {'tv': 2.0, 'layers': 4}
    >>> within({"tv": {"low": 0.1, "high": 2.0, "off": True}}, Settings(tv=0.0))
    {'tv': 0.1, 'no_tv': True}
    """
    found: dict[str, Any] = {}
    for name, choice in space.items():
        value = getattr(settings, name)
        if "choices" not in choice:
            found[name] = min(max(value, choice["low"]), choice["high"])
            if choice.get("off"):
                found[switch(name)] = value == 0
        elif isinstance(value, str):
            found[name] = value if value in choice["choices"] else choice["choices"][0]
        else:
            found[name] = min(choice["choices"], key=lambda other: abs(other - value))
    return found
