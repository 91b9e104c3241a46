"""Cells as numbers, booleans and dates, and the meaning of commas."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from everynode.io.parsing import (
    as_booleans,
    as_numbers,
    likely_comma,
    possible_commas,
    resolve_comma,
)


def column(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


@pytest.mark.parametrize(
    ("cells", "possible", "likely"),
    [
        (("1.5", "2"), set(), ""),
        (("1,5", "2"), {"decimal"}, "decimal"),
        (("1,500", "2"), {"decimal", "thousands"}, "thousands"),
        (("1,500", "2,000,000"), {"thousands"}, "thousands"),
        (("1.500.000", "2.000"), {"decimal"}, "decimal"),
        (("1,5", "2,000,000"), set(), ""),
    ],
)
def test_the_possible_meanings_of_a_comma(cells, possible, likely):
    assert possible_commas(column(*cells)) == possible
    assert likely_comma(possible) == likely


def test_the_meaning_in_training_is_kept_if_it_fits():
    cells = column("1,500", "2,250")
    both = possible_commas(cells)
    assert resolve_comma(cells, both, "Column 'x'", training="decimal") == "decimal"
    assert resolve_comma(cells, both, "Column 'x'", training="thousands") == "thousands"
    other = column("1,5")
    assert resolve_comma(other, possible_commas(other), "Column 'x'", training="thousands") == (
        "decimal"
    )


@pytest.mark.parametrize(
    ("comma", "expected"),
    [("", [1.5, np.nan, -3, np.inf]), ("decimal", [1.5, 1.5, -3, np.inf])],
)
def test_text_that_is_not_a_number_is_nan(comma, expected):
    np.testing.assert_array_equal(as_numbers(column("1.5", "1,5", "-3", "inf"), comma), expected)


def test_booleans():
    np.testing.assert_array_equal(
        as_booleans(column("Yes", "f", "1.0", "maybe", None)), [1, 0, 1, np.nan, np.nan]
    )
