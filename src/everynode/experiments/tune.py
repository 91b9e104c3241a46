"""Tuning on validation nodes only: an Optuna study whose trials never see a test node."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from everynode.errors import DataError, EverynodeError
from everynode.graph import Graph
from everynode.settings import Settings, parse_objective, read_preset
from everynode.training import fit
from everynode.training.many import run_many

optuna.logging.set_verbosity(optuna.logging.WARNING)

#: Trials before the sampler stops guessing at random, and before a trial may be given up after its first runs.
STARTUP, BEFORE_PRUNING = 12, 8


@dataclass(frozen=True)
class Study:
    """What is tuned: a graph's split, a backbone and an objective, each trial judged by the mean over the same folds and seeds."""

    dataset: str
    split: str
    backbone: str
    objective: str
    #: (fold, seed) of the runs of a trial.
    runs: tuple[tuple[int, int], ...]
    #: What the search leaves as it is.
    base: Settings
    journal: Path

    @property
    def name(self) -> str:
        """Its name in the journal."""
        runs = "-".join(f"{fold}.{seed}" for fold, seed in self.runs)
        return f"{self.dataset} {self.split} {self.backbone} {self.objective} {runs}"

    def space(self) -> dict[str, dict[str, Any]]:
        """The parameters and their ranges."""
        return search_space(self.backbone, self.objective)

    def open(self) -> optuna.Study:
        """The Optuna study, made if it is not there."""
        try:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            storage = JournalStorage(JournalFileBackend(str(self.journal)))
            return optuna.create_study(
                study_name=self.name,
                storage=storage,
                direction="maximize",
                load_if_exists=True,
                sampler=optuna.samplers.TPESampler(n_startup_trials=STARTUP, multivariate=True, constant_liar=True),
                pruner=optuna.pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING, n_warmup_steps=0),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.journal} is not a journal of studies ({error}): name another --out.") from error

    def settings(self, parameters: Mapping[str, Any]) -> Settings:
        """A trial's settings."""
        return dataclasses.replace(self.base, **parameters).for_objective(self.objective)


def search_space(backbone: str, objective: str) -> dict[str, dict[str, Any]]:
    """The parameters that a study searches, and their ranges, from ``presets/search.toml``."""
    table = read_preset("search")
    found: dict[str, dict[str, Any]] = table["all"] | table["backbone"][backbone]
    for term in parse_objective(objective):
        found = found | table["term"][term]
    return found


def tune(
    study: Study,
    graph: Graph,
    trials: int,
    *,
    known: Sequence[Settings] = (),
    workers: int | None = None,
    on_trial: Callable[[FrozenTrial, optuna.Study], None] = lambda trial, study: None,
) -> optuna.Study:
    """Bring the study to ``trials`` ended trials, those of earlier calls included. ``known``: settings to try first."""
    opened = study.open()
    if not opened.trials:
        for settings in known:
            opened.enqueue_trial(_within(study.space(), settings), skip_if_exists=True)
    for trial in opened.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):  # of a process that was killed
        opened.tell(trial.number, state=TrialState.FAIL)
        opened.enqueue_trial(trial.params)
    left = trials - len(ended(opened))
    for _, number in run_many(_one_trial, range(left), (study, graph), workers=workers):
        on_trial(opened.trials[number], opened)
    return opened


def ended(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count: complete, or given up because others were better."""
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def _one_trial(job: int, shared: tuple[Study, Graph]) -> int:
    study, graph = shared
    opened = study.open()
    trial = opened.ask()
    start = time.perf_counter()
    scores: list[float] = []
    try:
        settings = study.settings({name: _suggest(trial, name, choice) for name, choice in study.space().items()})
        for step, (fold, seed) in enumerate(study.runs):
            scores.append(_validation_accuracy(graph, settings, fold, seed))
            trial.report(statistics.mean(scores), step)
            if step + 1 < len(study.runs) and trial.should_prune():
                break
    except BaseException:
        opened.tell(trial, state=TrialState.FAIL)
        raise
    trial.set_user_attr("validation", scores)
    trial.set_user_attr("seconds", round(time.perf_counter() - start, 2))
    if len(scores) < len(study.runs):
        opened.tell(trial, state=TrialState.PRUNED)
    else:
        opened.tell(trial, statistics.mean(scores))
    return trial.number


def _validation_accuracy(graph: Graph, settings: Settings, fold: int, seed: int) -> float:
    try:
        fitted = fit(graph, settings, fold=fold, seed=seed)
    except DataError:
        raise
    except EverynodeError:  # diverged: as bad as can be
        return 0.0
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted.metrics["val_accuracy"]


def _suggest(trial: Trial, name: str, choice: Mapping[str, Any]) -> Any:
    if "choices" in choice:
        return trial.suggest_categorical(name, choice["choices"])
    return trial.suggest_float(name, choice["low"], choice["high"], log=choice.get("log", False))


def _within(space: Mapping[str, Mapping[str, Any]], settings: Settings) -> dict[str, Any]:
    """Settings as a trial's parameters, moved into the ranges where they lie outside."""
    found = {}
    for name, choice in space.items():
        value = getattr(settings, name)
        if "choices" in choice:
            found[name] = value if value in choice["choices"] else choice["choices"][0]
        else:
            found[name] = min(max(value, choice["low"]), choice["high"])
    return found


def importance(study: optuna.Study) -> dict[str, float]:
    """How much each parameter decided, by Optuna's fANOVA; empty while there are too few trials."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < 4 or len({trial.value for trial in complete}) < 2:
        return {}
    return optuna.importance.get_param_importances(study)


def as_preset(study: Study, opened: optuna.Study) -> str:
    """The best trial as a preset in TOML, with the study's record."""
    return "\n".join(_preset_lines(study, opened)) + "\n"


def _preset_lines(study: Study, opened: optuna.Study) -> Iterator[str]:
    best = opened.best_trial
    runs = ", ".join(f"fold {fold} seed {seed}" for fold, seed in study.runs)
    yield f"# Chosen on validation nodes by `everynode tune`: trial {best.number} of {len(ended(opened))}, mean validation accuracy"
    yield f"# {best.value:.4f} over {runs}."
    yield f"[{study.split}.{study.dataset}.{study.backbone}.{study.objective}]"
    chosen = dataclasses.asdict(study.settings(best.params))
    for name, value in chosen.items():
        if name != "backbone":
            yield f"{name} = {_toml(value)}"


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(float(f"{value:.6g}")) if isinstance(value, float) else str(value)
