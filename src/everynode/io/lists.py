"""Lists in a cell: "a;b;c", "a|b|c", JSON lists such as ["a", "b"], and Arrow's lists."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

Ints = npt.NDArray[np.int64]

#: Joins the elements of a list in one cell of text. It does not occur in ordinary files.
JOINER = "\x1f"
#: The signs between the elements of a list in text, the most reliable first.
SEPARATORS = (JOINER, "|", ";")
#: A column declared as lists may also have commas.
DECLARED_SEPARATORS = (*SEPARATORS, ",")
#: At least this share of the cells of a list column have several elements.
SEVERAL = 0.05
#: In a list column, an element occurs at least this often on average.
REPEATED = 2.0
#: Longer elements are phrases of a text.
LONGEST = 60
#: A list column has features for this many of its most frequent elements.
MAX_ELEMENTS = 1000


class Elements(NamedTuple):
    """The elements of all cells.

    Attributes
    ----------
    rows : array of int
        The row of each element.
    words : pyarrow.Array
        The elements as text.
    """

    rows: Ints
    words: pa.Array


def split(cells: pa.ChunkedArray, separator: str) -> Elements:
    """Return the elements of cells, which are text or lists, without surrounding spaces."""
    if pa.types.is_string(cells.type):
        cells = pc.split_pattern(cells, separator or JOINER)
    values = cells.combine_chunks()
    rows = np.asarray(pc.list_parent_indices(values)).astype(np.int64)
    words = pc.utf8_trim_whitespace(pc.list_flatten(values).cast(pa.string()))
    present = pc.fill_null(pc.not_equal(words, ""), False)
    return Elements(rows[np.asarray(present)], words.filter(present))


def find_separator(cells: pa.ChunkedArray, *, declared: bool = False) -> str:
    """Return the sign between the elements if the cells are lists, else an empty string.

    Text with such a sign is a list if its elements are short and repeat.
    """
    for separator in DECLARED_SEPARATORS if declared else SEPARATORS:
        share = pc.mean(pc.match_substring(cells, separator)).as_py() or 0.0
        enough = share > 0 if declared or separator == JOINER else share >= SEVERAL
        if enough and (declared or _are_elements(split(cells, separator).words, separator)):
            return separator
    return ""


def _are_elements(words: pa.Array, separator: str) -> bool:
    """Return whether the parts of text are short and repeat; lists of many words are texts."""
    distinct = pc.unique(words)
    is_short = (pc.max(pc.utf8_length(distinct)).as_py() or 0) <= LONGEST
    is_text = separator == JOINER and len(distinct) > MAX_ELEMENTS
    return is_short and not is_text and len(words) >= REPEATED * len(distinct)


def frequent_elements(cells: pa.ChunkedArray, separator: str) -> tuple[str, ...]:
    """Return the most frequent elements that are in two cells or more, in alphabetical order."""
    counts = pc.value_counts(split(cells, separator).words).to_pylist()
    ordered = sorted(counts, key=lambda count: (-count["counts"], count["values"]))
    return tuple(sorted(c["values"] for c in ordered[:MAX_ELEMENTS] if c["counts"] > 1))


def multi_hot(cells: pa.ChunkedArray, separator: str, words: Sequence[str]) -> Any:
    """Encode each cell with a 1 for each of its elements that is among the words."""
    if pa.types.is_string(cells.type) and pc.any(pc.match_substring(cells, JOINER)).as_py():
        separator = JOINER  # the training file wrote its lists in another way
    rows, elements = split(cells, separator)
    codes = pc.fill_null(pc.index_in(elements, value_set=pa.array(words, pa.string())), -1)
    columns = np.asarray(codes).astype(np.int64)
    is_known = columns >= 0
    places = np.unique(np.stack([columns[is_known], rows[is_known]]), axis=1)
    return scipy.sparse.csc_array(
        (np.ones(places.shape[1], np.float32), (places[1], places[0])),
        shape=(len(cells), len(words)),
    )


def parse_lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse a text column of JSON or Python lists; return any other column unchanged.

    The elements of one column are all words or all numbers.
    """
    present = column.drop_null()
    opened = pc.and_(pc.starts_with(present, "["), pc.ends_with(present, "]"))
    if not len(present) or not pc.all(opened).as_py():
        return column
    rows: list[Any] = []
    for text in column.to_pylist():
        row = None if text is None else _parse_list(text)
        if row is None and text is not None:
            return column
        rows.append(row)
    try:
        return pa.chunked_array([pa.array(rows)])
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # mixed elements
        words = [None if row is None else [_word(item) for item in row] for row in rows]
        return pa.chunked_array([pa.array(words, pa.list_(pa.string()))])


def _parse_list(text: str) -> list[Any] | None:
    for parse in (json.loads, ast.literal_eval):  # pandas writes lists as Python literals
        try:
            row = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return row if isinstance(row, list) and not any(map(_is_nested, row)) else None
    return None


def _is_nested(item: object) -> bool:
    return isinstance(item, list | dict | tuple | set)


def _word(item: object) -> str | None:
    return None if item is None else str(item)
