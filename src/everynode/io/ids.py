"""Ids: text or whole numbers in any order, each once; and which node an edge's end is.

Ids are compared as text, without spaces around them: "007" and "7" are two nodes. Only an end that is no node by its text is compared
by its value, since programs write 7 as 7.0, 100000 as 1e+05, or drop zeros in front: it is then the one node of that value, if there
is exactly one. Other ways to write a number are names: "1.10" is not "1.1", and "1e1" is not "10".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, where_true
from everynode.io.type_inference import as_numbers, is_text, numpy_array

Ints = npt.NDArray[np.int64]
#: Whole numbers that are written in the only way they can be.
WHOLE = r"^(0|-?[1-9]\d{0,17})$"
#: Whole numbers as programs write them anew: with zeros behind a point, without those in front, or shortened as R does.
REWRITTEN = r"^[+-]?\d+(\.0+)?$|^[1-9](\.\d+)?e\+\d\d$"


def texts(table: Table, name: str) -> pa.ChunkedArray:
    """A column of ids as text; an empty one is refused."""
    column = table[name]
    kind = column.type
    if is_text(column):
        column = pc.utf8_trim_whitespace(column)
    elif pa.types.is_floating(kind):
        column = whole(column, table, name, "ids are text or whole numbers")
    try:
        column = column.cast(pa.string())
    except pa.ArrowException:
        raise DataError(
            f"{table.where}, column {name!r} holds {kind}: ids are text or whole numbers."
        ) from None
    empty = where_true(pc.or_kleene(pc.is_null(column), pc.equal(column, "")))
    if len(empty):
        raise DataError(
            f"{table.row(empty[0])}, column {name!r} is empty ({counted(len(empty), 'such row')}): every row needs an id there, "
            "or name another id column."
        )
    return column


def whole(column: pa.ChunkedArray, table: Table, name: str, rule: str) -> pa.ChunkedArray:
    """Whole numbers that became fractions because one of their column was missing once. ``rule``: what to say of others."""
    exact = 2.0 ** (
        np.finfo(column.type.to_pandas_dtype()).nmant + 1
    )  # from here on several whole numbers are the same fraction
    column = column.cast(pa.float64())
    fraction = where_true(pc.or_(pc.not_equal(column, pc.floor(column)), pc.is_inf(column)))
    if len(fraction):
        raise DataError(
            f"{table.row(fraction[0])}, column {name!r} holds {column[int(fraction[0])].as_py()}: {rule}."
        )
    large = where_true(pc.greater_equal(pc.abs(column), exact))
    if len(large):
        raise DataError(
            f"{table.row(large[0])}, column {name!r} holds {column[int(large[0])].as_py():.0f} ({counted(len(large), 'such row')}): "
            "whole numbers became fractions and lost digits. Save them as text or as whole numbers."
        )
    return column.cast(pa.int64())


def natural(text: pa.ChunkedArray) -> list[Any]:
    """Python values for text: whole numbers if every one is written as such, else strings."""
    if pc.all(pc.match_substring_regex(text, WHOLE)).as_py():
        return text.cast(pa.int64()).to_pylist()
    return text.to_pylist()


def check_unique(ids: pa.ChunkedArray, table: Table, name: str) -> None:
    """Refuse an id that two rows have."""
    first = ids.combine_chunks().dictionary_encode()
    if len(first.dictionary) == len(ids):
        return
    codes = np.asarray(first.indices)
    again = int(
        np.flatnonzero(codes != np.arange(len(codes)))[0]
    )  # the codes count up until the first repetition
    before = int(np.flatnonzero(codes == codes[again])[0])
    raise DataError(
        f"{table.row(again)}, column {name!r}: the id {ids[again].as_py()!r} is that of {table.unit} {table.numbers[before]} already "
        f"({counted(len(ids) - len(first.dictionary), 'such row')}): one row per node. Remove the repetitions, or name another id column."
    )


def find(
    ends: pa.ChunkedArray, ids: pa.ChunkedArray, table: Table, name: str, notes: Notes
) -> Ints:
    """The position of each end among the ids, -1 where it is none."""
    found = _positions(ends, ids)
    unknown = np.flatnonzero(found < 0)
    if not len(unknown):
        return found
    strange = ends.take(pa.array(unknown))
    values = pc.unique(strange)
    by_value = _by_value(_whole_numbers(values), _whole_numbers(ids))
    found[unknown] = by_value[_positions(strange, values)]
    matched = unknown[found[unknown] >= 0]
    if len(matched):
        example = int(matched[0])
        notes.repair(
            f"{counted(len(matched), 'id')} in column {name!r} of {table.where} matched by value, being written in another way "
            f"({ends[example].as_py()!r} for {ids[int(found[example])].as_py()!r}, {table.unit} {table.numbers[example]}).",
            len(matched),
        )
    return found


def _positions(values: pa.ChunkedArray, among: Any) -> Ints:
    among = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    return numpy_array(pc.fill_null(pc.index_in(values, value_set=among), -1), np.int64)


def _whole_numbers(text: Any) -> npt.NDArray[np.float64]:
    """The values of ids that are whole numbers, NaN for others."""
    return as_numbers(
        pc.if_else(pc.match_substring_regex(text, REWRITTEN), text, pa.scalar(None, pa.string()))
    )


def _by_value(values: npt.NDArray[np.float64], ids: npt.NDArray[np.float64]) -> Ints:
    """For each number the position of the one id that is equal to it; -1 where there is none or more than one."""
    different, first, count = np.unique(ids, return_index=True, return_counts=True)
    if not len(different):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(different, values), len(different) - 1)
    hit = (different[place] == values) & (count[place] == 1) & (np.abs(values) < 2**53)
    return np.where(hit, first[place], -1)
