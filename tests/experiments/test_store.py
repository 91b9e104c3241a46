"""The store of runs: the first record of a run stays, several may write at once, and what is somebody else's is left alone."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
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
from everynode.experiments.store import APPLICATION_ID, SCHEMA, Store, records_at

RECORD = {
    "test_accuracy": 0.7000000000000001,
    "settings": {"tv": 5.0},
    "name": "Größe",
    "none": None,
}
COST = {"seconds": 1.5}
CURVE = {"ce": [1.0, 0.1], "val_accuracy": [0.25, 1e-300]}


def key_of(specification: str) -> str:
    return hashlib.sha256(specification.encode()).hexdigest()


def rows_of(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM runs ORDER BY key").fetchall()


def lock_files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.lock")]


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


def test_the_file_carries_our_mark(tmp_path):
    Store(tmp_path / "runs.db")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_that_must_exist_is_not_made(tmp_path):
    with pytest.raises(DataError, match="There is no store of runs at"):
        Store(tmp_path / "deep" / "runs.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []
    Store(tmp_path / "runs.db")
    Store(tmp_path / "runs.db", must_exist=True)


def empty_database(path: Path) -> None:
    """As a process leaves it that is killed while it makes a store."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize(
    "make",
    [lambda path: None, Path.touch, empty_database],
    ids=["absent", "empty file", "empty database"],
)
def test_who_only_reads_records_makes_no_store(tmp_path, make):
    path = tmp_path / "runs.db"
    make(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert records_at(path) == {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    Store(path).put("a", RECORD, COST, CURVE)
    assert records_at(path) == {key_of("a"): RECORD | COST}


def test_records_are_read_of_no_file_that_is_something_else(tmp_path):
    (tmp_path / "runs.db").write_text("my notes")
    with pytest.raises(DataError, match="name another file"):
        records_at(tmp_path / "runs.db")


# ---------------------------------------------------------------------- what is not a store, or no longer


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE runs (key TEXT, record TEXT)")
        connection.execute("INSERT INTO runs VALUES ('precious', 'data')")


def full_store(path: Path) -> bytearray:
    store = Store(path)
    for i in range(8):
        store.put(str(i), {"padding": "x" * 3000}, COST, CURVE)
    return bytearray(path.read_bytes())


def truncated_store(size: int):
    def make(path: Path) -> None:
        content = full_store(path)
        assert len(content) > size
        path.write_bytes(content[:size])

    return make


def store_with_a_wrong_page(number: int):
    def make(path: Path) -> None:
        content = full_store(path)
        content[4096 * number : 4096 * (number + 1)] = hashlib.shake_256(b"noise").digest(4096)
        path.write_bytes(content)

    return make


def store_of_another_schema(path: Path) -> None:
    full_store(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def left_by_a_kill(make):
    """What another makes, with a log beside it that was never folded in: as a process leaves it that is killed while it writes."""

    def made(path: Path) -> None:
        make(path)
        writing = path.with_name("writing")
        shutil.copy(path, writing)
        with closing(sqlite3.connect(writing)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE more (data TEXT)")
            connection.commit()
            for end in ("", "-wal"):
                shutil.copy(f"{writing}{end}", f"{path}{end}")
        writing.unlink()
        assert path.with_name(f"{path.name}-wal").stat().st_size > 0

    return made


def empty_database_of_another(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("VACUUM")


FOREIGN = {
    "a foreign database": foreign_database,
    "a foreign database in use when it was killed": left_by_a_kill(foreign_database),
    "an empty database of something else": empty_database_of_another,
    "one character": lambda path: path.write_text("x"),
    "text": lambda path: path.write_text(
        "These are my notes, not a database, and they must stay.\n" * 40
    ),
    "a word": lambda path: path.write_text("notes"),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "half a header": truncated_store(50),
    "a header alone": truncated_store(100),
    "a part of the first page": truncated_store(3000),
    "the first page": truncated_store(4096),
    "all but the end": truncated_store(9000),
    "noise in the page of the runs": store_with_a_wrong_page(1),
    "noise in the page of the index": store_with_a_wrong_page(2),
    "another schema": store_of_another_schema,
    "another schema, killed": left_by_a_kill(store_of_another_schema),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_not_a_store_is_refused_and_left_alone(tmp_path, kind):
    path = tmp_path / "runs.db"
    FOREIGN[kind](path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(DataError) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "another file" in str(caught.value) or "restore it" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_store_that_was_killed_while_it_wrote_has_what_it_wrote(tmp_path, monkeypatch):
    path, other = tmp_path / "runs.db", tmp_path / "killed" / "runs.db"
    store = Store(path)
    other.parent.mkdir()
    with closing(
        sqlite3.connect(path)
    ) as connection:  # as long as it is open, the log is not folded in
        connection.execute("SELECT count(*) FROM runs").fetchone()
        store.put("a", RECORD, COST, CURVE)
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{other}{end}")
    assert other.with_name("runs.db-wal").stat().st_size > 0
    before = {file.name: file.read_bytes() for file in other.parent.iterdir()}
    found = Store(other, must_exist=True)
    assert {file.name: file.read_bytes() for file in other.parent.iterdir()} == before
    with monkeypatch.context() as patch:  # as where nothing may be written
        patch.setattr(os, "access", lambda *_: False)
        assert found.records() == {key_of("a"): RECORD | COST}
        assert {file.name: file.read_bytes() for file in other.parent.iterdir()} == before
    assert found.records() == {key_of("a"): RECORD | COST}


def test_a_store_through_a_link_is_that_store(tmp_path):
    Store(tmp_path / "runs.db").put("a", RECORD, COST, CURVE)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "runs.db")
    one, other = Store(link), Store(tmp_path / "runs.db")
    assert one.claim(key_of("b"))
    assert not other.claim(key_of("b"))
    assert one.keys() == {key_of("a")}
    one.close()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link.db"]


def test_states_are_found_whatever_the_name_of_the_store(tmp_path):
    store = Store(tmp_path / "r[1].db")
    (tmp_path / "r[1].db.0123.state").touch()
    assert [path.name for path in store.states()] == ["r[1].db.0123.state"]


@pytest.mark.parametrize("record", ["[]", "7", '{"noi'])
def test_what_is_no_record_is_never_passed_on(tmp_path, record):
    store = Store(tmp_path / "runs.db")
    store.put("a", RECORD, COST, CURVE)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE runs SET record = ?", (record,))
    for look in (store.rows, store.records):
        with pytest.raises(DataError, match="damaged"):
            look()


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
@pytest.mark.parametrize(
    "kind", ["text", "all but the end", "noise in the page of the runs", "another schema"]
)
def test_the_command_line_refuses_it_with_one_sentence(tmp_path, call, kind):
    FOREIGN[kind](tmp_path / "runs.db")
    before = (tmp_path / "runs.db").read_bytes()
    for arguments in (["tsne"], ["tsne", "--dry-run"], ["list"]):
        done = call("reproduce", *arguments, "--out", tmp_path, "--quiet")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"everynode: {tmp_path / 'runs.db'} ")
        assert done.stderr.count("\n") == 1
    assert (tmp_path / "runs.db").read_bytes() == before


@pytest.mark.parametrize("column", ["record", "cost", "curve"])
def test_a_row_that_is_damaged_is_one_sentence(tmp_path, column):
    """Bytes within a row are no concern of SQLite's own check."""
    path = tmp_path / "runs.db"
    store = Store(path)
    store.put("a", RECORD, COST, CURVE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"UPDATE runs SET {column} = ?", (b"noise" if column == "curve" else '{"noi',)
        )
    with pytest.raises(DataError, match="damaged") as caught:
        store.curve(key_of("a")) if column == "curve" else store.records()
    assert str(path) in str(caught.value)
    if column != "curve":
        with pytest.raises(DataError, match="damaged"):
            store.get(key_of("a"))


@pytest.mark.parametrize("part", [*RECORD, *COST, "seed", "digest"])
def test_a_record_that_changed_on_the_disk_is_never_shown(tmp_path, part):
    """One bit within a row, which is still a number, or a name: SQLite does not see it."""
    path = tmp_path / "runs.db"
    store = Store(path)
    store.put('{"seed":17}', RECORD, COST, CURVE)
    sound, (right,) = path.read_bytes(), store.records().values()
    begin = sound.index(f'"{part}"'.encode()) + 1
    for place in range(begin, begin + len(part) + 6):
        for bit in (1, 2, 64, 128):  # the last makes it no UTF-8
            path.write_bytes(sound[:place] + bytes([sound[place] ^ bit]) + sound[place + 1 :])
            for look in (
                lambda: [*store.records().values()],
                store.rows,
                lambda: [store.get(key_of('{"seed":17}'))],
            ):
                with pytest.raises(DataError, match="damaged") as caught:
                    look()
                assert str(path) in str(caught.value)
                assert len(str(caught.value)) < len(str(path)) + 200, (
                    "the column was told with all that is in it"
                )
    path.write_bytes(sound)
    assert [*store.records().values()] == [right] == [RECORD | COST]


@pytest.mark.parametrize(
    "damage", ["record = replace(record, '0.7', '0.9')", "curve = zeroblob(length(curve))"]
)
def test_damage_is_seen_before_a_log_is_folded_in(tmp_path, damage):
    """What only the digest sees, too: whatever is beside the file stays as it is."""
    path, other = tmp_path / "runs.db", tmp_path / "killed" / "runs.db"
    store = Store(path)
    other.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        store.put("a", RECORD, COST, CURVE)
        connection.execute(f"UPDATE runs SET {damage}")
        connection.commit()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{other}{end}")
    before = {file.name: file.read_bytes() for file in other.parent.iterdir()}
    with pytest.raises(DataError, match="does not match its digest"):
        Store(other)
    assert {file.name: file.read_bytes() for file in other.parent.iterdir()} == before


@pytest.mark.parametrize("known", ["a", "b"])
def test_nothing_is_merged_into_a_damaged_store(tmp_path, known):
    ours, theirs = Store(tmp_path / "ours.db"), Store(tmp_path / "theirs.db")
    ours.put("b", RECORD, COST, CURVE)
    for specification in {known, "c"}:
        theirs.put(specification, RECORD, COST, CURVE)
    with closing(sqlite3.connect(ours.path)) as connection, connection:
        connection.execute("UPDATE runs SET record = replace(record, '0.7', '0.9')")
    with pytest.raises(DataError, match="damaged"):
        ours.put_all(theirs.rows())
    assert ours.keys() == {key_of("b")}


def test_a_row_without_a_digest_is_damaged(tmp_path):
    store = Store(tmp_path / "runs.db")
    store.put("a", RECORD, COST, CURVE)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE runs SET cost = ?", (json.dumps(COST),))
    with pytest.raises(DataError, match="does not match its digest"):
        store.get(key_of("a"))


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "runs.db").mkdir()
    with pytest.raises(DataError, match="cannot serve as a store of runs"):
        Store(tmp_path / "runs.db")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="needs a read-only folder, and root can write to any",
)
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0o500)
    with pytest.raises(DataError, match="cannot serve as a store of runs"):
        Store(folder / "runs.db")


FILL = """
import json, resource, signal, sys
from everynode.experiments.store import Store
store = Store(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for seed in range(1000):
    store.put(json.dumps({"seed": seed}), {"text": "x" * 1000}, {}, {})
    print(seed, flush=True)
"""


def test_a_full_disk_is_one_sentence_and_what_was_kept_is_kept(tmp_path):
    path = tmp_path / "runs.db"
    filled = subprocess.run(
        [sys.executable, "-c", FILL, path], capture_output=True, text=True, check=False
    )
    said = filled.stderr.splitlines()[-1]
    assert "DataError" in said
    assert said.endswith("free some disk space, then repeat the command; stored runs are not lost.")
    assert len(Store(path).records()) == len(filled.stdout.splitlines()) > 0


def test_a_store_that_another_process_keeps_locked_is_not_moved_away(tmp_path, monkeypatch):
    monkeypatch.setattr("everynode.experiments.store.TIMEOUT", 0.05)
    store = Store(tmp_path / "runs.db")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError) as caught:
            store.put("a", RECORD, COST, CURVE)
    wanted = "another process has been writing for 0.05 seconds; wait for it or end it, then repeat the command."
    assert (
        str(caught.value)
        == f"{store.path} cannot serve as a store of runs (database is locked): {wanted}"
    )


def test_an_empty_file_becomes_a_store(tmp_path):
    """It is what a process leaves that is killed while it makes one."""
    (tmp_path / "runs.db").touch()
    Store(tmp_path / "runs.db").put("a", RECORD, COST, CURVE)
    assert Store(tmp_path / "runs.db").keys() == {key_of("a")}


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
            patch.setattr(
                sqlite3,
                "connect",
                lambda *args, **options: connect(*args, **options, factory=Mortal),
            )
            try:
                Store(path)
            except Killed:
                finished = False
            else:
                finished = True
        store = Store(path)
        store.put("a", RECORD, COST, CURVE)
        assert store.get(key_of("a")) == RECORD | COST
        if finished:
            break
    assert finished
    assert statements >= 2  # or nothing was cut off


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
