"""Properties of this machine: cores, processor and devices."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.errors import UsageError

if TYPE_CHECKING:
    import torch

#: Increase it when a code change alters results by more than rounding. Every key then changes.
PROTOCOL = 1


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def cpu() -> str:
    """Return the processor and torch's instruction set; rounding depends on both."""
    import torch

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):  # only Linux has this file
        pass
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def usable_device(device: torch.device | str) -> torch.device:
    """Return a torch device, or refuse one that does not work here.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    import torch

    try:
        usable = torch.device(device)
        torch.zeros(1, device=usable).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"The device {str(device)!r} cannot be used here ({reason}): use the device 'cpu'."
        ) from error
    return usable


def others_running() -> int | None:
    """Return the number of other runnable threads; None if the system does not report it."""
    try:
        load = Path("/proc/loadavg").read_text(encoding="ascii").split()
        running = int(load[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return None
    # This thread is running, so a system that reports 0 does not count threads.
    return running - 1 if running else None


@cache
def versions() -> dict[str, str]:
    """Return the software versions that influence a result."""
    from importlib.metadata import version as installed

    return {"protocol": str(PROTOCOL), "torch": installed("torch").partition("+")[0]}
