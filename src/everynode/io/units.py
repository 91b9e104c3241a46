"""Units around numbers: €1,334.73, 334.73 EUR, 83 %. One for a whole column, since numbers of two units cannot be compared."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

#: Currencies that are known by their code, in capitals; by a sign, all are.
CODES = (
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS",
    "INR", "ISK", "JPY", "KRW", "MXN", "MYR", "NGN", "NOK", "NZD", "PHP", "PKR", "PLN", "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TRY",
    "TWD", "UAH", "USD", "VND", "ZAR",
)  # fmt: skip
UNIT = rf"^(?:%|\p{{Sc}}|{'|'.join(CODES)})$"
#: What else there is in a number with a unit.
REST = r"[\d.,'’()+\-\s\p{Zs}]"
SPACE = r"[\s\p{Zs}]"
SIGN = r"[+-]?"
#: With a unit, thousands may have spaces or apostrophes between them too.
NUMBER = rf"(?:\d[\d.,]*|\.\d+|\d{{1,3}}(?:(?:{SPACE}|['’])\d{{3}})+(?:[.,]\d+)?)"


def units_of(cells: pa.ChunkedArray) -> dict[str, int]:
    """The units of text cells that may be numbers with one, and how many cells have each, the most frequent first."""
    left = pc.replace_substring_regex(
        cells.filter(pc.match_substring_regex(cells, r"\d")), REST, ""
    )
    counts = pc.value_counts(left.filter(pc.match_substring_regex(left, UNIT))).to_pylist()
    return {
        c["values"]: c["counts"] for c in sorted(counts, key=lambda c: (-c["counts"], c["values"]))
    }


def unit_of(cells: pa.ChunkedArray) -> str:
    """The unit of more than half of the cells; nothing if there is none."""
    counts = units_of(cells) if pa.types.is_string(cells.type) else {}
    return next((unit for unit, count in counts.items() if 2 * count > len(cells)), "")


def is_money(unit: str) -> bool:
    """Whether a unit is a currency."""
    return unit not in ("", "%")


def without_unit(cells: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """The cells, where a number with this unit is written without it, and one in brackets with a minus; others as they are."""
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
    elif unit in CODES:  # USD1 may be a code; USD 1 and USD1.00 are not
        before = [f"{u}{SPACE}+{SIGN}{NUMBER}", rf"{u}{SIGN}\d+[.,]\d[\d.,]*"]
    signed = pc.match_substring_regex(cells, rf"^{SIGN}{SPACE}*(?:{'|'.join([*before, after])})$")
    brackets = pc.match_substring_regex(
        cells, rf"^(?:\((?:{'|'.join([*before, after, NUMBER])})\)|{'|'.join(around)})$"
    )
    number = pc.replace_substring_regex(cells, r"[^\d.,+-]", "")
    return pc.if_else(
        signed, number, pc.if_else(brackets, pc.binary_join_element_wise("-", number, ""), cells)
    )
