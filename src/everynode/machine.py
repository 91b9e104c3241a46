"""What this machine has."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def cpu() -> str:
    """The processor, and with which of its instructions torch computes: what the last digits of a result depend on."""
    import torch

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):  # elsewhere than on Linux
        pass
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def others_running() -> int | None:
    """How many other threads of the machine want a core at this moment; only Linux tells."""
    try:
        running = int(
            Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0]
        )
    except (OSError, ValueError, IndexError):
        return None
    return (
        running - 1 if running else None
    )  # at least this one runs: a system that says 0 does not count
