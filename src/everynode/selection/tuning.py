"""Tuning on validation nodes only: the trials of a study, none of which looks at a test node."""

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

from everynode.errors import Diverged
from everynode.graph import Graph
from everynode.selection.study import switch
from everynode.selection.study_storage import Trials
from everynode.settings import Settings
from everynode.training import train
from everynode.training.process_pool import Engine, run_many

#: Trials before the sampler stops guessing at random.
STARTUP = 8
#: Complete trials before one may be given up after its first runs.
BEFORE_PRUNING = 8
#: Complete trials before anything is said about importance.
ENOUGH = 10
#: Seconds between two looks at trials that another process is doing.
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
    """Bring the study to ``trials`` ended trials, those of earlier calls and of other processes included.

    Several processes may do this at once: they share what is left. A trial whose process has died is retired and counts no more. The
    engine's workers, on this machine or on others, only train: the process that called draws the trials and writes the journal.
    """
    drawn: dict[int, Trial] = {}

    def ours(mark: Callable[[Trial], object]) -> Iterator[Candidate]:
        """Draw as late as possible, when most is known, and so that several processes share what is left."""
        while (trial := _draw(journal, trials, mark)) is not None:
            drawn[trial.number] = trial
            yield Candidate(
                trial.number,
                journal.study.settings(trial.params),
                journal.study.runs,
                _bars(journal),
            )

    with journal.at_work() as mark:
        while len(journal.ended()) < trials:
            with journal.lock:
                free = _free(journal, trials)
            for job, result in engine(
                _judge_trial, ours(mark), graph, workers=workers, at_most=free
            ):
                _tell(journal, drawn.pop(job.number), result)
                on_trial()
            if not free:  # what is left is in the hands of others
                time.sleep(POLL)
                on_trial()


@dataclass(frozen=True)
class Candidate:
    """A trial that is to be judged: its settings, and its runs (fold and seed)."""

    number: int
    settings: Settings
    runs: list[tuple[int, int]]
    #: After each run but the last: below this mean accuracy the trial is given up.
    bars: list[float]


@dataclass(frozen=True)
class Judgement:
    """What the runs of a trial got on the validation nodes; fewer than all if it was given up."""

    accuracies: list[float]
    losses: list[float]
    seconds: float


def _judge_trial(job: Candidate, graph: Graph) -> Judgement:
    """In a worker: judge a trial run by run, until it is clearly worse than others were after as many runs."""
    start = time.perf_counter()
    accuracies, losses, best = list[float](), list[float](), 0.0
    for (fold, seed), bar in zip(job.runs, [*job.bars, 0.0], strict=True):
        accuracy, loss = _judge(graph, job.settings, fold, seed)
        accuracies.append(accuracy)
        losses.append(loss)
        best = max(best, statistics.mean(accuracies))
        if best < bar:
            break
    return Judgement(accuracies, losses, round(time.perf_counter() - start, 2))


def _bars(journal: Trials) -> list[float]:
    """After each run but the last: the median of what the complete trials had after as many; 0 while there are few of them."""
    complete = [trial for trial in journal.ended() if trial.state == TrialState.COMPLETE]
    if len(complete) < BEFORE_PRUNING:
        return [0.0] * (journal.study.count - 1)
    return [
        statistics.median(
            statistics.mean(trial.user_attrs["accuracies"][: done + 1]) for trial in complete
        )
        for done in range(journal.study.count - 1)
    ]


def _tell(journal: Trials, trial: Trial, result: Judgement) -> None:
    """Write down what a trial got."""
    complete = len(result.accuracies) == journal.study.count
    with suppress(
        UpdateFinishedTrialError, ValueError
    ):  # others took this process for dead, and do the trial
        for step in range(len(result.accuracies)):
            trial.report(statistics.mean(result.accuracies[: step + 1]), step)
        for name, value in dataclasses.asdict(result).items():
            trial.set_user_attr(name, value)
        if complete:
            journal.optuna.tell(trial, statistics.mean(result.accuracies))
        else:
            journal.optuna.tell(trial, state=TrialState.PRUNED)


def _free(journal: Trials, trials: int) -> int:
    """How many trials nobody has done or is doing. Those of processes that have died are retired; the journal's lock must be held."""
    journal.retire()
    return max(0, trials - len(_counted(journal)))


def _counted(journal: Trials) -> list[optuna.trial.FrozenTrial]:
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return journal.optuna.get_trials(deepcopy=False, states=states)


def _draw(journal: Trials, trials: int, mark: Callable[[Trial], object]) -> Trial | None:
    """The next trial, marked as ours; None if there is none left."""
    with journal.lock:
        while _free(journal, trials):
            trial = _ask(journal)
            mark(trial)
            if not _too_late(journal, trial, trials):
                return trial
            journal.give_back(trial.number)
    return None


def _too_late(journal: Trials, trial: Trial, trials: int) -> bool:
    """Whether others, in whose way no lock stood, have drawn the last trials, or this one, just before."""
    before = [other for other in _counted(journal) if other.number < trial.number]
    known = trial.user_attrs.get("from")
    return len(before) >= trials or (
        known is not None and any(other.user_attrs.get("from") == known for other in before)
    )


def _ask(journal: Trials) -> Trial:
    """The next setting to be tried: what is known from presets first, then what the sampler makes of the trials so far."""
    study = journal.optuna
    tried = {
        trial.user_attrs.get("from")
        for trial in study.get_trials(deepcopy=False)
        if trial.state != TrialState.FAIL
    }
    if (
        known := next((name for name in journal.study.known if name not in tried), None)
    ) is not None:
        study.enqueue_trial(journal.study.known[known], user_attrs={"from": known})
    # The same trials before it, the same draw: with one worker a study is the same whenever, and however often interrupted, it is done.
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
    if isinstance(getattr(Settings, name), int):
        return trial.suggest_int(name, choice["low"], choice["high"], log=choice.get("log", False))
    return trial.suggest_float(name, choice["low"], choice["high"], log=choice.get("log", False))


def _judge(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
    """Validation accuracy and loss at the epoch that validation selects."""
    try:
        fitted = train(graph, settings, fold=fold, seed=seed)
    except Diverged:  # as bad as can be
        return 0.0, math.inf
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted.metrics["val_accuracy"], fitted.metrics["val_loss"]


def importance(journal: Trials) -> dict[str, float]:
    """How much each parameter decided whether a trial was among the best (PED-ANOVA); empty while there are too few trials."""
    complete = [trial for trial in journal.ended() if trial.state == TrialState.COMPLETE]
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    return optuna.importance.get_param_importances(
        journal.optuna, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )
