"""Freed memory is kept within the block and given back after it."""

import sys
from pathlib import Path

import pytest
import torch

from everynode.training.memory import reused_memory

linux = pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc, and /proc, are on Linux only")


def resident_mb() -> float:
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def page_faults(times: int) -> int:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(16 * 1024 * 1024)  # 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@linux
def test_fewer_pages_are_touched_anew() -> None:
    outside = page_faults(8)
    with reused_memory():
        page_faults(1)
        inside = page_faults(8)
    assert inside < outside / 4


@linux
def test_memory_goes_back_afterwards() -> None:
    before = resident_mb()
    with reused_memory():
        page_faults(2)
        assert resident_mb() > before + 50
    assert resident_mb() < before + 40


def test_an_error_inside_comes_through() -> None:
    with pytest.raises(ValueError, match="inside"), reused_memory():
        raise ValueError("inside")
