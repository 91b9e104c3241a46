"""Columns that grow record by record, for files whose records may lack some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from everynode.errors import DataError

#: Beyond this many cells, a table must fill at least one in a hundred.
SPARSE_CELLS = 20_000_000
SMALLEST_SHARE = 0.01


class Records:
    """A table that is built record by record.

    Attributes
    ----------
    lines : list of int
        The line of each record in the file, if the file has lines.
    """

    def __init__(self) -> None:
        self.lines: list[int] = []
        self._columns: dict[str, list[Any]] = {}
        self._num_rows = self._num_cells = 0

    def __len__(self) -> int:
        return self._num_rows

    def add(self, values: Mapping[str, Any], line: int | None = None) -> None:
        """Add a record. Columns that it lacks are missing in it."""
        for name, value in values.items():
            column = self._columns.setdefault(name, [])
            column.extend([None] * (self._num_rows - len(column)))
            column.append(value)
        self._num_rows += 1
        self._num_cells += len(values)
        if line is not None:
            self.lines.append(line)

    def columns(self, where: str) -> list[tuple[str, list[Any]]]:
        """Return the names and cells of all columns, equally long.

        A table is refused if nearly all of its cells would be missing: its size would be the number
        of records times the number of names, out of proportion to the file.
        """
        size = self._num_rows * len(self._columns)
        if size > SPARSE_CELLS and self._num_cells < SMALLEST_SHARE * size:
            raise DataError(
                f"{where} has {self._num_rows:,} records with {len(self._columns):,} different "
                f"names, and {self._num_cells / size:.2%} of these cells have a value. Write lists "
                "of numbers in place of the names."
            )
        for column in self._columns.values():
            column.extend([None] * (self._num_rows - len(column)))
        return list(self._columns.items())

    @property
    def numbers(self) -> Sequence[Any]:
        """The places of the records for messages: their number, with the line if known."""
        return Places(self.lines) if self.lines else range(1, self._num_rows + 1)


class Places(Sequence[str]):
    """Names of records by number and line: ``3 (line 17)``.

    Parameters
    ----------
    lines : sequence of int
        The line of each record.
    """

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return the name of one record, or of several."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return f"{index + 1} (line {self._lines[index]})"
