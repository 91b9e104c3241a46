"""Studies in a database that several machines reach; SQLite stands in for one with a server, which Optuna treats alike."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

import everynode.selection.tuning as tuning
from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.selection.study import Study
from everynode.selection.study_storage import Database, Journal
from everynode.selection.tuned_presets import rows_of, studies
from everynode.selection.tuning import tune
from everynode.settings import Settings

KNOWN = {"default": {"lr": 0.03}, "paper": {"lr": 0.01}}
SPACE = {"lr": {"low": 0.001, "high": 0.1, "log": True}}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


@pytest.fixture
def study(graph: Graph) -> Study:
    return Study(
        "toy",
        graph.digest,
        "public",
        "gcn",
        "ce",
        "seeds",
        1,
        Settings(hidden_channels=4, epochs=3),
        SPACE,
        KNOWN,
    )


def _tune(url: str, name: str, graph: Graph, trials: int, beat: float, seconds: float) -> None:
    def judge(graph: Graph, settings: Settings, fold: int, seed: int) -> tuple[float, float]:
        time.sleep(seconds)
        return (
            0.5,
            1.0,
        )  # all alike, so that the search does not narrow: who draws by himself draws what nobody else does

    tuning._validate = judge  # in a process of its own
    tune(Database(url, name, beat), graph, trials, workers=1)


def start(*args: object) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=_tune, args=args)
    process.start()
    return process


@pytest.mark.long
def test_processes_that_share_a_database_do_every_trial_once(url, study, graph):
    database = Database(url, study)
    processes = [start(url, study.name, graph, 14, 60, 0.02) for _ in range(3)]
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(database.ended()) == 14
    known = [trial.user_attrs["from"] for trial in database.ended() if "from" in trial.user_attrs]
    assert sorted(known) == ["default", "paper"]
    # All parameters: a sampler may put one of them twice on the end of its range.
    drawn = {tuple(sorted(trial.params.items())) for trial in database.ended()}
    assert len(drawn) == 14, "nobody drew what another had drawn"


def test_who_comes_too_late_gives_the_trial_back(url, study, graph, monkeypatch):
    """Between looking whether there is a trial left and drawing it, another process drew the last one."""
    database, other = Database(url, study), Database(url, study)
    monkeypatch.setattr(tuning, "_validate", lambda *_: (0.5, 1.0))
    ask = tuning._ask

    def slow(journal):
        if journal is database:
            monkeypatch.setattr(tuning, "_ask", ask)
            tune(other, graph, 3, workers=1)
        return ask(journal)

    monkeypatch.setattr(tuning, "_ask", slow)
    tune(database, graph, 3, workers=1)
    states = [trial.state for trial in database.optuna.get_trials()]
    assert states == [TrialState.COMPLETE] * 3 + [TrialState.FAIL]


@pytest.mark.long
def test_the_trials_of_a_machine_that_vanished_are_done_again(url, study, graph):
    database = Database(url, study, beat=0.5)
    process = start(url, study.name, graph, 3, 0.5, 600.0)
    end = time.monotonic() + 60
    while not database.optuna.get_trials(states=(TrialState.RUNNING,)) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(4.0)
    database.retire()
    assert [trial.state for trial in database.optuna.get_trials()] == [TrialState.RUNNING], (
        "it lives, and says so"
    )
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    start(url, study.name, graph, 3, 0.5, 0.0).join(60)
    states = [trial.state for trial in database.optuna.get_trials()]
    assert states.count(TrialState.COMPLETE) == 3
    assert states.count(TrialState.FAIL) == 1


@pytest.mark.long
def test_who_was_taken_for_dead_and_comes_back_goes_on_with_the_next_trial(
    url, study, graph, monkeypatch
):
    database, other = Database(url, study), Database(url, study)

    def judge(*_):
        trials = other.optuna.get_trials()
        if len(trials) == 1:
            other.optuna.tell(trials[0].number, state=TrialState.FAIL)
        return 0.5, 1.0

    monkeypatch.setattr(tuning, "_validate", judge)
    tune(database, graph, 2, workers=1)
    assert [trial.state for trial in database.optuna.get_trials()] == [
        TrialState.FAIL,
        TrialState.COMPLETE,
        TrialState.COMPLETE,
    ]


def test_two_that_retire_the_same_trial_do_not_fall_over_each_other(url, study, graph, monkeypatch):
    database, other = Database(url, study, beat=0.0), Database(url, study, beat=0.0)
    database.optuna.ask()
    trials = database.optuna.get_trials
    monkeypatch.setattr(
        database.optuna, "get_trials", lambda **options: (trials(**options), other.retire())[0]
    )
    database.retire()
    assert [trial.state for trial in other.optuna.get_trials()] == [TrialState.FAIL]


def test_who_is_interrupted_leaves_nothing_to_wait_for(url, study, graph, monkeypatch):
    def judge(*_):
        raise KeyboardInterrupt

    database = Database(url, study)
    monkeypatch.setattr(tuning, "_validate", judge)
    with pytest.raises(KeyboardInterrupt):
        tune(database, graph, 1, workers=1)
    assert [trial.state for trial in database.optuna.get_trials()] == [TrialState.FAIL]


def test_the_studies_of_others_in_the_same_database_are_let_be(url, study, graph, monkeypatch):
    monkeypatch.setattr(tuning, "_validate", lambda *_: (0.5, 1.0))
    tune(Database(url, study), graph, 1, workers=1)
    optuna.create_study(study_name="somebody else's", storage=url)
    (found,) = studies(url)
    assert found.study == study
    assert found.where == f"{study.name} in sqlite:///{url.removeprefix('sqlite:///')}"


def test_a_preset_from_a_database_is_that_from_a_journal(url, study, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(
        tuning, "_validate", lambda graph, settings, fold, seed: (0.9 - settings.lr, 1.0)
    )
    with pytest.raises(UsageError, match="There is no study with a complete trial in sqlite:"):
        studies(url)
    journal = Journal(tmp_path / "tune" / "a.journal", study)
    for trials in (Database(url, study), journal):
        tune(trials, graph, 2, workers=1)
    assert rows_of(studies(url)) == rows_of(studies(tmp_path))
    with pytest.raises(DataError, match="study of another graph"):
        Database(url, Study(**{**vars(study), "graph_digest": "other"}))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense://host/db", "nonsense://host/db cannot be used for studies"),
        ("postgresql://me:secret@127.0.0.1:1/db", r"postgresql://127\.0\.0\.1/db"),
        ("postgresql://127.0.0.1:1/db?user=me&password=secret", r"postgresql://127\.0\.0\.1/db"),
        ("postgresql://me:a@secret@127.0.0.1:1/db", r"postgresql://127\.0\.0\.1/db"),
        ("postgresql://me:secret@127.0.0.1:port/db", "this URL"),
        ("://", "this URL cannot be used for studies"),
        ("sqlite:////nowhere/at/all.db", "cannot be used for studies"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(url, says, study):
    with pytest.raises((DataError, UsageError), match=says) as refused:
        Database(url, study)
    assert "secret" not in str(refused.value)
