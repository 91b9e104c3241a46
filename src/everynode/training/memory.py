"""How much memory a process has had, and how training treats memory that arrays have given back."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # the names of glibc's mallopt parameters, from malloc.h


@contextmanager
def reused_memory() -> Iterator[None]:
    """Within this block freed memory is kept for the next array; afterwards it goes back to the system.

    By itself glibc returns every array over 32 MB to the system when it is freed, and the next one is paid for page by page: on a graph
    of a million edges that was 490,000 page faults and 40% of the time of a step. Elsewhere than on Linux with glibc nothing happens.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(_MMAP_MAX, 0)
    libc.mallopt(_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        libc.mallopt(_MMAP_MAX, 65536)  # glibc's own default
        libc.mallopt(_TRIM_THRESHOLD, 64 * 1024 * 1024)
        libc.malloc_trim(0)


def peak_mb() -> float:
    """The most memory that this process has had so far (since :func:`forget_peak`), in MB."""
    if sys.platform == "linux":  # getrusage would start from what the parent had when it started this process
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def forget_peak() -> None:
    """Let :func:`peak_mb` start anew from what the process has now; only Linux can."""
    with suppress(OSError):  # elsewhere the peak is that of the process's whole life
        Path("/proc/self/clear_refs").write_text("5")
