"""A tuning study: what is searched, and the journal in which its trials are kept, one file that several processes may write."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Self

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from everynode import __version__
from everynode.errors import DataError
from everynode.experiments.owner import LOCKS, lock_file
from everynode.experiments.run import versions
from everynode.settings import NoSettings, Settings, parse_objective, read_file, read_preset, tuned_rows

optuna.logging.set_verbosity(optuna.logging.WARNING)

#: Complete trials before one may be given up after its first runs.
BEFORE_PRUNING = 8
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
    versions: dict[str, str] = field(default_factory=lambda: versions() | {"everynode": __version__, "optuna": optuna.__version__})

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
    ['tv', 'tv_gate']
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
    for preset in ("default", "paper"):
        with suppress(NoSettings):  # the paper does not know every graph
            found[preset] = within(space, Settings.preset(preset, objective=objective, **place))
    for preset in ("tuned", *map(str, files)):
        others = [other for s, g, b, other in tuned_rows(preset) if (s, g, b) == (split, dataset, backbone)]
        if not others and preset != "tuned":
            raise NoSettings(f"{preset} has no settings for {backbone} on graph {dataset!r} with split {split!r} to start from.")
        for other in others:
            found[f"{preset} {other}"] = within(space, Settings.preset(preset, objective=other, **place))
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


class Journal:
    """A study in its file. Opening makes the file, unless ``study`` is None: then it has to be there."""

    def __init__(self, path: Path, study: Study | None = None):
        self.path = path
        self.lock = _Lock(path)
        try:
            if study is None and not path.is_file():
                raise DataError(f"There is no study at {path}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.lock:
                _drop_torn_line(path)
                storage = JournalStorage(JournalFileBackend(str(path), self.lock))
                self.optuna = self._load(storage, study)
                self.study = _read(self.optuna.user_attrs["study"])
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is not the journal of a study ({error}): move it away, or name another --out.") from error
        if study is not None and study.graph_digest != self.study.graph_digest:
            raise DataError(f"{path} is a study of another graph by the name {study.dataset}: move it away, or name another --out.")

    def _load(self, storage: JournalStorage, study: Study | None) -> optuna.Study:
        """The Optuna study; a new one is told what it is."""
        names = [found.study_name for found in storage.get_all_studies()]
        if not names and (study is None or self.path.stat().st_size):
            raise ValueError("there is no study in it")
        name = names[0] if study is None else study.name
        if names and name not in names:
            raise DataError(f"{self.path} is the journal of another study ({names[0]}): name another --out.")
        pruner = optuna.pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING)
        if names:
            opened = optuna.load_study(study_name=name, storage=storage, pruner=pruner)
        else:
            opened = optuna.create_study(study_name=name, storage=storage, pruner=pruner, direction="maximize")
        if study is not None and "study" not in opened.user_attrs:
            opened.set_user_attr("study", dataclasses.asdict(study))
        return opened

    def ended(self) -> list[FrozenTrial]:
        """The trials that count: complete, or given up because others were better."""
        return self.optuna.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))

    def best(self) -> FrozenTrial | None:
        """The complete trial of the highest mean validation accuracy; ties by validation loss."""
        return max((trial for trial in self.ended() if trial.state == TrialState.COMPLETE), key=rank, default=None)


def rank(trial: FrozenTrial) -> tuple[float, float, int]:
    """By what complete trials are compared: the higher the better."""
    assert trial.value is not None
    return trial.value, -statistics.mean(trial.user_attrs["losses"]), -trial.number


def _read(stored: dict[str, Any]) -> Study:
    return Study(**stored | {"base": Settings(**stored["base"])})


def _drop_torn_line(path: Path) -> None:
    """A process that was killed, or a full disk, may have left half a line at the end. While we hold the lock nobody is writing it."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


class _Lock(JournalFileOpenLock):
    """The lock of a journal, which may be taken several times over, and which the system lets go of however a process ends."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path.with_name(f"{path.name}.lock")
        self._file: IO[str] | None = None
        self._depth = 0

    def acquire(self) -> bool:
        """Wait until it is ours."""
        if self._depth == 0 and LOCKS:
            self._file = self._path.open("w")
            lock_file(self._file)
        elif self._depth == 0:
            super().acquire()
        self._depth += 1
        return True

    def release(self) -> None:
        """Let go, as often as it was taken."""
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            self._file.close()
        elif self._depth == 0:
            super().release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
