"""Tables: messages name their rows and columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from everynode.errors import DataError
from everynode.io.tables import make_table, where_true, writable_array


def table(**columns):
    rows = len(next(iter(columns.values())))
    return make_table("people.csv", columns.items(), "", "row", range(2, 2 + rows))


def test_rows_are_named_as_a_spreadsheet_counts_them():
    people = table(id=list("abcdef"))
    assert people.row(0) == "people.csv, row 2"
    assert people.rows(np.array([1])) == "row 3"
    assert people.rows(np.arange(5)) == "rows 2, 3, 4 and 2 more"


def test_an_unknown_column_lists_the_columns():
    with pytest.raises(DataError, match=r"people\.csv has no column 'aeg' \(did you mean 'age'"):
        table(id=[1], age=[2])["aeg"]
    with pytest.raises(DataError, match=r"Its only column: id;age. If it should have more"):
        table(**{"id;age": [1]})["age"]


def test_all_text_types_become_one():
    people = table(
        large=pa.array(["a"], pa.large_string()),
        coded=pa.array(["a"]).dictionary_encode(),
        mixed=[1],
    )
    assert [str(column.type) for column in people.columns.values()] == ["string", "string", "int64"]
    assert table(x=[1, "a"])["x"].to_pylist() == ["1", "a"]


def test_empty_tables_and_repeated_names_are_refused():
    with pytest.raises(DataError, match=r"people\.csv is empty"):
        table(id=[])
    with pytest.raises(DataError, match="two columns named 'x'"):
        make_table("people.csv", [("x", [1]), ("x", [2])], "", "row", range(2, 3))


def test_null_is_false_and_arrays_are_writable():
    assert where_true(pa.chunked_array([[True, None, False, True]])).tolist() == [0, 3]
    values = writable_array(pa.chunked_array([[1, 2]]), np.int64)
    values[0] = 5
    assert values.tolist() == [5, 2]
