"""The store of runs: the first record of a run stays, several may write at once, and what is somebody else's is left alone."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from everynode.errors import DataError
from everynode.experiments.store import Store
from helpers.stores import COST, CURVE, RECORD, key_of, lock_files, rows_of


def test_what_is_put_can_be_got(tmp_path):
    store = Store(tmp_path / "deep" / "runs.db")
    assert store.get(key_of("a")) is None
    store.put("a", RECORD, COST, CURVE)
    for found in (store, Store(tmp_path / "deep" / "runs.db")):
        assert found.get(key_of("a")) == RECORD | COST
        assert found.records() == {key_of("a"): RECORD | COST}
        assert found.curve(key_of("a")) == CURVE
        assert found.runs() == {key_of("a"): ("a", RECORD | COST)}
        assert found.keys() == {key_of("a")}
    assert store.get(key_of("b")) is None
    assert store.curve(key_of("b")) == {}


def test_the_first_record_of_a_run_stays(tmp_path):
    store = Store(tmp_path / "runs.db")
    store.put("a", RECORD, COST, CURVE)
    store.put("a", {"other": 1}, {"seconds": 0.0}, {})
    assert store.get(key_of("a")) == RECORD | COST
    assert store.curve(key_of("a")) == CURVE


def test_a_run_that_was_done_again_has_its_new_record(tmp_path):
    store = Store(tmp_path / "runs.db")
    for specification in "ab":
        store.put(specification, RECORD, COST, CURVE)
    store.put("a", {"other": 1}, {}, {}, again=True)
    assert store.records() == {key_of("a"): {"other": 1}, key_of("b"): RECORD | COST}
    assert store.curve(key_of("a")) == {}


def test_records_come_in_the_order_of_the_keys(tmp_path):
    store = Store(tmp_path / "runs.db")
    for i in range(20):
        store.put(str(i), {"i": i}, {}, {})
    assert list(store.records()) == sorted(key_of(str(i)) for i in range(20))


# ---------------------------------------------------------------------- several processes


def write(path: str, who: int, start) -> None:
    start.wait()
    store = Store(path)
    for i in range(15):
        store.put(f"shared-{i}", {"who": who}, {}, {})
        store.put(f"own-{who}-{i}", {"who": who}, {}, {})


@pytest.mark.skipif(sys.platform == "win32", reason="forks processes, which Windows cannot")
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
    assert all(
        store.get(key_of(f"own-{who}-{i}")) == {"who": who} for who in range(4) for i in range(15)
    )
    assert all(store.get(key_of(f"shared-{i}"))["who"] in range(4) for i in range(15))


def test_a_store_that_another_process_is_about_to_make_is_waited_for(tmp_path):
    """SQLite waits for locks by itself, but not when it is told to keep a log."""
    path = tmp_path / "runs.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.close)
    release.start()
    try:
        Store(path).put("a", RECORD, COST, CURVE)
    finally:
        release.join()
    assert Store(path).keys() == {key_of("a")}


HOLDER = """
import sys
from everynode.experiments.store import Store
store = Store(sys.argv[1])
for line in sys.stdin:
    word, *rest = line.split()
    if word == "claim":
        print(store.claim(rest[0], again="again" in rest), flush=True)
    elif word == "put":
        store.put(rest[0], {"by": "holder"}, {}, {})
        print("put", flush=True)
    elif word == "close":
        store.close()
        print("closed", flush=True)
"""


@contextmanager
def holder(path: Path) -> Iterator:
    """Another process with the same store; ask(words) has it do something and tells its answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(words: str) -> str:
        process.stdin.write(words + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    ask.process = process
    try:
        yield ask
    finally:
        process.kill()
        process.communicate()


unix = pytest.mark.skipif(sys.platform == "win32", reason="locks of Unix")


@unix
def test_what_a_living_process_has_claimed_cannot_be_claimed_until_it_is_killed(tmp_path):
    store = Store(tmp_path / "runs.db")
    with holder(store.path) as ask:
        assert [ask(f"claim {key}") for key in ("a", "b")] == ["True", "True"]
        assert [store.claim(key) for key in ("a", "b", "c")] == [False, False, True]
        assert ask("claim c") == "False"
        assert ask("claim a") == "True"  # its own
        ask.process.send_signal(signal.SIGKILL)
        ask.process.wait()
        assert [store.claim(key) for key in ("a", "b")] == [True, True]
    assert len(lock_files(tmp_path)) == 1, "the lock file of the dead one stays"
    store.close()
    assert lock_files(tmp_path) == []


@unix
def test_closing_gives_up_the_claims(tmp_path):
    store = Store(tmp_path / "runs.db")
    with holder(store.path) as ask:
        ask("claim a")
        assert not store.claim("a")
        ask("close")
        assert store.claim("a")
        assert ask("claim a") == "False"
        store.close()
        assert ask("claim a") == "True"
        ask("close")
    assert lock_files(tmp_path) == []
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)


@unix
def test_two_stores_in_one_process_respect_each_other(tmp_path):
    one, two = Store(tmp_path / "runs.db"), Store(tmp_path / "runs.db")
    assert one.claim("a")
    assert not two.claim("a")
    one.close()
    assert two.claim("a")
    two.close()


def test_what_is_done_cannot_be_claimed(tmp_path):
    store = Store(tmp_path / "runs.db")
    assert store.claim(key_of("a"))
    store.put("a", RECORD, COST, CURVE)
    assert not store.claim(key_of("a"))
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM claims").fetchone() == (
            0,
        )  # what is done is nobody's any more
    store.close()
    store.close()


@unix
def test_what_is_done_can_be_claimed_to_be_done_again_by_one_at_a_time(tmp_path):
    one, two = Store(tmp_path / "runs.db"), Store(tmp_path / "runs.db")
    one.put("a", RECORD, COST, CURVE)
    assert one.claim(key_of("a"), again=True)
    assert not two.claim(key_of("a"), again=True)
    assert one.get(key_of("a")) == RECORD | COST
    one.put("a", {"other": 1}, {}, {}, again=True)
    assert two.claim(key_of("a"), again=True)
    one.close()
    two.close()


@unix
@pytest.mark.parametrize("next_claimed", ["a", "b"])
def test_what_a_killed_process_was_doing_again_is_nobodys_any_more(tmp_path, next_claimed):
    """Its claim and its lock file stayed for ever, since the run has a record."""
    store = Store(tmp_path / "runs.db")
    store.put("a", RECORD, COST, CURVE)
    with holder(store.path) as ask:
        assert ask(f"claim {key_of('a')} again") == "True"
        assert not store.claim(key_of("a"), again=True)
        ask.process.send_signal(signal.SIGKILL)
        ask.process.wait()
        assert store.claim(key_of(next_claimed)) == (next_claimed == "b")
    store.close()
    assert lock_files(tmp_path) == []
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)


@unix
def test_what_a_killed_process_has_put_is_there(tmp_path):
    """Its rows are still in the write-ahead log."""
    path = tmp_path / "runs.db"
    Store(path)
    reader = sqlite3.connect(path)  # as long as somebody reads, the log is not folded into the file
    reader.execute("SELECT count(*) FROM runs").fetchone()
    with holder(path) as ask:
        for i in range(5):
            ask(f"put {i}")
        ask.process.send_signal(signal.SIGKILL)
        ask.process.wait()
    assert (tmp_path / "runs.db-wal").stat().st_size > 0
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for end in ("", "-wal"):  # as the disk looks after a power cut
        shutil.copy(tmp_path / f"runs.db{end}", crashed)
    reader.close()
    for found in (Store(crashed / "runs.db"), Store(path)):
        assert found.keys() == {key_of(str(i)) for i in range(5)}


@unix
def test_a_log_that_was_cut_off_loses_only_its_end(tmp_path):
    path = tmp_path / "runs.db"
    Store(path)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM runs").fetchone()
        for i in range(5):
            Store(path).put(str(i), RECORD, COST, CURVE)
        cut = tmp_path / "cut"
        cut.mkdir()
        shutil.copy(path, cut)
        log = (tmp_path / "runs.db-wal").read_bytes()
        (cut / "runs.db-wal").write_bytes(log[: len(log) - 2000])
    found = Store(cut / "runs.db")
    assert found.keys() == {key_of(str(i)) for i in range(4)}
    assert all(record == RECORD | COST for record in found.records().values())


# ---------------------------------------------------------------------- merging


def test_merging_takes_what_is_new_and_keeps_what_is_here(tmp_path):
    ours, theirs = Store(tmp_path / "ours.db"), Store(tmp_path / "theirs.db")
    for specification in "abc":
        ours.put(specification, {"whose": "ours"}, COST, CURVE)
    for specification in "bcdef":
        theirs.put(specification, {"whose": "theirs"}, COST, CURVE)
    before = rows_of(theirs.path)
    assert ours.put_all(theirs.rows()) == (3, 2, 2, 0, 0)
    assert ours.put_all(theirs.rows()) == (0, 5, 2, 0, 0)
    assert ours.put_all(ours.rows()) == (0, 6, 0, 0, 0)
    whose = {specification: ours.get(key_of(specification))["whose"] for specification in "abcdef"}
    assert whose == dict.fromkeys("abc", "ours") | dict.fromkeys("def", "theirs")
    assert ours.curve(key_of("f")) == CURVE
    assert ours.runs()[key_of("f")][0] == "f"
    assert rows_of(theirs.path) == before


def test_a_record_without_a_curve_gives_way_to_one_that_has_it_and_no_other_does(tmp_path):
    ours, theirs = Store(tmp_path / "ours.db"), Store(tmp_path / "theirs.db")
    for store, whose, curves in (
        (ours, "ours", ({}, CURVE, {}, CURVE)),
        (theirs, "theirs", (CURVE, {}, {}, CURVE)),
    ):
        for specification, curve in zip("abcd", curves, strict=True):
            store.put(specification, {"whose": whose}, COST, curve)
    assert ours.put_all(theirs.rows()) == (0, 4, 3, 1, 1)
    assert [ours.get(key_of(specification))["whose"] for specification in "abcd"] == [
        "theirs",
        "ours",
        "ours",
        "ours",
    ]
    assert ours.curve(key_of("a")) == CURVE


def test_a_run_that_diverged_does_not_give_way(tmp_path):
    """It has no curve either, but is a result."""
    ours, theirs = Store(tmp_path / "ours.db"), Store(tmp_path / "theirs.db")
    ours.put("a", {"error": "The loss became nan."}, {}, {})
    theirs.put("a", RECORD, COST, CURVE)
    assert ours.put_all(theirs.rows()) == (0, 1, 1, 0, 0)
    assert ours.get(key_of("a")) == {"error": "The loss became nan."}


def test_a_run_that_does_not_belong_to_its_specification_is_refused(tmp_path):
    ours, theirs = Store(tmp_path / "ours.db"), Store(tmp_path / "theirs.db")
    for specification in "ab":
        theirs.put(json.dumps({"seed": specification}), RECORD, COST, CURVE)
    with closing(sqlite3.connect(theirs.path)) as connection, connection:
        connection.execute(
            "UPDATE runs SET specification = ? WHERE key = ?",
            ('{"seed": "c"}', key_of('{"seed": "b"}')),
        )
    with pytest.raises(DataError, match="does not belong to its specification"):
        ours.put_all(theirs.rows())
    assert ours.keys() == set()


def test_an_empty_file_is_no_store_to_read_from(tmp_path):
    path = tmp_path / "runs.db"
    path.touch()
    with pytest.raises(DataError, match="is empty"):
        Store(path, must_exist=True)
    assert path.read_bytes() == b""
