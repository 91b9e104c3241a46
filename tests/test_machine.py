"""What is told of this machine."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from everynode.machine import _group_limits, cpu, free_memory_mb, others_running


def test_a_processor_has_a_name_and_torchs_instructions():
    name, _, instructions = cpu().rpartition(", ")
    assert name
    assert instructions == torch.backends.cpu.get_cpu_capability()


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what else is running")
def test_others_that_run_are_seen():
    busy = [
        multiprocessing.get_context("fork").Process(target=_spin, args=(20.0,)) for _ in range(3)
    ]
    for process in busy:
        process.start()
    try:
        end = time.monotonic() + 15
        seen = 0
        while seen < len(busy) and time.monotonic() < end:
            seen = max(seen, others_running() or 0)
            time.sleep(0.01)
    finally:
        for process in busy:
            process.kill()
            process.join()
    assert seen >= len(busy)


def test_where_it_cannot_be_told_nothing_is(monkeypatch):
    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr("everynode.machine.Path.read_text", refuse)
    assert others_running() is None


def test_free_memory_is_known_here():
    assert free_memory_mb() > 0


def _write_group(folder: Path, names: tuple[str, str], limit: str, used: int, stat: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip((*names, "memory.stat"), (limit, str(used), stat), strict=True):
        (folder / name).write_text(text)


def test_a_control_group_and_those_around_it_limit_the_memory(tmp_path):
    """File pages that the kernel gives back on demand are free."""
    own, names = tmp_path / "cgroup", ("memory.max", "memory.current")
    own.write_text("0::/user/job\n")
    mount = tmp_path / "fs"
    _write_group(mount / "user/job", names, "max", 10, "anon 5\ninactive_file 3\n")
    _write_group(mount / "user", names, "1000", 400, "anon 5\ninactive_file 100\n")
    assert list(_group_limits(mount, own)) == [700]


def test_control_groups_of_the_first_version_count(tmp_path):
    own, names = tmp_path / "cgroup", ("memory.limit_in_bytes", "memory.usage_in_bytes")
    own.write_text("9:cpu,cpuacct:/\n4:memory:/docker/abc\n")
    # In a container, the group is the top of the mount.
    _write_group(tmp_path / "fs/memory", names, "1000", 400, "total_inactive_file 50\n")
    assert list(_group_limits(tmp_path / "fs", own)) == [650]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count the memory in use")
def test_a_limit_of_the_shell_counts():
    command = f"ulimit -v 4000000; {sys.executable} -c " + (
        "'from everynode.machine import free_memory_mb; print(free_memory_mb())'"
    )
    free = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
    assert 0 < float(free) < 4000000 / 1024
