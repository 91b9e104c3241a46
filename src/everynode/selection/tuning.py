"""Tuning: the trials of a study, on validation nodes only."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import Trial, TrialState

from everynode.errors import Diverged, UsageError
from everynode.evaluation.metrics import LOSSES
from everynode.graph import Graph
from everynode.selection.search_space import switch
from everynode.selection.study import Study
from everynode.selection.study_storage import Trials
from everynode.selection.tuned_presets import record
from everynode.settings import Settings
from everynode.training import train
from everynode.training.process_pool import Engine, run_many

#: Random trials before the sampler models the earlier ones.
STARTUP = 8
#: Complete trials before pruning starts.
BEFORE_PRUNING = 8
#: Complete trials before importance is estimated.
ENOUGH = 10
#: Seconds between two looks at the trials of other processes.
POLL = 0.5


def tune(
    journal: Trials,
    graph: Graph,
    trials: int,
    *,
    workers: int | None = None,
    engine: Engine = run_many,
    on_trial: Callable[[], None] = lambda: None,
) -> None:
    """Run trials until the study has ``trials`` ended ones, earlier calls included.

    Several processes may tune the same study and share its trials. The trial of a process that
    died is retired. The workers of the engine only train; this process draws the trials and writes
    the journal.

    Parameters
    ----------
    journal : Trials
        The study.
    graph : Graph
        The graph of the study.
    trials : int
        The number of ended trials to reach.
    workers : int, optional
        Trainings at once; None: one per core.
    engine : Engine
        Runs the trainings.
    on_trial : callable
        Called after every trial.
    """
    drawn: dict[int, Trial] = {}

    def next_trials(mark: Callable[[Trial], object]) -> Iterator[TrialRuns]:
        """Draw each trial as late as possible, when most results are in."""
        while (trial := _draw(journal, trials, mark)) is not None:
            drawn[trial.number] = trial
            settings = journal.study.settings(trial.params)
            yield TrialRuns(trial.number, settings, journal.study.runs, _thresholds(journal))

    with journal.at_work() as mark:
        while len(journal.ended()) < trials:
            with journal.lock:
                free = _free(journal, trials)
            for job, result in engine(
                _run_trial, next_trials(mark), graph, workers=workers, at_most=free
            ):
                _record(journal, drawn.pop(job.number), result)
                on_trial()
            if not free:  # other processes run the remaining trials
                time.sleep(POLL)
                on_trial()


@dataclass(frozen=True)
class TrialRuns:
    """The runs of a trial.

    Parameters
    ----------
    number : int
        The number of the trial.
    settings : Settings
        Its settings.
    runs : list of (fold, seed)
        The runs that judge it.
    thresholds : list of float
        After each run except the last: the mean score below which the trial is pruned.
    """

    number: int
    settings: Settings
    runs: list[tuple[int, int]]
    thresholds: list[float]


@dataclass(frozen=True)
class TrialResult:
    """The monitored metric and the loss of each run of a trial; fewer runs if it was pruned.

    Parameters
    ----------
    accuracies : list of float
        The monitored metric of each run.
    losses : list of float
        The validation loss of each run.
    seconds : float
        The time of the trial.
    """

    accuracies: list[float]
    losses: list[float]
    seconds: float


def _run_trial(job: TrialRuns, graph: Graph) -> TrialResult:
    """Run a trial in a worker; stop it if it is worse than the median after as many runs."""
    start = time.perf_counter()
    accuracies, losses, best = list[float](), list[float](), 0.0
    for (fold, seed), threshold in zip(job.runs, [*job.thresholds, 0.0], strict=True):
        accuracy, loss = _validate(graph, job.settings, fold, seed)
        accuracies.append(accuracy)
        losses.append(loss)
        best = max(best, statistics.mean(accuracies))
        if best < threshold:
            break
    return TrialResult(accuracies, losses, round(time.perf_counter() - start, 2))


def _thresholds(journal: Trials) -> list[float]:
    """Return the median of the complete trials after each run; 0 while there are few of them."""
    complete = [trial for trial in journal.ended() if trial.state == TrialState.COMPLETE]
    if len(complete) < BEFORE_PRUNING:
        return [0.0] * (journal.study.count - 1)
    return [
        statistics.median(
            statistics.mean(trial.user_attrs["accuracies"][: done + 1]) for trial in complete
        )
        for done in range(journal.study.count - 1)
    ]


def _record(journal: Trials, trial: Trial, result: TrialResult) -> None:
    """Store the result of a trial."""
    complete = len(result.accuracies) == journal.study.count
    # Another process may have retired this trial, if this one seemed dead.
    with suppress(UpdateFinishedTrialError, ValueError):
        for step in range(len(result.accuracies)):
            trial.report(statistics.mean(result.accuracies[: step + 1]), step)
        for name, value in dataclasses.asdict(result).items():
            trial.set_user_attr(name, value)
        if complete:
            journal.optuna.tell(trial, statistics.mean(result.accuracies))
        else:
            journal.optuna.tell(trial, state=TrialState.PRUNED)


def _free(journal: Trials, trials: int) -> int:
    """Retire the trials of dead processes, and return the number of trials that are left to do.

    Call it with the journal's lock held.
    """
    journal.retire()
    return max(0, trials - len(_counted(journal)))


def _counted(journal: Trials) -> list[optuna.trial.FrozenTrial]:
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return journal.optuna.get_trials(deepcopy=False, states=states)


def _draw(journal: Trials, trials: int, mark: Callable[[Trial], object]) -> Trial | None:
    """Claim and return the next trial; None if none is left."""
    with journal.lock:
        while _free(journal, trials):
            trial = _ask(journal)
            mark(trial)
            if not _too_late(journal, trial, trials):
                return trial
            journal.give_back(trial.number)
    return None


def _too_late(journal: Trials, trial: Trial, trials: int) -> bool:
    """Whether another process without a common lock drew the last trials, or this one, first."""
    before = [other for other in _counted(journal) if other.number < trial.number]
    origin = trial.user_attrs.get("from")
    return len(before) >= trials or (
        origin is not None and any(other.user_attrs.get("from") == origin for other in before)
    )


def _ask(journal: Trials) -> Trial:
    """Return the next trial: the starting points first, then the draws of the sampler."""
    study, starts = journal.optuna, journal.study.starts
    tried = {
        trial.user_attrs.get("from")
        for trial in study.get_trials(deepcopy=False)
        if trial.state != TrialState.FAIL
    }
    if (origin := next((name for name in starts if name not in tried), None)) is not None:
        study.enqueue_trial(starts[origin], user_attrs={"from": origin})
    # The seed depends on the earlier trials alone: an interrupted study draws the same trials.
    seed = zlib.crc32(f"{journal.study.name} {len(_counted(journal))}{journal.salt}".encode())
    study.sampler = optuna.samplers.TPESampler(
        n_startup_trials=STARTUP, multivariate=True, constant_liar=True, seed=seed
    )
    trial = study.ask()
    for name, choice in journal.study.space.items():
        _suggest(trial, name, choice)
        if choice.get("off"):
            trial.suggest_categorical(switch(name), [False, True])
    return trial


def _suggest(trial: Trial, name: str, choice: Mapping[str, Any]) -> Any:
    if "choices" in choice:
        return trial.suggest_categorical(name, choice["choices"])
    if isinstance(getattr(Settings, name, 0.0), int):
        return trial.suggest_int(name, choice["low"], choice["high"], log=choice.get("log", False))
    return trial.suggest_float(name, choice["low"], choice["high"], log=choice.get("log", False))


def _validate(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
    """Train, and return the monitored metric and the validation loss at the best epoch.

    A higher value is better: a loss becomes exp(-loss), the geometric mean probability of the
    labels.
    """
    try:
        fitted = train(graph, settings, fold=fold, seed=seed)
    except Diverged:  # the worst possible result
        return 0.0, math.inf
    if fitted.interrupted:
        raise KeyboardInterrupt
    loss = fitted.metrics["val_loss"]
    value = fitted.metrics[f"val_{settings.monitor}"]
    return math.exp(-value) if settings.monitor in LOSSES else value, loss


def importance(journal: Trials) -> dict[str, float]:
    """Return the importance of each parameter (PED-ANOVA); empty with too few trials."""
    complete = [trial for trial in journal.ended() if trial.state == TrialState.COMPLETE]
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    return optuna.importance.get_param_importances(
        journal.optuna, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )


def result(journal: Trials) -> dict[str, Any]:
    """Return the result of a study as plain values: its place, its record and its best trial."""
    best, study = journal.best(), journal.study
    assert best is not None
    return {
        "dataset": study.dataset,
        "split": study.split,
        "backbone": study.backbone,
        "objective": study.objective,
        **record(journal),
        "seconds": round(sum(trial.user_attrs["seconds"] for trial in journal.ended()), 1),
        "parameters": study.values(best.params),
        "importance": importance(journal),
    }


def notes(
    journal: Trials, study: Study, trials: int, *, new_space: bool, new_starts: bool
) -> list[str]:
    """Describe how a stored study differs from the requested one, and what will be left out.

    Parameters
    ----------
    journal : Trials
        The stored study.
    study : Study
        The study that the command describes.
    trials : int
        The number of trials to reach.
    new_space, new_starts : bool
        Whether the user gave a search space, or presets to start from.
    """
    stored, lines = journal.study, []
    if new_space and stored.space != study.space:
        raise UsageError(
            f"{journal.where} has another search space: choose another --out or --storage."
        )
    ended = journal.ended()
    if ended:
        lines.append(f"{journal.where} has {len(ended)} trials already.")
    if (stored.base, stored.space) != (study.base, study.space):
        lines.append(
            "The presets have changed: the study continues with its own settings and search space."
        )
    if new_starts and stored.starts != study.starts:
        lines.append("--start-from is for a new study: this one keeps its own starting points.")
    tried = {trial.user_attrs.get("from") for trial in ended}
    waiting = [name for name in stored.starts if name not in tried]
    if left_out := waiting[max(0, trials - len(ended)) :]:
        lines.append(
            f"{trials} trials (--trials) are too few for the {len(stored.starts)} starting points: "
            f"left out are {', '.join(left_out)}."
        )
    return lines


def progress_note(journal: Trials) -> str:
    """Return the best mean of the monitored metric so far, for a progress bar."""
    best = journal.best()
    if best is None or best.value is None:
        return ""
    return f"best {100 * best.value:.1f} (trial {best.number})"
