"""Numbers as text: a real minus sign, no negative zero, a dash for no number."""

from __future__ import annotations

import math

import pytest

from everynode.report.text import DASH, decimals, interval, number, percent, significant


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_no_number_is_a_dash(value):
    assert number(value) == significant(value) == DASH


def test_zero_has_no_sign_and_a_minus_is_a_minus_sign():
    assert number(-0.0001, 2, sign=True) == "0.00"
    assert number(-1234.5, 1) == "−1,234.5"
    assert percent(-0.5) == "−50.0%"
    assert interval(-1.0, math.nan) == ""


def test_the_longest_number_decides_the_decimals():
    assert decimals([78.2, 77.08, None]) == 2
    assert decimals([]) == 0
