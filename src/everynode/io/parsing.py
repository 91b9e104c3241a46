"""Parsers of whole columns: numbers, booleans and vectors. A missing value is NaN."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.column_names import FALSE_WORDS, TRUE_WORDS
from everynode.io.tables import Table, writable_array
from everynode.io.units import is_currency

Floats = npt.NDArray[np.float64]
#: The meaning of a comma in numbers: no comma, the decimal sign, or a separator of thousands.
Comma = Literal["", "decimal", "thousands"]

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
COMMA_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$"
DECIMAL_COMMA = r"^[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+$"
#: Points between thousands, as written with a decimal comma.
POINT_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?$"
ANY_NUMBER = "|".join((NUMBER, COMMA_THOUSANDS, DECIMAL_COMMA, POINT_THOUSANDS))


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether the cells are text."""
    return bool(pa.types.is_string(column.type))


def matches(cells: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Return where a pattern matches; null where a cell is missing."""
    return pc.match_substring_regex(cells, pattern)


# ---------------------------------------------------------------------- decimal signs


def possible_commas(cells: pa.ChunkedArray) -> set[Comma]:
    """Return the meanings that fit all commas in the numbers.

    Without commas the set is empty, unless several points in one number separate thousands.
    """
    if not is_text(cells):
        return set()
    if not pc.any(pc.match_substring(cells, ",")).as_py():
        pointed = cells.filter(pc.match_substring(cells, "."))
        if not pc.any(matches(pointed, r"\d\.\d{3}\.\d")).as_py():
            return set()
        numbers = pointed.filter(matches(pointed, ANY_NUMBER))
        return {"decimal"} if pc.all(matches(numbers, POINT_THOUSANDS)).as_py() else set()
    thousands, decimal = matches(cells, COMMA_THOUSANDS), matches(cells, DECIMAL_COMMA)
    with_comma = pc.or_(thousands, decimal)
    if not pc.any(with_comma).as_py():
        return set()
    possible: set[Comma] = set()
    if pc.all(thousands.filter(with_comma)).as_py():
        possible.add("thousands")
    if pc.all(decimal.filter(with_comma)).as_py():
        possible.add("decimal")
    return possible


def likely_comma(possible: set[Comma]) -> Comma:
    """Choose among the possible meanings of a comma; thousands come first."""
    return "thousands" if "thousands" in possible else "decimal" if possible else ""


def resolve_comma(
    cells: pa.ChunkedArray,
    possible: set[Comma],
    where: str,
    *,
    training: str | None = None,
    unit: str = "",
) -> Comma:
    """Return the meaning of commas in the numbers; refuse ambiguous numbers.

    Parameters
    ----------
    cells : pyarrow.ChunkedArray
        The cells, without unit.
    possible : set of str
        The result of :func:`possible_commas` for the cells.
    where : str
        The column, as the subject of a message.
    training : str, optional
        The meaning in the training files, which is used if it fits.
    unit : str
        The unit of the numbers.
    """
    if training is not None and training not in possible and len(possible) == 2:
        example = cells.filter(matches(cells, DECIMAL_COMMA))[0].as_py()
        raise DataError(
            f"{where} holds {example}, which may mean {example.replace(',', '.')} or "
            f"{example.replace(',', '')}. Write it with a point, or without the comma."
        )
    if training is None and not possible and is_currency(unit) and _mixes_whole_amounts(cells):
        example = cells.filter(matches(cells, POINT_THOUSANDS))[0].as_py()
        raise DataError(
            f"{where} holds {example} beside whole amounts, which may mean {example} or "
            f"{example.replace('.', '')}. Write it without the point, or write all amounts with "
            "the same number of decimals."
        )
    if training is None:
        comma = likely_comma(possible)
    else:
        kept = [choice for choice in possible if choice == training]
        comma = next(iter(kept or possible), "")
    if is_text(cells) and comma != "thousands" and "decimal" in (comma, training):
        _check_points(cells, comma, where)
    return comma


def _check_points(cells: pa.ChunkedArray, comma: Comma, where: str) -> None:
    """Refuse 1.234 beside decimal commas if other points in the column are decimal too."""
    as_thousands, as_decimal = matches(cells, POINT_THOUSANDS), matches(cells, NUMBER)
    ambiguous = cells.filter(pc.and_(as_thousands, as_decimal))
    only_decimal = pc.and_not(as_decimal, as_thousands)
    decimal_points = pc.any(pc.and_(only_decimal, pc.match_substring(cells, "."))).as_py()
    # Either both signs are decimal, or no comma decides.
    if len(ambiguous) and bool(decimal_points) == bool(comma):
        example, evidence = ambiguous[0].as_py(), "after decimal commas in training"
        if comma:
            evidence = f"beside {cells.filter(matches(cells, DECIMAL_COMMA))[0].as_py()}"
        raise DataError(
            f"{where} holds {example} {evidence}, which may mean {example} or "
            f"{example.replace('.', '')}. Write it without the point, or use the same decimal sign "
            "everywhere."
        )


def _mixes_whole_amounts(cells: pa.ChunkedArray) -> bool:
    """Return whether points may separate thousands, as in 1.334 beside 980.

    Amounts of money mostly have the same number of decimals, or none.
    """
    numbers = cells.filter(matches(cells, ANY_NUMBER))
    pointed = pc.match_substring(numbers, ".")
    # Zero is the same amount either way.
    whole = pc.or_(pc.and_not(matches(numbers, "[1-9]"), pointed), matches(numbers, r"\..*\."))
    return bool(
        pc.any(pointed).as_py()
        and pc.any(whole).as_py()
        and pc.all(matches(numbers.filter(pointed), POINT_THOUSANDS)).as_py()
    )


# ---------------------------------------------------------------------- values


def as_numbers(cells: pa.ChunkedArray, comma: str = "") -> Floats:
    """Parse numbers. Text that is not a number becomes NaN."""
    if is_text(cells):
        if comma == "decimal":
            without_points = pc.replace_substring(cells, ".", "")
            cells = pc.if_else(matches(cells, POINT_THOUSANDS), without_points, cells)
            cells = pc.replace_substring(cells, ",", ".")
        elif comma == "thousands":  # 1,5 stays text and is not read as 15
            without_commas = pc.replace_substring(cells, ",", "")
            cells = pc.if_else(matches(cells, COMMA_THOUSANDS), without_commas, cells)
        try:
            return _floats(cells.cast(pa.float64()))
        except pa.ArrowInvalid:
            unsigned = pc.replace_substring_regex(cells, r"^\+", "")
            cells = pc.if_else(matches(cells, NUMBER), unsigned, pa.scalar(None, pa.string()))
    return _floats(cells.cast(pa.float64(), safe=False))


def as_booleans(cells: pa.ChunkedArray) -> Floats:
    """Parse 0, 1, yes, no, true and false. Everything else becomes NaN."""
    if not is_text(cells):
        values = _floats(cells.cast(pa.float64(), safe=False))
        values[~np.isin(values, (0, 1))] = np.nan
        return values
    lower = pc.utf8_lower(cells)
    values = np.where(np.asarray(pc.is_in(lower, value_set=pa.array(TRUE_WORDS))), 1.0, np.nan)
    values[np.asarray(pc.is_in(lower, value_set=pa.array(FALSE_WORDS)))] = 0.0
    if np.isnan(values).sum() > cells.null_count:  # perhaps 1.0
        numbers = as_booleans(pa.chunked_array([as_numbers(cells)]))
        values = np.where(np.isnan(values), numbers, values)
    return values


def as_vectors(cells: pa.ChunkedArray, name: str, table: Table) -> Floats:
    """Parse lists of numbers of equal length as the rows of a matrix."""
    lengths = pc.list_value_length(cells)
    width = pc.max(lengths).as_py() or 0
    shorter = np.flatnonzero(np.asarray(pc.fill_null(pc.not_equal(lengths, width), False)))
    if len(shorter):
        raise DataError(
            f"{table.row(shorter[0])}, column {name!r} has a list of "
            f"{lengths[int(shorter[0])].as_py()} where others have {width}. Make all lists equally "
            "long."
        )
    present = np.asarray(cells.is_valid())
    values = np.full((len(cells), width), np.nan)
    numbers = _floats(pc.list_flatten(cells).cast(pa.float64(), safe=False))
    values[present] = numbers.reshape(present.sum(), width)
    return values


def _floats(values: pa.ChunkedArray) -> Floats:
    return writable_array(pc.fill_null(values, np.nan), np.float64)
