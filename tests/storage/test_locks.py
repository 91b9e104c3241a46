"""Locks: two processes never hold one, and a killed process frees its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everynode.storage.locks import changing, file_lock, temporary_lock, try_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and kills processes")


def start(target: Callable[..., None], *args: Any) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def hold(lock: Path, sign: Path) -> None:
    with file_lock(lock):
        sign.touch()
        time.sleep(60)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def test_a_lock_is_free_once_its_process_is_killed(tmp_path: Path) -> None:
    lock, sign = tmp_path / "lock", tmp_path / "sign"
    process = start(hold, lock, sign)
    wait_for(sign)
    assert try_lock(lock) is None
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    taken = try_lock(lock)
    assert taken is not None
    taken.release()


def test_a_forked_process_does_not_release_its_parents_lock(tmp_path: Path) -> None:
    lock = file_lock(tmp_path / "lock")

    def child() -> None:
        lock.release(force=True)

    with lock:
        process = start(child)
        process.join()
        assert process.exitcode == 0
        assert try_lock(tmp_path / "lock") is None


def add_one(path: Path) -> None:
    for _ in range(50):
        with changing(path):
            path.write_text(str(int(path.read_text()) + 1))


def test_several_processes_change_one_file(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    link = tmp_path / "link"
    link.symlink_to(path)
    processes = [start(add_one, name) for name in (path, path, link)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert path.read_text() == "150"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["count", "link"]


def test_a_temporary_lock_leaves_no_file(tmp_path: Path) -> None:
    with temporary_lock(tmp_path / "lock"):
        assert try_lock(tmp_path / "lock") is None
    assert list(tmp_path.iterdir()) == []
