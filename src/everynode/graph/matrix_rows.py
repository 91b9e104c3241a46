"""Matrices in memory or in a file, which are read and written a few rows at a time.

A file is read, not mapped: Linux may hold 2 MB in memory for every row read from a mapped file.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from everynode.errors import DataError

Array = npt.NDArray[Any]
#: Matrices of up to this many bytes stay in memory.
IN_MEMORY = 1024**3
#: Protects the file position on systems without pread and pwrite (Windows).
_position = threading.Lock()


class Rows(Protocol):
    """A matrix with access by rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def read(self, rows: Array) -> Array:
        """Return some rows."""
        ...

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        ...


class MemoryRows:
    """Matrix in memory.

    Parameters
    ----------
    array : ndarray
        The matrix.
    """

    def __init__(self, array: Array):
        self.array = array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.array.shape[0], self.array.shape[1]

    def read(self, rows: Array) -> Array:
        """Return some rows."""
        selected: Array = self.array[rows]
        return selected

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        self.array[start : start + len(rows)] = rows


class FileRows:
    """Matrix in an open file, stored row by row.

    Parameters
    ----------
    file : file object
        The open file.
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        Type of the numbers.
    offset : int
        Position of the first row in the file, in bytes.

    Attributes
    ----------
    row_bytes : int
        Size of a row.
    """

    def __init__(
        self, file: BinaryIO, shape: tuple[int, int], dtype: npt.DTypeLike, offset: int = 0
    ):
        self.file, self.shape, self.dtype, self.offset = file, shape, np.dtype(dtype), offset
        self.row_bytes = shape[1] * self.dtype.itemsize

    @classmethod
    def of_npy(cls, path: Path) -> FileRows:
        """Open a matrix in a .npy file."""
        file = path.open("rb")
        if np.lib.format.read_magic(file) != (1, 0):
            raise DataError(f"{path} is not a .npy file of version 1.0.")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        if len(shape) != 2 or by_column or dtype.hasobject:
            raise DataError(f"{path} is not a matrix of numbers, stored row after row.")
        rows = cls(file, shape, dtype, file.tell())
        if path.stat().st_size < rows.offset + shape[0] * rows.row_bytes:
            raise DataError(f"{path} is cut short: it should hold {shape[0]} rows of {shape[1]}.")
        return rows

    def read(self, rows: Array) -> Array:
        """Return some rows; consecutive rows are read with one call."""
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        if not out.size:
            return out
        buffer, size = out.data.cast("B"), self.row_bytes
        first = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1, [len(rows)]])
        starts, ends = first[:-1].tolist(), first[1:].tolist()
        for a, b, row in zip(starts, ends, rows[first[:-1]].tolist(), strict=True):
            part = buffer[a * size : b * size]
            if _read_at(self.file, part, self.offset + row * size) != (b - a) * size:
                raise DataError(
                    f"The file of {self.shape[0]} rows ends before row {row + b - a}: "
                    "write it again."
                )
        return out

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        content = np.ascontiguousarray(rows, self.dtype).data.cast("B")
        offset = self.offset + start * self.row_bytes
        if _write_at(self.file, content, offset) != len(content):
            raise DataError(
                "The disk is full: there is no space for the values between two layers. "
                "Free some space."
            )


def _read_at(file: BinaryIO, buffer: memoryview, offset: int) -> int:
    """Fill a buffer from a place in a file; return the number of bytes read."""
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [buffer], offset)
    with _position:
        file.seek(offset)
        return int(file.readinto(buffer))  # type: ignore[attr-defined]


def _write_at(file: BinaryIO, content: memoryview, offset: int) -> int:
    """Write to a place in a file; return the number of bytes written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file.fileno(), content, offset)
    with _position:
        file.seek(offset)
        written = file.write(content)
        file.flush()
        return written


def room(rows: int, columns: int, dtype: npt.DTypeLike, folder: Path | None) -> Rows:
    """Return an empty matrix: in memory, or in a temporary file if it is large.

    The file lies in ``folder`` if that is writable, because the system's folder for temporary files
    may be in memory.
    """
    if rows * columns * np.dtype(dtype).itemsize <= IN_MEMORY:
        return MemoryRows(np.empty((rows, columns), dtype))
    file: Any = None
    with suppress(OSError):
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the matrix
    return FileRows(file or tempfile.TemporaryFile(), (rows, columns), dtype)
