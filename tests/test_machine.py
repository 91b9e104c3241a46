"""What is told of this machine."""

from __future__ import annotations

import multiprocessing
import sys
import time

import pytest
import torch

from everynode.machine import cpu, others_running


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
