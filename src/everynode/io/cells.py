"""The cleaned cells of one column, with values derived for type inference and encoding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.column_names import DateOrder
from everynode.io.dates import as_days, order_of_dates
from everynode.io.missing_values import clean, distinct_sample, is_list
from everynode.io.parsing import (
    Comma,
    Floats,
    as_booleans,
    as_numbers,
    as_vectors,
    is_text,
    matches,
    possible_commas,
)
from everynode.io.tables import Table
from everynode.io.units import infer_unit, strip_unit

#: Numbers without unit, for a quick decision about wide tables.
PLAIN_NUMBER = r"^-?\d+(\.\d+)?$"
#: The Arrow type of cleaned cells, in broad terms.
CellType = Literal["text", "number", "boolean", "date", "vector", "other"]


def cell_type(cells: pa.ChunkedArray) -> CellType:
    """Return the broad type of cleaned cells."""
    kind = cells.type
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "date"
    if is_list(kind) and (
        pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)
    ):
        return "vector"
    return "other"


class Cells:
    """The cleaned cells of one column.

    Derived values are computed once, on first use.

    Parameters
    ----------
    table : Table
        The table of the column.
    name : str
        The name of the column.
    na : sequence of str
        Additional words for a missing value.
    date_order : {"dmy", "mdy"}, optional
        The order of dates that end with the year, if it is known.

    Attributes
    ----------
    values : pyarrow.ChunkedArray
        The cleaned cells, null where a value is missing.
    """

    def __init__(
        self,
        table: Table,
        name: str,
        na: Sequence[str] = (),
        date_order: DateOrder | None = None,
    ) -> None:
        self.table, self.name, self.date_order = table, name, date_order
        self.values = clean(table[name], na)
        self._cache: dict[Hashable, Any] = {}

    @property
    def where(self) -> str:
        """The column, as the subject of a message."""
        return self.table.column(self.name)

    @property
    def num_present(self) -> int:
        """The number of cells that are not missing."""
        return len(self.values) - self.values.null_count

    @cached_property
    def type(self) -> CellType:
        """The broad type of the cells."""
        return cell_type(self.values)

    @cached_property
    def distinct(self) -> pa.ChunkedArray:
        """The distinct values, without null."""
        return pc.unique(self.values.drop_null())

    @cached_property
    def sample(self) -> pa.ChunkedArray:
        """Some of the distinct values, at most 1000."""
        return distinct_sample(self.distinct)

    @cached_property
    def unit(self) -> str:
        """The unit of more than half of the values, or an empty string."""
        if not is_text(self.values) or pc.all(matches(self.sample, PLAIN_NUMBER)).as_py():
            return ""
        return infer_unit(self.sample)

    def without_unit(self, unit: str) -> pa.ChunkedArray:
        """Return the cells without a unit."""
        return self._cached(("plain", unit), lambda: strip_unit(self.values, unit))

    def possible_commas(self, unit: str) -> set[Comma]:
        """Return the meanings that fit all commas in numbers with this unit."""
        return self._cached(("commas", unit), lambda: possible_commas(self.without_unit(unit)))

    @cached_property
    def order(self) -> tuple[str, str]:
        """The order of dates that end with the year, and an example if it is ambiguous."""
        return order_of_dates(self.distinct, self.date_order)

    def parse(self, kind: str, *, unit: str = "", comma: str = "", order: str = "") -> Floats:
        """Parse the cells as rows of numbers, NaN where a value is missing. Do not modify them."""
        key = (kind, unit, comma, order)
        return self._cached(key, lambda: self._parse(kind, unit, comma, order))

    def _parse(self, kind: str, unit: str, comma: str, order: str) -> Floats:
        if kind == "vector":
            return as_vectors(self.values, self.name, self.table)
        if kind == "date":
            return as_days(self.values, order)[:, None]
        if kind == "boolean":
            return as_booleans(self.values)[:, None]
        return as_numbers(self.without_unit(unit), comma)[:, None]

    def _cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]
