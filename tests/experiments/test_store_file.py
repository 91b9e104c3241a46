"""The file of a store: created whole, refused if it is something else, damage found in time."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from everynode.errors import DataError
from everynode.experiments.store import Store, records_at
from everynode.experiments.store_file import APPLICATION_ID, SCHEMA
from helpers.stores import COST, CURVE, RECORD, key_of


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


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EROFS, "Read-only file system"),
    ],
)
def test_nobody_is_told_to_move_a_file_that_cannot_be_written(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("everynode.experiments.store_file.sqlite3.connect", refuse)
    with pytest.raises(DataError, match="make the file and its folder writable") as caught:
        Store(tmp_path / "runs.db")
    assert "move it away" not in str(caught.value)


def test_an_old_sqlite_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.31.1")
    with pytest.raises(DataError, match=r"needs SQLite 3\.37 or newer\. This Python has 3\.31\.1"):
        Store(tmp_path / "runs.db")
    assert not (tmp_path / "runs.db").exists()


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
    monkeypatch.setattr("everynode.experiments.store_file.TIMEOUT", 0.05)
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
