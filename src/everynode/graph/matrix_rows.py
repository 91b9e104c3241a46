"""Matrices of which rows are read and written a few at a time: in memory, or in a file that need not fit into it.

A file is read, not mapped: of a mapped one Linux may hold 2 MB in memory for every row that somebody has looked at.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from everynode.errors import DataError

Array = npt.NDArray[Any]
#: A matrix of so many bytes needs no file.
IN_MEMORY = 1024**3


class Rows(Protocol):
    """A matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def read(self, rows: Array) -> Array:
        """Some rows."""
        ...

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        ...


class MemoryRows:
    """A matrix in memory."""

    def __init__(self, array: Array):
        self.array = array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.array.shape[0], self.array.shape[1]

    def read(self, rows: Array) -> Array:
        """Some rows."""
        found: Array = self.array[rows]
        return found

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        self.array[start : start + len(rows)] = rows


class FileRows:
    """A matrix in an open file, row after row from ``offset`` on."""

    def __init__(
        self, file: BinaryIO, shape: tuple[int, int], dtype: npt.DTypeLike, offset: int = 0
    ):
        self.file, self.shape, self.dtype, self.offset = file, shape, np.dtype(dtype), offset
        self.row_bytes = shape[1] * self.dtype.itemsize

    @classmethod
    def of_npy(cls, path: Path) -> FileRows:
        """A .npy file of a matrix."""
        file = path.open("rb")
        if np.lib.format.read_magic(file) != (1, 0):
            raise DataError(f"{path} is no .npy file of version 1.0.")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        if len(shape) != 2 or by_column or dtype.hasobject:
            raise DataError(f"{path} is no matrix of numbers, row after row.")
        rows = cls(file, shape, dtype, file.tell())
        if path.stat().st_size < rows.offset + shape[0] * rows.row_bytes:
            raise DataError(f"{path} is cut short: it should hold {shape[0]} rows of {shape[1]}.")
        return rows

    def read(self, rows: Array) -> Array:
        """Some rows; neighbouring ones in one go."""
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        if not out.size:
            return out
        into, size, number = out.data.cast("B"), self.row_bytes, self.file.fileno()
        first = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1, [len(rows)]])
        for a, b, row in zip(
            first[:-1].tolist(), first[1:].tolist(), rows[first[:-1]].tolist(), strict=True
        ):
            if (
                os.preadv(number, [into[a * size : b * size]], self.offset + row * size)
                != (b - a) * size
            ):
                raise DataError(
                    f"The file of {self.shape[0]} rows ends before row {row + b - a}: write it again."
                )
        return out

    def write(self, start: int, rows: Array) -> None:
        """Replace the rows from ``start`` on."""
        content = np.ascontiguousarray(rows, self.dtype).data.cast("B")
        if os.pwrite(self.file.fileno(), content, self.offset + start * self.row_bytes) != len(
            content
        ):
            raise DataError("There is no space left on the disk for what goes from layer to layer.")


def room(rows: int, columns: int, dtype: npt.DTypeLike, folder: Path | None) -> Rows:
    """A matrix to write to: in memory, or, if it is large, in a file that is gone as soon as nobody needs it."""
    if rows * columns * np.dtype(dtype).itemsize <= IN_MEMORY:
        return MemoryRows(np.empty((rows, columns), dtype))
    file: Any = None
    with suppress(
        OSError
    ):  # beside the graph if one may write there: the folder for temporary files may be one in memory
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is closed with the matrix
    return FileRows(file or tempfile.TemporaryFile(), (rows, columns), dtype)
