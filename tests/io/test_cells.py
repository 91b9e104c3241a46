"""The cells of a column: cleaned once, and derived values computed once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everynode.io import cells as module
from everynode.io.cells import Cells
from everynode.io.summary import Notes
from everynode.io.table_files import open_table


def make(values, na=()):
    return Cells(open_table({"x": values}, Notes()), "x", na)


def test_missing_words_are_null():
    cells = make([" a ", "NA", "?", None], na=["?"])
    assert cells.values.to_pylist() == ["a", None, None, None]
    assert cells.num_present == 1
    assert cells.where == "Column 'x' of the table of nodes"


def test_derived_values():
    cells = make(["€5", "€7", "€5", ""])
    assert cells.type == "text"
    assert cells.distinct.to_pylist() == ["€5", "€7"]
    assert cells.unit == "€"
    np.testing.assert_array_equal(cells.parse("number", unit="€")[:, 0], [5, 7, 5, np.nan])


def test_a_column_is_parsed_once(monkeypatch):
    calls = []
    parse = module.as_numbers
    monkeypatch.setattr(module, "as_numbers", lambda *args: calls.append(args) or parse(*args))
    cells = make(["1", "2"])
    assert cells.parse("number") is cells.parse("number")
    assert len(calls) == 1


def test_types():
    values = {
        "number": [1, 2],
        "boolean": [True, False],
        "vector": [[1.0], [2.0]],
        "date": pa.array([0, 1], pa.timestamp("s")),
        "other": [{"a": 1}, {"a": 2}],
    }
    assert {kind: make(cells).type for kind, cells in values.items()} == {k: k for k in values}
