"""Properties of this machine: cores, memory, processor and devices."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
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


#: The file systems of control groups, and their files for the limit, for the memory in use and for
#: the entry of ``memory.stat`` with file pages that the kernel gives back on demand.
GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory_mb() -> float:
    """Return the memory that this process may still take, in MB; NaN if the system hides it.

    On Linux, the limits of the container or control group count (versions 1 and 2), and those of
    the shell (``ulimit -d``, ``ulimit -v``).
    """
    limits = [*_group_limits(Path("/sys/fs/cgroup")), *_process_limits()]
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        limits.append(int(text.split("MemAvailable:")[1].split()[0]) * 1024)
    if not limits:
        with suppress(AttributeError, ValueError, OSError):  # all memory, where the free is unknown
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return max(0.0, min(limits) / 1024**2) if limits else math.nan


def _group_limits(mount: Path, own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the free bytes of this process's control group and of each group around it."""
    lines: list[str] = []
    with suppress(OSError):
        lines = own.read_text(encoding="utf-8").splitlines()
    for controller, limit_file, used_file, reclaimable in GROUPS:
        paths = [
            path.strip("/")
            for _, controllers, path in (line.split(":", 2) for line in lines)
            if controller in controllers.split(",")
        ]
        top = mount / controller
        # Inside a container, the mount may show the group itself at its top.
        for folder in {top, *(part for p in paths for part in (top / p, *(top / p).parents))}:
            if not folder.is_relative_to(top):
                continue
            with suppress(OSError, ValueError, IndexError):  # "max" is no number
                limit, used = (
                    int((folder / name).read_text(encoding="ascii"))
                    for name in (limit_file, used_file)
                )
                stat = (folder / "memory.stat").read_text(encoding="ascii").split()
                yield limit - used + int(stat[stat.index(reclaimable) + 1])


def _process_limits() -> Iterator[int]:
    """Yield the free bytes under ``ulimit -d`` and ``ulimit -v``."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        status = Path("/proc/self/status").read_text(encoding="ascii")
        for kind, entry in (("RLIMIT_DATA", "VmData:"), ("RLIMIT_AS", "VmSize:")):
            limit = resource.getrlimit(getattr(resource, kind))[0]
            if limit != resource.RLIM_INFINITY:
                yield limit - int(status.split(entry)[1].split()[0]) * 1024


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
