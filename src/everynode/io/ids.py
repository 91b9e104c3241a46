"""Node ids: text or whole numbers, unique per node, and their positions.

Ids are compared as text without surrounding spaces: "007" and "7" are two nodes. Edge ends without
a match are compared by value, because programs write 7 as 7.0, 100000 as 1e+05, or drop leading
zeros. They match if exactly one node has this value. Other spellings of a number are names: "1.10"
is not "1.1", and "1e1" is not "10".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.parsing import Floats, as_numbers, is_text
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, where_true, writable_array

Ints = npt.NDArray[np.int64]
#: Whole numbers in their canonical spelling.
PLAIN_INTEGER = r"^(0|-?[1-9]\d{0,17})$"
#: Whole numbers as programs rewrite them: decimals of zero, lost leading zeros, or R's exponents.
REWRITTEN_INTEGER = r"^[+-]?\d+(\.0+)?$|^[1-9](\.\d+)?e\+\d\d$"
ID_RULE = "Ids are text or whole numbers"


def read_ids(table: Table, name: str) -> pa.ChunkedArray:
    """Read a column of ids as text. An empty id is refused."""
    column = table[name]
    kind = column.type
    if is_text(column):
        column = pc.utf8_trim_whitespace(column)
    elif pa.types.is_floating(kind):
        column = as_integers(column, table, name, ID_RULE)
    try:
        column = column.cast(pa.string())
    except pa.ArrowException:
        raise DataError(f"{table.where}, column {name!r} holds {kind}. {ID_RULE}.") from None
    empty = where_true(pc.or_kleene(pc.is_null(column), pc.equal(column, "")))
    if len(empty):
        raise DataError(
            f"{table.row(empty[0])}, column {name!r} is empty "
            f"({counted(len(empty), 'such row')}). Fill in an id, or name another column "
            "(--id for nodes, --source and --target for edges)."
        )
    return column


def as_integers(column: pa.ChunkedArray, table: Table, name: str, rule: str) -> pa.ChunkedArray:
    """Convert floats back to whole numbers: pandas stores integers with missing values as floats.

    ``rule`` explains to the user why other numbers are refused.
    """
    # From here on, several whole numbers share one float.
    exact = 2.0 ** (np.finfo(column.type.to_pandas_dtype()).nmant + 1)
    column = column.cast(pa.float64())
    fractions = where_true(pc.or_(pc.not_equal(column, pc.floor(column)), pc.is_inf(column)))
    if len(fractions):
        number = column[int(fractions[0])].as_py()
        raise DataError(f"{table.row(fractions[0])}, column {name!r} holds {number}. {rule}.")
    large = where_true(pc.greater_equal(pc.abs(column), exact))
    if len(large):
        raise DataError(
            f"{table.row(large[0])}, column {name!r} holds {column[int(large[0])].as_py():.0f} "
            f"({counted(len(large), 'such row')}). Stored as floats, these whole numbers lost "
            "digits. Save them as text or as whole numbers."
        )
    return column.cast(pa.int64())


def natural_values(text: pa.ChunkedArray) -> list[Any]:
    """Convert text to Python integers if every value is a plain one, else to strings."""
    if pc.all(pc.match_substring_regex(text, PLAIN_INTEGER)).as_py():
        return text.cast(pa.int64()).to_pylist()
    return text.to_pylist()


def check_unique(ids: pa.ChunkedArray, table: Table, name: str) -> None:
    """Refuse an id that occurs in two rows."""
    encoded = ids.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) == len(ids):
        return
    codes = np.asarray(encoded.indices)
    repeated = int(np.flatnonzero(codes != np.arange(len(codes)))[0])
    first = int(np.flatnonzero(codes == codes[repeated])[0])
    raise DataError(
        f"{table.row(repeated)}, column {name!r}: id {ids[repeated].as_py()!r} appears twice "
        f"(first in {table.unit} {table.numbers[first]}; "
        f"{counted(len(ids) - len(encoded.dictionary), 'such row')}), with other values. Keep one "
        "row per node, or name another id column (id='...', or --id)."
    )


def find_positions(
    ends: pa.ChunkedArray, ids: pa.ChunkedArray, table: Table, name: str, notes: Notes
) -> Ints:
    """Return the position of each edge end among the ids, -1 for an unknown node."""
    positions = index_in(ends, ids)
    unmatched = np.flatnonzero(positions < 0)
    if not len(unmatched):
        return positions
    unmatched_ends = ends.take(pa.array(unmatched))
    distinct = pc.unique(unmatched_ends)
    by_value = _match_values(_rewritten_numbers(distinct), _rewritten_numbers(ids))
    positions[unmatched] = by_value[index_in(unmatched_ends, distinct)]
    matched = unmatched[positions[unmatched] >= 0]
    if len(matched):
        example = int(matched[0])
        spelling, node = ends[example].as_py(), ids[int(positions[example])].as_py()
        notes.repair(
            f"{counted(len(matched), 'id')} in column {name!r} of {table.where} matched by value: "
            f"the spelling differs ({spelling!r} for {node!r}, "
            f"{table.unit} {table.numbers[example]}).",
            len(matched),
        )
    return positions


def index_in(values: pa.ChunkedArray, among: Any) -> Ints:
    """Return the position of each value among others, -1 if absent."""
    among = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    return writable_array(pc.fill_null(pc.index_in(values, value_set=among), -1), np.int64)


def _rewritten_numbers(text: Any) -> Floats:
    """Return the values of ids that a program may have rewritten, NaN for others."""
    is_integer = pc.match_substring_regex(text, REWRITTEN_INTEGER)
    return as_numbers(pc.if_else(is_integer, text, pa.scalar(None, pa.string())))


def _match_values(values: Floats, ids: Floats) -> Ints:
    """Return the position of the only id equal to each number, -1 without one or with several."""
    distinct, first, count = np.unique(ids, return_index=True, return_counts=True)
    if not len(distinct):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    is_match = (distinct[place] == values) & (count[place] == 1) & (np.abs(values) < 2**53)
    return np.where(is_match, first[place], -1)
