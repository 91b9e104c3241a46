"""Type inference: the kind of a column, inferred from all its cells."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.cells import Cells
from everynode.io.column_names import FALSE_WORDS, TRUE_WORDS
from everynode.io.dates import is_date
from everynode.io.lists import JOINER, find_separator
from everynode.io.missing_values import MIN_SHARE
from everynode.io.parsing import ANY_NUMBER, as_numbers, is_text, likely_comma, matches
from everynode.io.units import count_units, strip_unit

Kind = Literal["number", "boolean", "date", "category", "text", "vector", "list", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: The cell types that a column of each kind may have.
CELL_TYPES = {
    "number": ("number", "text", "boolean"),
    "boolean": ("boolean", "text", "number"),
    "date": ("date", "text"),
    "category": ("text", "number", "boolean", "date"),
    "text": ("text", "number", "boolean", "date"),
    "vector": ("vector",),
    "list": ("text", "vector"),
}
#: The reason for leaving out a column of dates.
AMBIGUOUS_DATES = "dates that may be day-month-year or month-day-year"
#: More distinct words than this, nearly all different and without spaces, are names.
MAX_WORDS = 100


def infer_kind(cells: Cells) -> tuple[Kind, str]:
    """Infer the kind of a column, with the reason if it is not obvious."""
    if not cells.num_present:
        return "ignored", "empty"
    if cells.type == "other":
        return "ignored", f"it holds {cells.values.type}"
    if cells.type == "vector":  # lists of codes vary in length; measurements do not
        lengths = pc.unique(pc.list_value_length(cells.values).drop_null())
        is_list = len(lengths) > 1 and pa.types.is_integer(cells.values.type.value_type)
        return ("list" if is_list else "vector"), ""
    # With missing values, even a constant column is informative.
    if not cells.values.null_count and len(cells.distinct) == 1:
        return "ignored", f"the same in every row ({str(cells.distinct[0].as_py())[:30]})"
    if cells.type == "text":
        return _infer_from_text(cells)
    if cells.type == "number" and np.isin(as_numbers(cells.distinct), (0, 1)).all():
        return "boolean", ""
    return cells.type, ""


def _infer_from_text(cells: Cells) -> tuple[Kind, str]:
    distinct, sample, unit = cells.distinct, cells.sample, cells.unit
    if len(distinct) <= 4 and _are_boolean(set(pc.utf8_lower(distinct).to_pylist())):
        return "boolean", ""
    # Brackets around every number, as in (030), do not mean minus.
    all_in_brackets = not unit and pc.all(pc.starts_with(sample, "(")).as_py()
    if not all_in_brackets and _share(matches(strip_unit(sample, unit), ANY_NUMBER)) >= 0.5:
        if not unit and _are_codes(cells):
            return _infer_from_words(cells, "codes with leading zeros")
        comma = likely_comma(cells.possible_commas(unit))
        values = cells.parse("number", unit=unit, comma=comma)
        numbers = values[~np.isnan(values)]
        if len(numbers) >= MIN_SHARE * cells.num_present:
            is_boolean = not unit and len(numbers) == cells.num_present
            is_boolean = is_boolean and bool(np.isin(numbers, (0, 1)).all())
            return ("boolean" if is_boolean else "number"), ""
    if _share(is_date(sample)) >= MIN_SHARE:
        return _infer_date(cells)
    units = two_units(sample)
    return _infer_from_words(cells, f"not a number: {units}" if units else "")


def _infer_date(cells: Cells) -> tuple[Kind, str]:
    order, ambiguous = cells.order
    if ambiguous:
        return "ignored", f"{AMBIGUOUS_DATES}, such as {ambiguous}"
    num_dates = int((~np.isnan(cells.parse("date", order=order))).sum())
    if num_dates < MIN_SHARE * cells.num_present:
        return "ignored", "dates in several orders, or outside the calendar"
    return "date", ""


def _are_boolean(words: set[str]) -> bool:
    """Return whether the words mean yes and no. (N and F both mean no, so they are categories.)"""
    return words <= {*TRUE_WORDS, *FALSE_WORDS} and (
        len(words) == 1 or (not words.isdisjoint(TRUE_WORDS) and not words.isdisjoint(FALSE_WORDS))
    )


def _are_codes(cells: Cells) -> bool:
    """Return whether all numbers are whole, of one length, and some start with 0, as 01067."""
    if not pc.any(matches(cells.distinct, r"^0\d")).as_py():
        return False
    numbers = cells.distinct.filter(matches(cells.distinct, ANY_NUMBER))
    return (
        bool(pc.all(matches(numbers, r"^\d+$")).as_py())
        and len(pc.unique(pc.utf8_length(numbers))) == 1
    )


def two_units(values: pa.ChunkedArray) -> str:
    """Describe the units if the values are numbers with several units; else return ""."""
    units = list(count_units(values)) if is_text(values) else []
    for unit in units:
        values = strip_unit(values, unit)
    if len(units) > 1 and _share(matches(values, ANY_NUMBER)) >= MIN_SHARE:
        return f"written with both {units[0]} and {units[1]}"
    return ""


def _infer_from_words(cells: Cells, reason: str) -> tuple[Kind, str]:
    """Decide between category, text and names; ``reason`` explains words that look like numbers."""
    if find_separator(cells.values):
        return "list", ""
    num_distinct, num_present = len(cells.distinct), cells.num_present
    share_with_spaces = _share(matches(cells.values, f"[ {JOINER}]"))
    suffix = f"; {reason}" if reason else ""
    if share_with_spaces < 0.1:
        if num_distinct == num_present > 2:
            return "ignored", f"every value is different: a name or an id{suffix}"
        if num_distinct > MAX_WORDS and num_distinct > 0.9 * num_present:
            return "ignored", f"nearly every value is different: a name or an id{suffix}"
    elif num_distinct > MAX_WORDS or (
        num_distinct > 0.5 * num_present and share_with_spaces >= 0.5
    ):
        return "text", reason
    return "category", reason


def _share(mask: pa.ChunkedArray) -> float:
    return float(pc.mean(mask).as_py() or 0.0)
