"""Memory of the process: its peak, and the reuse of freed arrays during training."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from everynode.training.recycled_arrays import Recycling

#: Parameters of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Largest freed array in bytes that malloc keeps: glibc allows no more.
KEPT = 32 * 1024 * 1024


@contextmanager
def reused_memory(layer_bytes: int = 0) -> Iterator[None]:
    """Keep the memory of freed arrays for the next ones; return it to the system at the end.

    By default glibc returns freed memory at once, and every step pays for new pages. Within this
    block malloc keeps arrays of up to 32 MB (only on Linux with glibc). If the values of one layer
    (``layer_bytes``) are larger, :class:`~everynode.training.recycled_arrays.Recycling` keeps them.
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
        libc.mallopt(_TRIM_THRESHOLD, 2 * KEPT)  # the value that glibc itself would reach
        libc.malloc_trim(0)


def peak_mb() -> float:
    """Return the peak memory of this process in MB, since :func:`forget_peak` on Linux.

    NaN where the system does not tell.
    """
    # On Linux getrusage would include the memory of the parent at the time of the fork.
    with suppress(OSError, IndexError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return _windows_peak_mb()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024**2 if sys.platform == "darwin" else peak / 1024


def _windows_peak_mb() -> float:
    """Return the peak working set on Windows."""
    windll = getattr(ctypes, "windll", None)
    if windll is None:
        return float("nan")
    # PROCESS_MEMORY_COUNTERS: two 32-bit numbers, then eight of the size of a pointer.
    fields = [(name, ctypes.c_uint32) for name in ("cb", "faults")]
    sizes = [(f"size{number}", ctypes.c_size_t) for number in range(8)]
    counters = type("Counters", (ctypes.Structure,), {"_fields_": [*fields, *sizes]})()
    counters.cb = ctypes.sizeof(counters)
    process = ctypes.c_void_p(-1)  # the current process
    if not windll.psapi.GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb):
        return float("nan")
    return float(counters.size0) / 1024**2


def forget_peak() -> None:
    """Start a new peak for :func:`peak_mb`. Only Linux can; elsewhere this does nothing."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
