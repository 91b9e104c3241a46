"""Owners: claims last exactly as long as the process that made them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from everynode.storage.owner import Owner, lives

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and kills processes")
FORK = multiprocessing.get_context("fork") if sys.platform != "win32" else None


def test_an_owner_lives_until_it_closes(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    owner, other = Owner(store), Owner(store)
    assert owner.name != other.name
    assert lives(store, owner.name)
    owner.close()
    assert not lives(store, owner.name)
    assert lives(store, other.name)
    other.close()
    assert list(tmp_path.iterdir()) == []
    assert not lives(store, "nobody")
    assert list(tmp_path.iterdir()) == [], "asking leaves no file behind"


def own_for_ever(store: Path, names: multiprocessing.Queue[str]) -> None:
    owner = Owner(store)
    names.put(owner.name)
    time.sleep(60)


def test_an_owner_dies_with_its_process(tmp_path: Path) -> None:
    assert FORK
    store, names = tmp_path / "runs.db", FORK.Queue()
    process = FORK.Process(target=own_for_ever, args=(store, names))
    process.start()
    name = names.get(timeout=20)
    assert lives(store, name)
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not lives(store, name)
    assert list(tmp_path.iterdir()) == []


def test_a_forked_copy_neither_ends_nor_outlives_its_parents_claims(tmp_path: Path) -> None:
    """The pool forks workers while the parent owns runs."""
    assert FORK
    store, names = tmp_path / "runs.db", FORK.Queue()

    def parent() -> None:
        owner = Owner(store)
        ending = FORK.Process(target=owner.close)
        ending.start()
        ending.join()
        worker = FORK.Process(target=time.sleep, args=(60,))
        worker.start()
        names.put((owner.name, worker.pid))
        time.sleep(60)

    process = FORK.Process(target=parent)
    process.start()
    name, worker = names.get(timeout=20)
    try:
        assert lives(store, name), "a forked copy that closes takes nothing from its parent"
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert not lives(store, name), "a worker that lives on owns nothing"
    finally:
        os.kill(worker, signal.SIGKILL)
