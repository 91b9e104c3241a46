"""The trials of a study: as many as asked for, whoever does them and however often they are interrupted, and blind to test nodes."""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

import everynode.selection.tuning as tuning
from everynode.errors import Diverged, UsageError
from everynode.graph import UNLABELED, Graph
from everynode.selection.search_space import search_space
from everynode.selection.study import Study
from everynode.selection.study_storage import Journal
from everynode.selection.tuning import BEFORE_PRUNING, importance, tune
from everynode.settings import Settings
from everynode.storage.owner import Owner
from everynode.training import train

KNOWN = {
    "default": {"lr": 0.03, "tv": 5.0, "normalize_features": False},
    "paper": {"lr": 0.01, "tv": 2.0, "normalize_features": True},
}
SPACE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "tv": {"low": 0.1, "high": 9.0},
    "normalize_features": {"choices": [True, False]},
}


@pytest.fixture
def begin(tmp_path: Path, graph: Graph) -> Callable[..., Journal]:
    def make(name: str = "a", **changes: object) -> Journal:
        fields = {
            "over": "seeds",
            "count": 2,
            "base": Settings(hidden_channels=4, epochs=3),
            "space": SPACE,
            "starts": KNOWN,
        } | changes
        return Journal(
            tmp_path / f"{name}.journal",
            Study("toy", graph.digest, "public", "gcn", "tv", **fields),
        )

    return make


@pytest.fixture
def guess(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Instead of training: accuracies that depend on the settings alone. Holds the lr of every run."""
    runs: list[float] = []

    def judge(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
        runs.append(settings.lr)
        return easy(settings)

    monkeypatch.setattr(tuning, "_validate", judge)
    return runs


def easy(settings: Settings) -> tuple[float, float]:
    return round(0.9 - settings.lr, 6), settings.lr


def found(journal: Journal) -> list[str]:
    """Everything that trials found, as text."""
    trials = sorted(journal.ended(), key=lambda trial: trial.number)
    return [
        json.dumps(
            [t.params, t.state.name, t.values, t.user_attrs["accuracies"], t.user_attrs["losses"]]
        )
        for t in trials
    ]


def states(journal: Journal) -> list[str]:
    return [trial.state.name for trial in journal.optuna.get_trials(deepcopy=False)]


# ---------------------------------------------------------------- what a trial is worth


def test_a_trial_is_worth_the_mean_validation_accuracy_of_its_runs(begin, graph):
    journal = begin()
    tune(journal, graph, 3, workers=1)
    for trial in journal.ended():
        settings = dataclasses.replace(journal.study.settings(trial.params))
        fitted = [train(graph, settings, fold=fold, seed=seed) for fold, seed in journal.study.runs]
        assert trial.user_attrs["accuracies"] == [f.metrics["val_accuracy"] for f in fitted]
        assert trial.user_attrs["losses"] == [f.metrics["val_loss"] for f in fitted]
        assert trial.value == statistics.mean(trial.user_attrs["accuracies"])
        assert settings.mi == settings.cvg == 0


@pytest.mark.parametrize("monitor", ["macro_f1", "loss"])
def test_a_trial_is_worth_the_monitored_metric(graph, monitor):
    settings = Settings(epochs=3, hidden_channels=4, monitor=monitor).for_objective("ce")
    metrics = train(graph, settings, fold=0, seed=1).metrics
    expected = math.exp(-metrics["val_loss"]) if monitor == "loss" else metrics["val_macro_f1"]
    assert expected != metrics["val_accuracy"]
    assert tuning._validate(graph, settings, 0, 1) == (expected, metrics["val_loss"])


def test_folds_validate_a_trial_as_seeds_do(begin, graph):
    journal = begin(over="folds")
    tune(journal, graph, 1, workers=1)
    settings = journal.study.settings(KNOWN["default"])
    expected = [
        train(graph, settings, fold=fold, seed=1000).metrics["val_accuracy"] for fold in (0, 1)
    ]
    assert journal.best().user_attrs["accuracies"] == expected


def test_without_test_labels_the_study_is_the_same(begin, graph):
    blind = graph.labels.clone()
    blind[graph.splits[0].test] = UNLABELED
    assert (blind != graph.labels).sum() == 25
    seeing, blinded = begin("a"), begin("b")
    tune(seeing, graph, 6, workers=1)
    tune(blinded, graph.with_labels(blind), 6, workers=1)
    assert found(seeing) == found(blinded)


def test_a_training_that_diverges_is_as_bad_as_can_be_and_goes_on(begin, graph, monkeypatch):
    def diverge(graph, settings, **options):
        if settings.lr > 0.02:
            raise Diverged("The loss became nan.")
        return train(graph, settings, **options)

    monkeypatch.setattr(tuning, "train", diverge)
    journal = begin()
    tune(journal, graph, 2, workers=1)
    assert [trial.value == 0.0 for trial in journal.ended()] == [True, False]
    assert journal.best().params["lr"] == KNOWN["paper"]["lr"]


def test_bad_input_is_no_bad_trial(begin, graph):
    journal = begin(space=SPACE | {"tv_gate": {"choices": ["wrong"]}}, starts={})
    with pytest.raises(UsageError, match="wrong"):
        tune(journal, graph, 2, workers=1)
    assert journal.ended() == []


@pytest.mark.parametrize("objective", ["ce", "mi+tv+cvg+consistency+prior+preg"])
def test_a_trial_has_its_objectives_terms(begin, graph, objective):
    study = dataclasses.replace(
        begin().study, objective=objective, space=search_space("gcn", objective), starts={}, count=1
    )
    journal = Journal(begin().path.with_name("other.journal"), study)
    tune(journal, graph, 1, workers=1)
    settings = study.settings(journal.best().params)
    assert all(
        (getattr(settings, term) > 0) == (objective != "ce")
        for term in ("mi", "tv", "cvg", "consistency", "prior", "preg")
    )


# ---------------------------------------------------------------- how many


def test_trials_are_the_whole_budget(begin, graph, guess):
    journal = begin(count=1)
    for asked, expected in ((3, 3), (3, 3), (5, 5), (2, 5)):
        tune(journal, graph, asked, workers=1)
        assert len(journal.ended()) == len(guess) == expected
    assert [trial.user_attrs.get("from") for trial in journal.ended()] == [
        "default",
        "paper",
        None,
        None,
        None,
    ]
    assert guess[:2] == [0.03, 0.01]


def test_in_pieces_a_study_finds_what_it_finds_in_one_go(begin, graph, guess):
    whole, pieces = begin("a"), begin("b")
    tune(whole, graph, 25, workers=1)
    for trials in (1, 2, 14, 15, 25):
        tune(pieces, graph, trials, workers=1)
    assert found(whole) == found(pieces)
    assert len(set(found(whole))) == 25, "it tries something else each time"


def test_the_search_finds_what_is_good_and_says_what_decided(begin, graph, guess):
    journal = begin(starts={})
    assert importance(journal) == {}
    tune(journal, graph, 30, workers=1)
    late = [trial.params["lr"] for trial in journal.ended()][-8:]
    assert statistics.median(late) < 0.004, "the best is at the low end, 0.001"
    weights = importance(journal)
    assert set(weights) == set(SPACE)
    assert max(weights, key=weights.get) == "lr"
    assert sum(weights.values()) == pytest.approx(1)


def test_a_bad_trial_is_given_up_after_its_first_run(begin, graph, guess):
    known = {
        str(i): {"lr": 0.01 + i / 1000, "tv": 1.0, "normalize_features": False}
        for i in range(BEFORE_PRUNING)
    }
    known |= {
        "bad": {"lr": 0.09, "tv": 1.0, "normalize_features": False},
        "good": {"lr": 0.005, "tv": 1.0, "normalize_features": False},
    }
    journal = begin(count=3, starts=known)
    tune(journal, graph, len(known), workers=1)
    by_name = {trial.user_attrs["from"]: trial for trial in journal.ended()}
    assert by_name["bad"].state == TrialState.PRUNED
    assert len(by_name["bad"].user_attrs["accuracies"]) == 1
    assert all(
        len(trial.user_attrs["accuracies"]) == 3 for name, trial in by_name.items() if name != "bad"
    )
    assert journal.best() == by_name["good"]
    assert len(journal.ended()) == len(known), "a trial that was given up counts"


def test_a_trial_is_given_up_when_optunas_median_pruner_would(begin, graph, monkeypatch):
    rng = random.Random(0)
    rising = lambda graph, settings, fold, seed: (rng.random() + seed, 1.0)  # noqa: E731 - so that each run may be the last
    monkeypatch.setattr(tuning, "_validate", rising)
    journal = begin(count=4)
    tune(journal, graph, 40, workers=1)
    study = optuna.create_study(
        direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING)
    )
    runs = []
    for ended in journal.ended():
        trial, accuracies = study.ask(), ended.user_attrs["accuracies"]
        for step in range(len(accuracies)):
            trial.report(statistics.mean(accuracies[: step + 1]), step)
            assert step == 3 or trial.should_prune() == (step == len(accuracies) - 1)
        study.tell(
            trial,
            **({"values": ended.value} if len(accuracies) == 4 else {"state": TrialState.PRUNED}),
        )
        runs.append(len(accuracies))
    assert set(runs) == {1, 2, 3, 4}, "not all cases are seen"


def test_whole_numbers_are_searched_as_such(begin, graph, guess):
    journal = begin(space=SPACE | {"num_layers": {"low": 1, "high": 3}}, starts={})
    tune(journal, graph, 5, workers=1)
    assert {type(trial.params["num_layers"]) for trial in journal.ended()} == {int}


# ---------------------------------------------------------------- several processes, some of which die


def test_trials_of_the_dead_are_retired_and_their_start_is_tried_again(begin, graph, guess):
    journal = begin(count=1)
    journal.optuna.enqueue_trial(KNOWN["default"], user_attrs={"from": "default"})
    trial = journal.optuna.ask()  # killed before it said whose it is
    assert trial.user_attrs == {"from": "default"}
    journal.optuna.ask().set_user_attr("owner", "123-dead")
    tune(journal, graph, 3, workers=1)
    assert states(journal) == ["FAIL", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    assert [trial.user_attrs.get("from") for trial in journal.ended()] == ["default", "paper", None]
    assert not list(journal.path.parent.glob("*-*.lock"))


def test_what_the_living_are_doing_is_theirs_and_waited_for(begin, graph, guess, monkeypatch):
    journal = begin(count=1, starts={})
    other = Owner(journal.path)
    theirs = journal.optuna.ask()
    theirs.set_user_attr("owner", other.name)

    def finish(seconds: float) -> None:
        assert len(guess) == 2, "there was nothing left to do but to wait"
        theirs.set_user_attr("losses", [1.0])
        journal.optuna.tell(theirs, 0.95)

    monkeypatch.setattr(tuning.time, "sleep", finish)
    tune(journal, graph, 3, workers=1)
    other.close()
    assert states(journal) == ["COMPLETE"] * 3
    assert journal.best().number == 0


def test_what_the_living_do_is_taken_over_when_they_die(begin, graph, guess, monkeypatch):
    journal = begin(count=1, starts={})
    other = Owner(journal.path)
    journal.optuna.ask().set_user_attr("owner", other.name)
    monkeypatch.setattr(tuning.time, "sleep", lambda seconds: other.close())
    tune(journal, graph, 3, workers=1)
    assert states(journal) == ["FAIL"] + ["COMPLETE"] * 3


def _tune_slowly(path: Path, graph: Graph, trials: int, workers: int) -> None:
    def judge(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
        time.sleep(0.05)
        return easy(settings)

    tuning._validate = judge  # in a process of its own
    tune(Journal(path), graph, trials, workers=workers)


@pytest.mark.long
def test_several_processes_do_every_trial_once(begin, graph):
    journal = begin(count=1)
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_tune_slowly, args=(journal.path, graph, 12, workers))
        for workers in (1, 2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert states(journal).count("COMPLETE") == len(states(journal)) == 12
    assert len({trial.user_attrs["owner"] for trial in journal.ended()}) == 2, (
        "both had their share"
    )
    assert [trial.user_attrs.get("from") for trial in journal.ended()].count("default") == 1
    assert [path.name for path in journal.path.parent.iterdir() if path.suffix == ".lock"] == [
        "a.journal.lock"
    ]


@pytest.mark.long
@pytest.mark.parametrize(("workers", "ended"), [(1, 0), (1, 3), (2, 3)])
def test_kill_9_loses_only_the_trials_in_hand(begin, graph, guess, workers, ended):
    journal = begin(count=1)
    process = multiprocessing.get_context("fork").Process(
        target=_tune_slowly, args=(journal.path, graph, 10_000, workers)
    )
    process.start()
    end = time.monotonic() + 30
    while (
        len(journal.ended()) < ended or "RUNNING" not in states(journal)
    ) and time.monotonic() < end:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    before = found(journal)
    assert len(before) >= ended
    tune(
        journal, graph, len(before) + 4, workers=1
    )  # at once: the workers of the dead may still have their half second
    after = found(journal)
    assert len(after) == len(before) + 4
    assert set(before) <= set(after)
    assert states(journal).count("RUNNING") == 0
    assert states(journal).count("FAIL") <= workers + (workers > 1), (
        "those in hand, and one that waits in line for several workers"
    )
    if workers == 1:
        undisturbed = begin("undisturbed", count=1)
        tune(undisturbed, graph, len(after), workers=1)
        assert found(undisturbed) == after
