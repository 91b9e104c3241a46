"""Cells: what is missing, what is a number, a yes or no, a date; always for a whole column at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.tables import Table
from everynode.io.units import is_money, unit_of, units_of, without_unit

Floats = npt.NDArray[np.float64]
Kind = Literal["number", "boolean", "date", "category", "text", "vector", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: What the cells of each kind of column may be made of.
MADE_OF = {
    "number": ("number", "text", "boolean"),
    "boolean": ("boolean", "text", "number"),
    "date": ("date", "text"),
    "category": ("text", "number", "boolean", "date"),
    "text": ("text", "number", "boolean", "date"),
    "vector": ("vector",),
}
#: How a missing value is written, besides as nothing at all.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "NAN", "null", "NULL", "Null")
TRUE, FALSE = ("1", "true", "yes", "t", "y"), ("0", "false", "no", "f", "n")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$"
DECIMAL_COMMA = r"^[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+$"
#: Points between thousands, where the comma is decimal.
POINTS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?$"
WRITTEN = "|".join((NUMBER, THOUSANDS, DECIMAL_COMMA, POINTS))
ISO_DATE = r"^\d{4}-\d{2}-\d{2}([ T].*)?$"
OTHER_DATE = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?$"
#: The first second of the year 1 and the last of 9999, from 1970: dates beyond are mistakes, and count as missing.
YEARS = -62_135_596_800, 253_402_300_799
#: A column is one of numbers (or dates) if at least this share of what is not missing is; the rest then counts as missing.
MOSTLY = 0.95
#: Words without spaces that differ nearly everywhere are names, from this many on.
NAMES = 100


def clean(column: pa.ChunkedArray, na: Sequence[str] = ()) -> pa.ChunkedArray:
    """Trimmed text, whole numbers, float64, booleans, dates or lists, null where a value is missing; anything else stays as it is."""
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if _is_list(kind) and _is_words(kind.value_type):  # tags
        column = _joined(column)
    if is_text(column):
        column = pc.utf8_trim_whitespace(column)
        column = _without(column, pc.is_in(column, value_set=pa.array([*MISSING, *na])))
        return _without(column, _written_otherwise(column, na)) if na else column
    if pa.types.is_integer(
        kind
    ):  # as float64 the long ones would lose digits, which categories and labels need
        return (
            _without(column, pa.array(np.isin(as_numbers(column), _values(na)))) if na else column
        )
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
        return _without(
            column, pc.or_(pc.is_nan(column), pc.is_in(column, value_set=pa.array(_values(na))))
        )
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("s"), safe=False)
        number = seconds.cast(pa.int64())
        beyond = pc.or_(pc.less(number, YEARS[0]), pc.greater(number, YEARS[1]))
        days = pc.strptime(
            pa.array(na, pa.string()), "%Y-%m-%d", "s", error_is_null=True
        ).drop_null()
        return _without(seconds, pc.or_(beyond, pc.is_in(seconds, value_set=days)))
    return column


def _without(column: pa.ChunkedArray, gone: Any) -> pa.ChunkedArray:
    return pc.if_else(gone, pa.scalar(None, column.type), column)


def _values(na: Sequence[str]) -> Floats:
    """Those of the ways to write a missing value that are numbers."""
    values = as_numbers(pa.chunked_array([pa.array(na, pa.string())]))
    return values[~np.isnan(values)]


def _written_otherwise(column: pa.ChunkedArray, na: Sequence[str]) -> pa.Array:
    """Where a column of numbers has one that counts as missing, as -999.0 for -999. Zeros in front make it a code: 007 is not 7."""
    unit = unit_of(sample(column))
    column = without_unit(column, unit)
    values, wanted = as_numbers(column, comma_of(column)), _values(na)
    if not len(wanted) or (~np.isnan(values)).sum() < MOSTLY * (len(column) - column.null_count):
        return pa.array(np.zeros(len(column), dtype=bool))
    codes = np.asarray(pc.fill_null(_matches(column, r"^[+-]?0\d"), True))
    return pa.array(np.isin(values, wanted) & ~codes)


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether the cells are text."""
    return bool(pa.types.is_string(column.type))


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_words(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of words as text; a word that is missing is passed over, where Arrow would count the whole cell as missing."""
    column = column.cast(pa.list_(pa.string()))
    if pc.list_flatten(column).null_count:
        rows = [
            None if words is None else " ".join(word for word in words if word is not None)
            for words in column.to_pylist()
        ]
        return pa.chunked_array([pa.array(rows, pa.string())])
    return pc.binary_join(column, " ")


def shape_of(
    cells: pa.ChunkedArray,
) -> Literal["text", "number", "boolean", "date", "vector", "other"]:
    """What cleaned cells are made of."""
    kind = cells.type
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "date"
    return (
        "vector"
        if _is_list(kind)
        and (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))
        else "other"
    )


def kind_of(cells: pa.ChunkedArray) -> tuple[Kind, str]:
    """What a cleaned column is best taken for, and why if that is not plain to see."""
    present, shape = cells.drop_null(), shape_of(cells)
    if not len(present):
        return "ignored", "empty"
    if shape == "other":
        return "ignored", f"it holds {cells.type}"
    if shape == "vector":
        return "vector", ""
    if (
        len(present) == len(cells) and len(pc.unique(present)) == 1
    ):  # were some missing, that would say something
        return "ignored", f"the same in every row ({str(present[0].as_py())[:30]})"
    if shape == "text":
        return _kind_of_text(present)
    return ("boolean" if shape == "number" and _zeros_and_ones(present) else shape), ""


def _zeros_and_ones(values: pa.ChunkedArray) -> bool:
    return bool(np.isin(as_numbers(values), (0, 1)).all())


def _kind_of_text(present: pa.ChunkedArray) -> tuple[Kind, str]:
    different = pc.unique(present)
    if len(different) <= 4 and _yes_or_no(set(pc.utf8_lower(different).to_pylist())):
        return "boolean", ""
    some = sample(different)
    unit = unit_of(some)
    brackets = (
        not unit and pc.all(pc.starts_with(some, "(")).as_py()
    )  # where all have them, they are no minus
    if not brackets and _share(_matches(without_unit(some, unit), WRITTEN)) >= 0.5:
        if not unit and _codes(present):
            return _kind_of_words(present, len(different), "codes, with zeros in front")
        plain = without_unit(present, unit)
        values = as_numbers(plain, comma_of(plain))
        if 1 - np.isnan(values).mean() >= MOSTLY:
            return ("boolean" if not unit and np.isin(values, (0, 1)).all() else "number"), ""
    if _share(_matches(some, ISO_DATE)) >= MOSTLY:
        return "date", ""
    if _share(_matches(some, OTHER_DATE)) >= MOSTLY:
        return "ignored", "dates are understood only as in 2020-12-31"
    two = two_units(some)
    return _kind_of_words(present, len(different), f"no number, being {two}" if two else "")


def sample(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Some of the different values, a thousand at most; of these, all of them again."""
    different = pc.unique(cells.drop_null())
    return different.take(
        pa.array(np.linspace(0, len(different) - 1, min(len(different), 1000)).astype(np.int64))
    )


def _yes_or_no(words: set[str]) -> bool:
    """Whether words mean yes and no; N and F, which could both mean no, are two things."""
    return words <= {*TRUE, *FALSE} and (
        len(words) == 1 or (not words.isdisjoint(TRUE) and not words.isdisjoint(FALSE))
    )


def _codes(present: pa.ChunkedArray) -> bool:
    """Whether what looks like numbers are whole ones of one length, some with zeros in front, as in 01067: nobody counts so."""
    if not pc.any(_matches(present, r"^0\d")).as_py():
        return False
    numbers = present.filter(_matches(present, WRITTEN))
    return (
        bool(pc.all(_matches(numbers, r"^\d+$")).as_py())
        and len(pc.unique(pc.utf8_length(numbers))) == 1
    )


def two_units(values: pa.ChunkedArray) -> str:
    """How values that are numbers with several units are written; nothing if they are not."""
    units = list(units_of(values)) if is_text(values) else []
    for unit in units:
        values = without_unit(values, unit)
    two = len(units) > 1 and _share(_matches(values, WRITTEN)) >= MOSTLY
    return f"written with both {units[0]} and {units[1]}" if two else ""


def _kind_of_words(present: pa.ChunkedArray, distinct: int, why: str) -> tuple[Kind, str]:
    """What words are best taken for; ``why`` they are words, if they look like something else."""
    spaced = _share(pc.match_substring(present, " "))
    after = f"; {why}" if why else ""
    if spaced < 0.1:
        if distinct == len(present) > 2:
            return "ignored", f"every value is different: a name or an id{after}"
        if distinct > NAMES and distinct > 0.9 * len(present):
            return "ignored", f"nearly every value is different: a name or an id{after}"
    elif distinct > NAMES or (distinct > 0.5 * len(present) and spaced >= 0.5):
        return "text", why
    return "category", why


def _matches(cells: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(cells, pattern)


def _share(mask: pa.ChunkedArray) -> float:
    return float(pc.mean(mask).as_py() or 0.0)


# ---------------------------------------------------------------------- cells as numbers, NaN where there is none


def comma_of(cells: pa.ChunkedArray) -> Literal["", "decimal", "thousands"]:
    """What commas inside numbers stand for. All of them could stand for thousands: then they do."""
    possible = _commas(cells)
    return "thousands" if "thousands" in possible else "decimal" if possible else ""


def comma_in(cells: pa.ChunkedArray, where: str, before: str | None = None, unit: str = "") -> str:
    """What commas inside numbers stand for; in another file, what they did ``before`` if they can. Refused if it cannot be known.

    ``where``: what to call the column in a sentence. ``unit``: which the numbers had.
    """
    possible = _commas(cells)
    if before is not None and before not in possible and len(possible) == 2:
        example = cells.filter(_matches(cells, DECIMAL_COMMA))[0].as_py()
        raise DataError(
            f"{where} writes {example}, which may be {example.replace(',', '.')} or {example.replace(',', '')}: "
            "write it with a point, or without the comma."
        )
    if before is None and not possible and is_money(unit) and _whole_money(cells):
        example = cells.filter(_matches(cells, POINTS))[0].as_py()
        raise DataError(
            f"{where} writes {example} beside whole amounts, which may be {example} or {example.replace('.', '')}: write it without the "
            "point, or all with as many decimals."
        )
    comma: str = (
        comma_of(cells)
        if before is None
        else before
        if before in possible
        else next(iter(possible), "")
    )
    if is_text(cells) and comma != "thousands" and "decimal" in (comma, before):
        points, numbers = _matches(cells, POINTS), _matches(cells, NUMBER)
        either = cells.filter(pc.and_(points, numbers))
        decimal = pc.any(
            pc.and_(pc.and_not(numbers, points), pc.match_substring(cells, "."))
        ).as_py()
        if len(either) and bool(decimal) == bool(
            comma
        ):  # both signs are decimal; or there are no commas that would tell
            example = either[0].as_py()
            beside = (
                f"beside {cells.filter(_matches(cells, DECIMAL_COMMA))[0].as_py()}"
                if comma
                else "after decimal commas in training"
            )
            raise DataError(
                f"{where} writes {example} {beside}, which may be {example} or {example.replace('.', '')}: "
                "write it without the point, or use the same sign for decimals everywhere."
            )
    return comma


def _commas(cells: pa.ChunkedArray) -> set[Literal["decimal", "thousands"]]:
    """What all commas inside numbers could stand for; nothing if there are none, and no points that show what they would be."""
    if not is_text(cells):
        return set()
    if not pc.any(pc.match_substring(cells, ",")).as_py():
        pointed = cells.filter(pc.match_substring(cells, "."))
        several = pc.any(
            _matches(pointed, r"\d\.\d{3}\.\d")
        ).as_py()  # which no decimal point can be
        return (
            {"decimal"}
            if several
            and pc.all(_matches(pointed.filter(_matches(pointed, WRITTEN)), POINTS)).as_py()
            else set()
        )
    thousands, decimal = _matches(cells, THOUSANDS), _matches(cells, DECIMAL_COMMA)
    numbers = pc.or_(thousands, decimal)
    if not pc.any(numbers).as_py():
        return set()
    found: set[Literal["decimal", "thousands"]] = set()
    if pc.all(thousands.filter(numbers)).as_py():
        found.add("thousands")
    if pc.all(decimal.filter(numbers)).as_py():
        found.add("decimal")
    return found


def _whole_money(cells: pa.ChunkedArray) -> bool:
    """Whether points may stand between thousands: 980 beside 1.334, since amounts of money mostly have the same decimals or none."""
    numbers = cells.filter(_matches(cells, WRITTEN))
    pointed = pc.match_substring(numbers, ".")
    whole = pc.or_(
        pc.and_not(_matches(numbers, "[1-9]"), pointed), _matches(numbers, r"\..*\.")
    )  # nothing is 0 in either way
    return bool(
        pc.any(pointed).as_py()
        and pc.any(whole).as_py()
        and pc.all(_matches(numbers.filter(pointed), POINTS)).as_py()
    )


def as_numbers(cells: pa.ChunkedArray, comma: str = "") -> Floats:
    """Numbers; text that is none counts as missing."""
    if is_text(cells):
        if comma == "decimal":
            cells = pc.if_else(_matches(cells, POINTS), pc.replace_substring(cells, ".", ""), cells)
            cells = pc.replace_substring(cells, ",", ".")
        elif comma == "thousands":  # and 1,5 is then no number, rather than 15
            cells = pc.if_else(
                _matches(cells, THOUSANDS), pc.replace_substring(cells, ",", ""), cells
            )
        try:
            return _floats(cells.cast(pa.float64()))
        except pa.ArrowInvalid:
            cells = pc.if_else(
                _matches(cells, NUMBER),
                pc.replace_substring_regex(cells, r"^\+", ""),
                pa.scalar(None, pa.string()),
            )
    return _floats(cells.cast(pa.float64(), safe=False))


def as_booleans(cells: pa.ChunkedArray) -> Floats:
    """0 and 1; anything that is neither, nor yes, no, true or false, counts as missing."""
    if not is_text(cells):
        values = _floats(cells.cast(pa.float64(), safe=False))
        values[~np.isin(values, (0, 1))] = np.nan
        return values
    lower = pc.utf8_lower(cells)
    values = np.where(np.asarray(pc.is_in(lower, value_set=pa.array(TRUE))), 1.0, np.nan)
    values[np.asarray(pc.is_in(lower, value_set=pa.array(FALSE)))] = 0.0
    if np.isnan(values).sum() > cells.null_count:  # 1.0, perhaps
        values = np.where(
            np.isnan(values), as_booleans(pa.chunked_array([as_numbers(cells)])), values
        )
    return values


def as_dates(cells: pa.ChunkedArray) -> Floats:
    """Days since 1970; text that does not begin like 2020-12-31 counts as missing."""
    if is_text(cells):
        cells = pc.strptime(
            pc.utf8_slice_codeunits(cells, 0, 10), "%Y-%m-%d", "s", error_is_null=True
        )
    return _floats(cells.cast(pa.int64()).cast(pa.float64())) / 86400


def as_vectors(cells: pa.ChunkedArray, name: str, table: Table) -> Floats:
    """Lists of numbers, all of one length, as the rows of a matrix; a missing list is a row of NaN."""
    lengths = pc.list_value_length(cells)
    width = pc.max(lengths).as_py() or 0
    other = np.flatnonzero(np.asarray(pc.fill_null(pc.not_equal(lengths, width), False)))
    if len(other):
        given = lengths[int(other[0])].as_py()
        raise DataError(
            f"{table.row(other[0])}, column {name!r} has a list of {given} where others have {width}: make them one length."
        )
    present = np.asarray(cells.is_valid())
    values = np.full((len(cells), width), np.nan)
    values[present] = _floats(pc.list_flatten(cells).cast(pa.float64())).reshape(
        present.sum(), width
    )
    return values


def _floats(values: pa.ChunkedArray) -> Floats:
    return numpy_array(pc.fill_null(values, np.nan), np.float64)


def numpy_array(values: pa.ChunkedArray, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """An array of one's own: NumPy's view of Arrow's memory cannot be written to."""
    return np.asarray(values).astype(dtype, copy=True)
