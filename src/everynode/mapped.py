"""Arrays that are files: reading a few rows of a large one without keeping the rest in memory."""

from __future__ import annotations

import mmap
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

#: How much of a file may be in memory because of us; and arrays below this size need no file.
RESIDENT = 1024**3
#: Whoever looks at one row gets, on Linux, so many bytes around it into memory.
AROUND = 64 * 1024


def take(array: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Some rows of an array, as ``array[rows]``; of a mapped one so many at a time that never more than 1 GB of it is resident."""
    if not isinstance(array, np.memmap):
        return array[rows]
    out = np.empty((len(rows), *array.shape[1:]), array.dtype)
    step = max(1, RESIDENT // max(AROUND, array[:1].nbytes))
    for start in range(0, len(rows), step):
        out[start : start + step] = array[rows[start : start + step]]
        give_back(array)
    return out


def give_back(array: npt.NDArray[Any]) -> None:
    """Let the system have the memory of a mapped array's pages; what was written to them is not lost."""
    mapped = array.base
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def room(rows: int, columns: int, dtype: npt.DTypeLike, folder: Path | None) -> npt.NDArray[Any]:
    """An array to write to: in memory, or, if it is large, in a file that is gone as soon as the array is."""
    if rows * columns * np.dtype(dtype).itemsize <= RESIDENT:
        return np.empty((rows, columns), dtype)
    with suppress(OSError):  # beside the graph if one may write there: the folder for temporary files may be one in memory
        return _file(rows, columns, dtype, folder)
    return _file(rows, columns, dtype, None)


def _file(rows: int, columns: int, dtype: npt.DTypeLike, folder: Path | None) -> npt.NDArray[Any]:
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype, "w+", shape=(rows, columns))
