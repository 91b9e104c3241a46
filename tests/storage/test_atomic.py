"""The atomic writer: a file is complete or absent, whatever happens."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everynode.errors import DataError, UsageError
from everynode.storage.atomic import write_atomically


def test_a_file_is_written_whole_with_its_folders(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "c", b"x" * 100_000)
    write_atomically(tmp_path / "a" / "b" / "c", b"new")
    assert [(p.name, p.read_bytes()) for p in (tmp_path / "a" / "b").iterdir()] == [("c", b"new")]


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_when_writing_fails_the_old_file_stays_and_no_other(tmp_path, monkeypatch, where):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(where, full)
    with pytest.raises(
        DataError, match=r"Cannot write .*file: No space left on device.*untouched"
    ) as caught:
        write_atomically(path, b"new")
    assert str(path) in str(caught.value)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_ctrl_c_while_writing_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def write_often(path: str, letter: bytes) -> None:
    for _ in range(100):
        write_atomically(Path(path), letter * 50_000)


def test_several_may_write_the_same_file_at_once(tmp_path):
    """And whoever reads meanwhile finds the whole file of one of them."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * 50_000)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=write_often, args=(str(path), letter))
        for letter in (b"a", b"b", b"c")
    ]
    for writer in writers:
        writer.start()
    found = set()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert len(content) == 50_000
        found.add(bytes(sorted(set(content))))
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert {b"a", b"b", b"c"} >= found
    assert len(found) > 1  # or they did not write at once
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_parent_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="Cannot write"):
        write_atomically(tmp_path / "file" / "below", b"x")


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file size")
def test_a_limit_on_file_size_leaves_the_old_file_and_no_other(tmp_path):
    """A real write that really fails, in a process of its own."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = """
import resource, sys
from pathlib import Path
from everynode.errors import DataError
from everynode.storage.atomic import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
write_atomically(Path(sys.argv[1]).with_name("small"), b"s" * 4000)
try:
    write_atomically(Path(sys.argv[1]), b"n" * 100_000)
except DataError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"Cannot write {path}: File too large" in done.stdout
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "file": b"old",
        "small": b"s" * 4000,
    }


def test_what_a_kill_leaves_behind_is_replaced(tmp_path):
    path = tmp_path / "file"
    (tmp_path / ".file.part").write_bytes(b"half of an old o")
    (tmp_path / ".file.lock").touch()
    write_atomically(path, b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"new"}


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch):
    def without_locks(path):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("everynode.storage.locks.file_lock", without_locks)
    write_atomically(tmp_path / "file", b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"new"}


def test_a_link_stays_a_link_and_a_database_stays(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "runs.db").write_bytes(b"SQLite format 3\0...")
    with pytest.raises(UsageError, match="is a database"):
        write_atomically(tmp_path / "runs.db", b"new")
    with pytest.raises(UsageError, match="is a folder"):
        write_atomically(tmp_path, b"new")


def test_a_planted_link_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    folder = tmp_path / "out"
    folder.mkdir()
    for name in (".file.part", ".file.lock", ".file.0123456789abcdef.part"):
        (folder / name).symlink_to(outside)
    write_atomically(folder / "file", b"new")
    assert outside.read_bytes() == b"precious"
    assert (folder / "file").read_bytes() == b"new"
    assert not (folder / "file").is_symlink()


def test_a_planted_link_in_place_of_the_new_file_is_refused(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda *_: "known")
    (tmp_path / "out").mkdir()
    # Another name than the remains that are cleared away, planted after the clearing.
    monkeypatch.setattr("everynode.storage.atomic._clear_remains", lambda path: None)
    (tmp_path / "out" / ".file.known.part").symlink_to(outside)
    with pytest.raises(DataError, match="Cannot write"):
        write_atomically(tmp_path / "out" / "file", b"new")
    assert outside.read_bytes() == b"precious"


def test_permissions_of_a_replaced_file_are_kept(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
    umask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh", b"new")
    finally:
        os.umask(umask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o640
