"""The journal of a study: what is in it stays, what is somebody else's is left alone, and one process at a time has it."""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from everynode.errors import DataError
from everynode.selection.study import Study
from everynode.selection.study_storage import Database, Journal
from everynode.settings import Settings

SPACE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "normalize_features": {"choices": [True, False]},
}


def make(**changes: object) -> Study:
    return Study(
        "toy",
        "digest",
        "public",
        "gcn",
        **{"objective": "tv", "over": "seeds", "count": 2, "base": Settings(), "space": SPACE}
        | changes,
    )


def test_a_study_keeps_what_it_was_begun_with(tmp_path):
    path = tmp_path / "deep" / "a.journal"
    first = make(starts={"default": {"lr": 0.03, "normalize_features": False}})
    Journal(path, first)
    later = make(base=Settings(tv=1.0), space={"tv": {"low": 1.0, "high": 2.0}})
    assert Journal(path, later).study == Journal(path).study == first


@pytest.mark.parametrize("half", [b'{"op_code":', b'{"op_code":4}', b"\xff"])
def test_half_a_line_at_the_end_is_dropped_and_nothing_else(tmp_path, half):
    path = tmp_path / "a.journal"
    journal = Journal(path, make())
    journal.optuna.tell(journal.optuna.ask(), 0.5)
    whole = path.read_bytes()
    path.write_bytes(whole + half)
    again = Journal(path)
    assert [trial.value for trial in again.ended()] == [0.5]
    assert path.read_bytes() == whole
    path.write_bytes(whole + half)  # left by another process while this one has it open
    assert [trial.value for trial in again.ended()] == [0.5]
    again.optuna.tell(again.optuna.ask(), 0.75)
    assert (
        [trial.value for trial in Journal(path).ended()]
        == [trial.value for trial in again.ended()]
        == [0.5, 0.75]
    )


@pytest.mark.parametrize("half", [b'{"op', b'{"op_code":0,"study'])
def test_a_journal_that_was_torn_at_once_is_begun_anew(tmp_path, half):
    path = tmp_path / "a.journal"
    path.write_bytes(half)
    assert Journal(path, make()).study == make()


@pytest.mark.parametrize(
    "content",
    [b"hello\n", b"hello", b"a\nb", b"{}\n", b'{"op_code":0}\n', b"[]\n", b"", b"\x00\xff\n" * 9],
)
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "a.journal"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not the journal of a study"):
        Journal(path)
    assert path.read_bytes() == content


def test_a_journal_in_a_folder_that_cannot_be_written_is_not_called_foreign(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("everynode.selection.study_storage.JournalFileBackend", refuse)
    with pytest.raises(DataError, match=r"Permission denied.*make the folder writable") as caught:
        Journal(tmp_path / "a.journal", make())
    assert "not the journal" not in str(caught.value)


def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (id INTEGER)")
        connection.commit()
    content = path.read_bytes()
    with pytest.raises(DataError, match=r"database of another program \(its tables: photos\)"):
        Database(f"sqlite:///{path}", make())
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["photos.db"]


def test_an_empty_database_and_an_own_one_are_used(tmp_path):
    path = tmp_path / "studies.db"
    path.touch()
    Database(f"sqlite:///{path}", make())
    assert Database(f"sqlite:///{path}", make()).study == make()


def test_a_journal_of_another_study_or_graph_is_refused(tmp_path):
    path = tmp_path / "a.journal"
    Journal(path, make())
    with pytest.raises(
        DataError, match=r"is the journal of another study \(toy-public-gcn-tv-2seeds\)"
    ):
        Journal(path, make(count=3))
    with pytest.raises(DataError, match="is a study of another graph named toy"):
        Journal(path, dataclasses.replace(make(), graph_digest="other"))
    with pytest.raises(DataError, match="There is no study at"):
        Journal(tmp_path / "b.journal")
    assert not (tmp_path / "b.journal").exists()


def test_of_equal_trials_the_one_with_the_lower_loss_is_the_best(tmp_path):
    journal = Journal(tmp_path / "a.journal", make())
    assert journal.best() is None
    for value, loss in ((0.7, 1.0), (0.8, 0.9), (0.8, 0.5), (0.8, 0.6)):
        trial = journal.optuna.ask()
        trial.set_user_attr("losses", [loss, loss])
        journal.optuna.tell(trial, value)
    assert journal.best().number == 2


def _hold(path: Path, held: multiprocessing.synchronize.Event) -> None:
    journal = Journal(path)
    with journal.lock, journal.lock:
        held.set()
        time.sleep(60)


def test_the_lock_keeps_others_out_and_ends_with_its_holder(tmp_path):
    journal = Journal(tmp_path / "a.journal", make())
    context = multiprocessing.get_context("fork")
    held = context.Event()
    holder = context.Process(target=_hold, args=(journal.path, held))
    holder.start()
    assert held.wait(30)
    waiting = context.Process(target=Journal, args=(journal.path,))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive(), "the journal was opened while another process held it"
    holder.kill()
    waiting.join(30)
    assert waiting.exitcode == 0


# ---------------------------------------------------------------- which trial is the best

TERM = {"low": 0.1, "high": 1.0, "off": True}


@pytest.mark.parametrize(
    ("trials", "chosen"),
    [
        (
            [("mi+tv", [0.80, 0.82, 0.84]), ("tv", [0.79, 0.83, 0.83])],
            1,
        ),  # 0.33 points behind, standard error 0.67
        ([("mi+tv", [0.80, 0.82, 0.84]), ("tv", [0.78, 0.81, 0.82])], 0),  # 1.67 behind, 0.33
        ([("mi+tv", [0.80, 0.82, 0.84]), ("tv", [0.80, 0.82, 0.84]), ("", [0.79, 0.83, 0.83])], 2),
        ([("mi+tv", [0.80, 0.82, 0.84]), ("", [0.70, 0.72, 0.74]), ("tv", [0.79, 0.83, 0.83])], 2),
        ([("tv", [0.80, 0.82, 0.84]), ("mi", [0.79, 0.83, 0.83])], 0),  # as many terms: the higher
        ([("tv", [0.79, 0.83, 0.83]), ("mi+tv", [0.70, 0.70, 0.70])], 0),
        ([("tv", [0.8]), ("", [0.799])], 0),  # one run has no standard error
    ],
)
def test_a_term_must_earn_its_place(tmp_path, trials, chosen):
    study = make(
        objective="enc",
        space={"mi": TERM, "tv": TERM},
        base=Settings(cvg=0.0),
        count=len(trials[0][1]),
    )
    journal = Journal(tmp_path / "x.journal", study)
    either = optuna.distributions.CategoricalDistribution([False, True])
    kinds = {"mi": optuna.distributions.FloatDistribution(0.1, 1.0), "no_mi": either}
    kinds |= {"tv": kinds["mi"], "no_tv": either}
    for terms, accuracies in trials:
        parameters = {"mi": 0.5, "no_mi": "mi" not in terms, "tv": 0.5, "no_tv": "tv" not in terms}
        attributes = {"accuracies": accuracies, "losses": [1.0] * len(accuracies), "seconds": 1.0}
        value = sum(accuracies) / len(accuracies)
        journal.optuna.add_trial(
            optuna.trial.create_trial(
                params=parameters, distributions=kinds, value=value, user_attrs=attributes
            )
        )
    assert journal.best().number == chosen
