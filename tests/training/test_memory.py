"""Freed memory is kept within the block and given back after it; each in a fresh process, since malloc remembers what was before."""

import subprocess
import sys

import pytest

from everynode.training.memory import reused_memory

linux = pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc, and /proc, are on Linux only")
BEFORE = """
import resource
from pathlib import Path
import torch
from everynode.training.memory import reused_memory

def resident_mb():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

def faults(times, mb=24):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        kept = [torch.ones(mb * 256 * 1024) for _ in range(4)]
        del kept
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEFORE + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@linux
def test_fewer_pages_are_touched_anew() -> None:
    run(
        """
outside = faults(8)
with reused_memory():
    faults(1)
    inside = faults(8)
assert inside < outside / 4, (inside, outside)
"""
    )


@linux
def test_memory_goes_back_afterwards() -> None:
    run(
        """
before = resident_mb()
with reused_memory():
    faults(2)
    assert resident_mb() > before + 50
assert resident_mb() < before + 40
"""
    )


@linux
def test_large_arrays_leave_no_holes() -> None:
    run(
        """
before = resident_mb()
with reused_memory():
    faults(2, mb=64)
    assert resident_mb() < before + 40
"""
    )


def test_an_error_inside_comes_through() -> None:
    with pytest.raises(ValueError, match="inside"), reused_memory():
        raise ValueError("inside")
