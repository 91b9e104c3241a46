"""Tables that grow record by record."""

from __future__ import annotations

import pytest

from everynode.errors import DataError
from everynode.io import records
from everynode.io.records import Records


def test_records_may_lack_columns_and_bring_new_ones():
    table = Records()
    for values in ({"a": 1}, {"b": 2}, {"a": 3, "c": 4}):
        table.add(values)
    expected = [("a", [1, None, 3]), ("b", [None, 2, None]), ("c", [None, None, 4])]
    assert table.columns("g.json") == expected
    assert list(table.numbers) == [1, 2, 3]


def test_places_name_the_line():
    table = Records()
    table.add({"a": 1}, line=7)
    table.add({"a": 1}, line=9)
    assert table.numbers[1] == "2 (line 9)"
    assert table.numbers[0:2] == ["1 (line 7)", "2 (line 9)"]


def test_a_table_out_of_proportion_to_its_file_is_refused(monkeypatch):
    monkeypatch.setattr(records, "SPARSE_CELLS", 10_000)
    table = Records()
    for number in range(1000):
        table.add({f"name {number}": 1})
    with pytest.raises(DataError, match=r"g.json has 1,000 records with 1,000 different names"):
        table.columns("g.json")
