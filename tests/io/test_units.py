"""Units around numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everynode.io.units import count_units, infer_unit, is_currency, strip_unit


def column(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


def test_units_are_counted_the_most_frequent_first():
    assert count_units(column("€5", "7 €", "$3", "word", None)) == {"€": 2, "$": 1}


@pytest.mark.parametrize(
    ("cells", "unit"),
    [(("€5", "7 €", "3"), "€"), (("€5", "7", "3"), ""), (("5 %", "7%"), "%"), (("5 eur",), "")],
)
def test_a_column_has_the_unit_of_more_than_half_of_its_cells(cells, unit):
    assert infer_unit(column(*cells)) == unit


def test_only_percent_is_no_currency():
    assert [is_currency(unit) for unit in ("€", "CHF", "%", "")] == [True, True, False, False]


def test_other_cells_stay_unchanged():
    cells = column("€5", "(€5)", "$5", "about €5", None)
    assert strip_unit(cells, "€").to_pylist() == ["5", "-5", "$5", "about €5", None]
    assert strip_unit(column("(5)", "5"), "").to_pylist() == ["-5", "5"]
