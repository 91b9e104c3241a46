"""Missing values: clean a column, so that every missing value is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.column_names import MISSING_WORDS
from everynode.io.lists import JOINER, parse_lists
from everynode.io.parsing import (
    Floats,
    as_numbers,
    is_text,
    likely_comma,
    matches,
    possible_commas,
)
from everynode.io.units import infer_unit, strip_unit

#: The seconds since 1970 of years 1 and 9999. Dates beyond are mistakes and count as missing.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
#: A column holds numbers (or dates) if at least this share of its cells does; others are missing.
MIN_SHARE = 0.95
#: The number of distinct values that represent a column.
SAMPLE_SIZE = 1000


def clean(column: pa.ChunkedArray, na: Sequence[str] = ()) -> pa.ChunkedArray:
    """Trim text, unify types, and set missing values to null.

    The result is text, integers, float64, booleans, timestamps or lists. Other types stay
    unchanged. ``na`` holds additional words for a missing value.
    """
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if is_text(column):
        column = pc.utf8_trim_whitespace(column)
        column = _set_null(column, pc.is_in(column, value_set=pa.array([*MISSING_WORDS, *na])))
        column = parse_lists(column)
    kind = column.type
    if is_list(kind) and _is_any_text(kind.value_type):  # tags
        column = _join_words(column)
    if is_text(column):
        column = _set_null(column, pc.is_in(column, value_set=pa.array([*MISSING_WORDS, *na])))
        return _set_null(column, _equal_numbers(column, na)) if na else column
    if pa.types.is_integer(kind):
        # No cast to float64, which would round long numbers in categories and labels.
        is_na = pa.array(np.isin(as_numbers(column), numbers_in(na))) if na else None
        return column if is_na is None else _set_null(column, is_na)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
        is_na = pc.is_in(column, value_set=pa.array(numbers_in(na)))
        return _set_null(column, pc.or_(pc.is_nan(column), is_na))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        times = column.cast(pa.timestamp("s"), safe=False)
        seconds = times.cast(pa.int64())
        beyond = pc.or_(pc.less(seconds, FIRST_SECOND), pc.greater(seconds, LAST_SECOND))
        words = pa.array(na, pa.string())
        na_days = pc.strptime(words, "%Y-%m-%d", "s", error_is_null=True).drop_null()
        return _set_null(times, pc.or_(beyond, pc.is_in(times, value_set=na_days)))
    return column


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's list types."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def distinct_sample(distinct: pa.ChunkedArray) -> pa.ChunkedArray:
    """Pick up to 1000 of the distinct values, evenly spaced."""
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), SAMPLE_SIZE)).astype(np.int64)
    return distinct.take(pa.array(places))


def _set_null(column: pa.ChunkedArray, mask: Any) -> pa.ChunkedArray:
    return pc.if_else(mask, pa.scalar(None, column.type), column)


def numbers_in(na: Sequence[str]) -> Floats:
    """Return the words for a missing value that are numbers."""
    values = as_numbers(pa.chunked_array([pa.array(na, pa.string())]))
    return values[~np.isnan(values)]


def _equal_numbers(column: pa.ChunkedArray, na: Sequence[str]) -> pa.Array:
    """Return where a numeric column equals a number in ``na``, such as -999.0 for -999.

    Leading zeros make a code: 007 is not 7.
    """
    unit = infer_unit(distinct_sample(pc.unique(column.drop_null())))
    column = strip_unit(column, unit)
    values, numbers = as_numbers(column, likely_comma(possible_commas(column))), numbers_in(na)
    num_present = len(column) - column.null_count
    if not len(numbers) or (~np.isnan(values)).sum() < MIN_SHARE * num_present:
        return pa.array(np.zeros(len(column), dtype=bool))
    is_code = np.asarray(pc.fill_null(matches(column, r"^[+-]?0\d"), True))
    return pa.array(np.isin(values, numbers) & ~is_code)


def _is_any_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _join_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Join lists of words in one text, skipping missing words."""
    column = column.cast(pa.list_(pa.string()))
    if pc.list_flatten(column).null_count:  # Arrow would treat the whole cell as missing
        rows = [
            None if words is None else JOINER.join(word for word in words if word is not None)
            for words in column.to_pylist()
        ]
        return pa.chunked_array([pa.array(rows, pa.string())])
    return pc.binary_join(column, JOINER)
