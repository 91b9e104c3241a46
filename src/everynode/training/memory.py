"""How much memory a process has had, and how training treats memory that arrays have given back."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from everynode.training.recycled_arrays import Recycling

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the names of glibc's mallopt parameters, from malloc.h
#: The largest arrays, in bytes, whose memory is kept: glibc allows no more.
KEPT = 32 * 1024 * 1024


@contextmanager
def reused_memory(layer_bytes: int = 0) -> Iterator[None]:
    """Within this block the memory of freed arrays is kept for the next ones; afterwards it goes back to the system.

    By itself glibc gives the end of its heap back whenever a little is free there, and every step pays for it again page by page. It can
    be told to keep arrays of up to 32 MB (elsewhere than on Linux with glibc it cannot). If a layer's values (``layer_bytes``) are more
    than that, arrays of that size are kept by :class:`~everynode.training.recycled_arrays.Recycling`.
    """
    with Recycling(KEPT) if layer_bytes > KEPT else nullcontext(), _kept_by_malloc():
        yield


@contextmanager
def _kept_by_malloc() -> Iterator[None]:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(_MMAP_THRESHOLD, KEPT)
    libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        libc.mallopt(_TRIM_THRESHOLD, 2 * KEPT)  # what glibc itself arrives at
        libc.malloc_trim(0)


def peak_mb() -> float:
    """The most memory that this process has had so far (since :func:`forget_peak`), in MB."""
    if (
        sys.platform == "linux"
    ):  # getrusage would start from what the parent had when it started this process
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def forget_peak() -> None:
    """Let :func:`peak_mb` start anew from what the process has now; only Linux can."""
    with suppress(OSError):  # elsewhere the peak is that of the process's whole life
        Path("/proc/self/clear_refs").write_text("5")
