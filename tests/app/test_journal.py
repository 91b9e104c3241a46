"""The journal: on the disk before anybody is told, whole after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from everynode.app.journal import Entry, Journal
from everynode.errors import DataError

WRITER = """
import sys
from pathlib import Path
from everynode.app.journal import Entry, Journal
journal = Journal(Path(sys.argv[1]))
for number in range(100000):
    journal.append(Entry("label", "ann", f"n{number}", "red"))
    print(number, flush=True)
"""


def test_entries_come_back_in_order_with_their_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "labels.jsonl")
    assert list(journal) == []
    first = journal.append(Entry("label", "ann", "né 1", 'a "quoted"\nline'))
    second = journal.append(Entry("undo", "ann"))
    assert list(Journal(journal.path)) == [first, second]
    assert first.time.endswith("+00:00")
    assert journal.path.read_bytes().count(b"\n") == 2


def test_a_line_that_a_crash_cut_short_costs_itself_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "labels.jsonl")
    journal.append(Entry("label", "ann", "n1", "red"))
    with journal.path.open("ab") as file:
        file.write(b'{"action": "label", "per')
    journal.append(Entry("label", "ann", "n2", "blue"))
    assert [entry.node for entry in journal] == ["n1", "n2"]
    assert journal.damaged == 1


def test_a_full_disk_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "labels.jsonl")
    journal.append(Entry("label", "ann", "n1", "red"))
    before = journal.path.read_bytes()
    write = os.write

    def half(descriptor: int, content: bytes) -> int:
        if len(content) < 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, content[: len(content) - 10])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(DataError, match=r"No space left on device\. The answer was not saved"):
        journal.append(Entry("label", "ann", "n2", "blue"))
    assert journal.path.read_bytes() == before


def test_an_answer_is_synchronized_before_it_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synchronized.append(os.fstat(descriptor).st_size)
    )
    journal = Journal(tmp_path / "labels.jsonl")
    journal.append(Entry("label", "ann", "n1", "red"))
    assert synchronized[0] == journal.path.stat().st_size
    assert len(synchronized) == 2  # and the folder, which has a new file
    journal.append(Entry("label", "ann", "n2", "red"))
    assert synchronized[2] == journal.path.stat().st_size


def test_kill_9_loses_no_confirmed_answer(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    confirmed = [int(process.stdout.readline()) for _ in range(40)]
    process.kill()
    confirmed += [int(line) for line in process.stdout.read().split()]
    process.wait()
    nodes = [entry.node for entry in Journal(path)]
    assert nodes[: len(confirmed)] == [f"n{number}" for number in confirmed]


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "labels.jsonl")

    def write(person: str) -> None:
        for number in range(10):
            journal.append(Entry("label", person, f"n{number}", "red"))

    threads = [threading.Thread(target=write, args=(person,)) for person in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(journal)) == 20
    assert journal.damaged == 0
