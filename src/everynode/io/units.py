"""Units around numbers: €1,334.73, 334.73 EUR, 83 %. A column has one unit or none."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

#: Codes of currencies, in capitals. Every currency sign is recognized.
CODES = (
    *("AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP"),
    *("EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "ISK", "JPY", "KRW", "MXN", "MYR", "NGN"),
    *("NOK", "NZD", "PHP", "PKR", "PLN", "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD"),
    *("UAH", "USD", "VND", "ZAR"),
)
UNIT = rf"^(?:%|\p{{Sc}}|{'|'.join(CODES)})$"
#: The other characters of a number with a unit.
REST = r"[\d.,'’()+\-\s\p{Zs}]"
SPACE = r"[\s\p{Zs}]"
SIGN = r"[+-]?"
#: In a number with a unit, spaces or apostrophes may separate thousands too.
NUMBER = rf"(?:\d[\d.,]*|\.\d+|\d{{1,3}}(?:(?:{SPACE}|['’])\d{{3}})+(?:[.,]\d+)?)"


def count_units(cells: pa.ChunkedArray) -> dict[str, int]:
    """Count the units in text cells, the most frequent unit first."""
    with_digits = cells.filter(pc.match_substring_regex(cells, r"\d"))
    units = pc.replace_substring_regex(with_digits, REST, "")
    counts = pc.value_counts(units.filter(pc.match_substring_regex(units, UNIT))).to_pylist()
    ordered = sorted(counts, key=lambda count: (-count["counts"], count["values"]))
    return {count["values"]: count["counts"] for count in ordered}


def infer_unit(cells: pa.ChunkedArray) -> str:
    """Return the unit of more than half of the cells, or an empty string."""
    counts = count_units(cells) if pa.types.is_string(cells.type) else {}
    return next((unit for unit, count in counts.items() if 2 * count > len(cells)), "")


def is_currency(unit: str) -> bool:
    """Return whether a unit is a currency."""
    return unit not in ("", "%")


def strip_unit(cells: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """Remove the unit from numbers, and turn brackets around numbers into a minus sign.

    Cells that are not numbers with this unit stay unchanged.
    """
    if not pa.types.is_string(cells.type):
        return cells
    if not unit:
        if not pc.any(pc.starts_with(cells, "(")).as_py():
            return cells
        return pc.replace_substring_regex(cells, r"^\((\d[\d.,]*|\.\d+)\)$", r"-\1")
    u = re.escape(unit)
    before, after = [f"{u}{SPACE}*{SIGN}{NUMBER}"], f"{NUMBER}{SPACE}*{u}"
    around = [rf"\({NUMBER}\){SPACE}*{u}", rf"{u}{SPACE}*\({NUMBER}\)"]
    if unit == "%":
        before, around = [], around[:1]
    elif unit in CODES:  # USD1 may be an identifier; USD 1 and USD1.00 are not
        before = [f"{u}{SPACE}+{SIGN}{NUMBER}", rf"{u}{SIGN}\d+[.,]\d[\d.,]*"]
    signed = pc.match_substring_regex(cells, rf"^{SIGN}{SPACE}*(?:{'|'.join([*before, after])})$")
    brackets = pc.match_substring_regex(
        cells, rf"^(?:\((?:{'|'.join([*before, after, NUMBER])})\)|{'|'.join(around)})$"
    )
    number = pc.replace_substring_regex(cells, r"[^\d.,+-]", "")
    negative = pc.binary_join_element_wise("-", number, "")
    return pc.if_else(signed, number, pc.if_else(brackets, negative, cells))
