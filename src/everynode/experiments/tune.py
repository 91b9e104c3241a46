"""Tuning on validation nodes only: the trials of a study, none of which looks at a test node."""

from __future__ import annotations

import math
import statistics
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import Trial, TrialState

from everynode.errors import DataError, EverynodeError, UsageError
from everynode.experiments.journal import Journal
from everynode.experiments.owner import Owner, lives
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training import fit
from everynode.training.many import run_many

#: Trials before the sampler stops guessing at random.
STARTUP = 12
#: Complete trials before anything is said about importance.
ENOUGH = 10
#: Seconds between two looks at trials that another process is doing.
POLL = 0.5


def tune(
    journal: Journal,
    graph: Graph,
    trials: int,
    *,
    workers: int | None = None,
    on_trial: Callable[[], None] = lambda: None,
) -> None:
    """Bring the study to ``trials`` ended trials, those of earlier calls and of other processes included.

    Several processes may do this at once: they share what is left. A trial whose process has died is retired and counts no more.
    """
    owner = Owner(journal.path)
    try:
        while len(journal.ended()) < trials:
            with journal.lock:
                free = _free(journal, trials)
            for _ in run_many(_one_trial, range(free), (journal.path, graph, trials, owner.name), workers=workers):
                on_trial()
            if not free:  # what is left is in the hands of others
                time.sleep(POLL)
                on_trial()
    finally:
        owner.close()


def _one_trial(job: int, shared: tuple[Path, Graph, int, str]) -> None:
    """Draw the next trial and judge it, run by run, until it is clearly worse than others were after as many runs."""
    path, graph, trials, owner = shared
    journal = Journal(path)
    drawn = _draw(journal, trials, owner)
    if drawn is None:
        return
    trial, settings = drawn
    start = time.perf_counter()
    accuracies, losses = [], []
    for step, (fold, seed) in enumerate(journal.study.runs):
        accuracy, loss = _judge(graph, settings, fold, seed)
        accuracies.append(accuracy)
        losses.append(loss)
        trial.report(statistics.mean(accuracies), step)
        if len(accuracies) < journal.study.count and trial.should_prune():
            break
    trial.set_user_attr("accuracies", accuracies)
    trial.set_user_attr("losses", losses)
    trial.set_user_attr("seconds", round(time.perf_counter() - start, 2))
    if len(accuracies) < journal.study.count:
        journal.optuna.tell(trial, state=TrialState.PRUNED)
    else:
        journal.optuna.tell(trial, statistics.mean(accuracies))


def _free(journal: Journal, trials: int) -> int:
    """How many trials nobody has done or is doing. Those of processes that have died are retired; the journal's lock must be held."""
    running = journal.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    for trial in running:
        owner = trial.user_attrs.get("owner")  # none if the process died just before it said so
        if owner is None or not lives(journal.path, owner):
            journal.optuna.tell(trial.number, state=TrialState.FAIL)
    return max(0, trials - len(_counted(journal)))


def _counted(journal: Journal) -> list[optuna.trial.FrozenTrial]:
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return journal.optuna.get_trials(deepcopy=False, states=states)


def _draw(journal: Journal, trials: int, owner: str) -> tuple[Trial, Settings] | None:
    """The next trial, marked as ours, with its settings; None if there is none left."""
    study = journal.optuna
    with journal.lock:
        if not _free(journal, trials):
            return None
        tried = {trial.user_attrs.get("from") for trial in study.get_trials(deepcopy=False) if trial.state != TrialState.FAIL}
        if (known := next((name for name in journal.study.known if name not in tried), None)) is not None:
            study.enqueue_trial(journal.study.known[known], user_attrs={"from": known})
        # The same trials before it, the same draw: with one worker a study is the same whenever, and however often interrupted, it is done.
        seed = zlib.crc32(f"{journal.study.name} {len(_counted(journal))}".encode())
        study.sampler = optuna.samplers.TPESampler(n_startup_trials=STARTUP, multivariate=True, constant_liar=True, seed=seed)
        trial = study.ask()
        trial.set_user_attr("owner", owner)
        return trial, journal.study.settings({name: _suggest(trial, name, choice) for name, choice in journal.study.space.items()})


def _suggest(trial: Trial, name: str, choice: Mapping[str, Any]) -> Any:
    if "choices" in choice:
        return trial.suggest_categorical(name, choice["choices"])
    if isinstance(getattr(Settings, name), int):
        return trial.suggest_int(name, choice["low"], choice["high"], log=choice.get("log", False))
    return trial.suggest_float(name, choice["low"], choice["high"], log=choice.get("log", False))


def _judge(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
    """Validation accuracy and loss at the epoch that validation selects."""
    try:
        fitted = fit(graph, settings, fold=fold, seed=seed)
    except (UsageError, DataError):
        raise
    except EverynodeError:  # diverged: as bad as can be
        return 0.0, math.inf
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted.metrics["val_accuracy"], fitted.metrics["val_loss"]


def importance(journal: Journal) -> dict[str, float]:
    """How much each parameter decided whether a trial was among the best (PED-ANOVA); empty while there are too few trials."""
    complete = [trial for trial in journal.ended() if trial.state == TrialState.COMPLETE]
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    return optuna.importance.get_param_importances(journal.optuna, evaluator=optuna.importance.PedAnovaImportanceEvaluator())
