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
from everynode.errors import DataError
from everynode.experiments.run import versions
from everynode.settings import NoSettings, Settings, parse_objective, read_file, read_preset, tuned_rows

#: The first seed of the runs that judge a trial: final numbers, which begin at seed 0, come from seeds that no choice has seen.
FIRST_SEED = 1000
#: A parameter's ``low`` and ``high`` (and ``log``), or its ``choices``, by the parameter's name.
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
    versions: dict[str, str] = field(default_factory=lambda: versions() | {"everynode": __version__, "optuna": installed("optuna")})

    @property
    def name(self) -> str:
        """Its name, which is the journal's too."""
        what = (self.dataset, self.split, self.backbone, self.objective, f"{self.count}{self.over}")
        return "-".join([*what, *(f"{key}={value}" for key, value in sorted(self.changes.items()))])

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Fold and seed of the runs that judge a trial."""
        return [(0, FIRST_SEED + i) if self.over == "seeds" else (i, FIRST_SEED) for i in range(self.count)]

    def settings(self, parameters: Mapping[str, Any]) -> Settings:
        """A trial's settings. Numbers have four digits, so that they can be printed in a preset and still be what was tried."""
        short: dict[str, Any] = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in parameters.items()}
        return dataclasses.replace(self.base, **short).for_objective(self.objective)


def search_space(backbone: str, objective: str, file: Path | None = None) -> Space:
    """The parameters that a study searches, and their ranges: those for all, the backbone's, and those of the objective's terms.

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
        raise DataError(f"{file} is not a search space: it needs tables [all], [backbone.NAME] and [term.NAME].") from None
    names = {f.name for f in dataclasses.fields(Settings)} - {"backbone"}
    for name, choice in found.items():
        if name not in names:
            raise DataError(f"{file}: {name} is no setting, so it cannot be searched.")
        if not isinstance(choice, dict) or not (choice.get("choices") or _is_range(choice)):
            raise DataError(f"{file}: {name} needs a low and a higher high (above 0 with log = true), or choices.")
    if not found:
        raise DataError(
            f"{file} names nothing to search for {backbone} and {objective}: it needs [all], [backbone.{backbone}] or [term.*]."
        )
    return found


def _is_range(choice: dict[str, Any]) -> bool:
    low, high = (choice.get(end) for end in ("low", "high"))
    return isinstance(low, int | float) and isinstance(high, int | float) and (0 if choice.get("log") else -math.inf) < low < high


def known_parameters(space: Space, dataset: str, split: str, backbone: str, objective: str, files: Sequence[Path]) -> Known:
    """What presets would choose, to be tried first. Of tuned ones the settings of all objectives: they have most parameters in common."""
    place = {"graph": dataset, "split": split, "backbone": backbone}
    found: Known = {}
    for entrant, settings in Settings.entrants(**place).items():  # what the default race has, cross-entropy's too: ENC may have little need
        found[f"default {entrant}"] = within(space, settings)
    with suppress(NoSettings):  # the paper does not know every graph
        found["paper"] = within(space, Settings.preset("paper", objective=objective, **place))
    for preset in ("tuned", *map(str, files)):
        others = [other for s, g, b, other in tuned_rows(preset) if (s, g, b) == (split, dataset, backbone)]
        if not others and preset != "tuned":
            raise NoSettings(f"{preset} has no settings for {backbone} on graph {dataset!r} with split {split!r} to start from.")
        for other in others:
            found[f"{Path(preset).name} {other}"] = within(space, Settings.preset(preset, objective=other, **place))
    return {name: parameters for i, (name, parameters) in enumerate(found.items()) if parameters not in list(found.values())[:i]}


def within(space: Space, settings: Settings) -> dict[str, Any]:
    """Settings as a trial's parameters, moved into the ranges where they lie outside.

    >>> within({"tv": {"low": 0.1, "high": 2.0}, "layers": {"choices": [4, 8]}}, Settings(tv=5.0, layers=2))
    {'tv': 2.0, 'layers': 4}
    """
    found = {}
    for name, choice in space.items():
        value = getattr(settings, name)
        if "choices" not in choice:
            found[name] = min(max(value, choice["low"]), choice["high"])
        elif isinstance(value, str):
            found[name] = value if value in choice["choices"] else choice["choices"][0]
        else:
            found[name] = min(choice["choices"], key=lambda other: abs(other - value))
    return found
