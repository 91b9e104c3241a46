"""The store of runs: the first record of a run stays, several may write at once, and what is somebody else's is left alone."""

from __future__ import annotations

import multiprocessing
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from everynode.errors import DataError
from everynode.experiments.store import APPLICATION_ID, Store

RECORD = {"test_accuracy": 0.7000000000000001, "seconds": 1.5, "settings": {"tv": 5.0}, "name": "Größe", "none": None}


def test_what_is_put_can_be_got(tmp_path):
    store = Store(tmp_path / "deep" / "runs.db")
    assert store.get("a") is None
    store.put("a", RECORD)
    assert store.get("a") == RECORD
    assert Store(tmp_path / "deep" / "runs.db").get("a") == RECORD
    assert store.get("b") is None


def test_the_first_record_of_a_run_stays(tmp_path):
    store = Store(tmp_path / "runs.db")
    store.put("a", RECORD)
    store.put("a", {"other": 1})
    assert store.get("a") == RECORD


def test_the_file_carries_our_mark(tmp_path):
    Store(tmp_path / "runs.db")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE runs (key TEXT, record TEXT)")
        connection.execute("INSERT INTO runs VALUES ('precious', 'data')")


def truncated_store(size: int):
    def make(path: Path) -> None:
        store = Store(path)
        for i in range(8):
            store.put(str(i), {"padding": "x" * 3000})
        content = path.read_bytes()
        assert len(content) > size
        path.write_bytes(content[:size])

    return make


FOREIGN = {
    "a foreign database": foreign_database,
    "text": lambda path: path.write_text("These are my notes, not a database, and they must stay.\n" * 40),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "half a header": truncated_store(50),
    "a header alone": truncated_store(100),
    "a part of the first page": truncated_store(3000),
    "the first page": truncated_store(4096),
    "all but the end": truncated_store(9000),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_not_a_store_is_refused_and_left_alone(tmp_path, kind):
    path = tmp_path / "runs.db"
    FOREIGN[kind](path)
    before = path.read_bytes()
    with pytest.raises(DataError) as caught:
        Store(path).put("new", RECORD)
    assert str(path) in str(caught.value)
    assert "give another --out" in str(caught.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["runs.db"]


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "runs.db").mkdir()
    with pytest.raises(DataError, match="cannot serve as a store of runs"):
        Store(tmp_path / "runs.db")


def test_a_store_whose_making_was_cut_off_can_still_be_used(tmp_path, monkeypatch):
    """kill -9 at any statement of the making: the next one finishes it, and does not take it for somebody else's."""
    connect = sqlite3.connect
    statements = 0

    class Killed(BaseException):
        pass

    class Mortal(sqlite3.Connection):
        left = 0

        def execute(self, *args):
            nonlocal statements
            statements += 1
            if Mortal.left == 0:
                raise Killed
            Mortal.left -= 1
            return super().execute(*args)

    for survived in range(12):
        path = tmp_path / f"{survived}.db"
        Mortal.left = survived
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **options, factory=Mortal))
            try:
                Store(path)
            except Killed:
                finished = False
            else:
                finished = True
        store = Store(path)
        store.put("a", RECORD)
        assert store.get("a") == RECORD
        if finished:
            break
    assert finished
    assert statements > 3


def write(path: str, who: int, start) -> None:
    start.wait()
    store = Store(path)
    for i in range(15):
        store.put(f"shared-{i}", {"who": who})
        store.put(f"own-{who}-{i}", {"who": who})


@pytest.mark.skipif(sys.platform == "win32", reason="forked processes")
def test_several_processes_make_one_store_and_write_at_once(tmp_path):
    path = tmp_path / "runs.db"
    context = multiprocessing.get_context("fork")
    start = context.Event()
    writers = [context.Process(target=write, args=(str(path), who, start)) for who in range(4)]
    for writer in writers:
        writer.start()
    start.set()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    store = Store(path)
    assert all(store.get(f"own-{who}-{i}") == {"who": who} for who in range(4) for i in range(15))
    assert all(store.get(f"shared-{i}")["who"] in range(4) for i in range(15))
