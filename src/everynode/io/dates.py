"""Dates as text: 2020-12-31, 31.12.2020 or 12/31/2020, with or without a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.column_names import ORDERS, DateOrder

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
    r"[.,\d]*\s*(?P<half>[AaPp]\.?[Mm])?)?"
)
END = r"(?:[TZ\s,+].*)?$"
YEAR_FIRST = rf"^(?P<year>\d{{4}})[-/.](?P<first>\d{{1,2}})[-/.](?P<last>\d{{1,2}}){TIME}{END}"
#: With points, a two-digit year needs a two-digit day and month: 1.2.10 is a version.
YEAR_LAST = tuple(
    rf"^(?P<first>{number})(?P<sign>{sign})(?P<last>{number}){sign}\s?(?P<year>{year}){TIME}{END}"
    for number, sign, year in (
        (r"\d{1,2}", "[-/.]", r"\d{4}"),
        (r"\d{1,2}", "[-/]", r"\d\d"),
        (r"\d\d", r"\.", r"\d\d"),
    )
)
#: Two-digit years from this one upwards belong to the last century, as in POSIX.
LAST_CENTURY = 69
#: An order of dates fits if at least this share of the dates exists in the calendar.
FITS = 0.95


def is_date(cells: pa.ChunkedArray, patterns: Sequence[str] = (YEAR_FIRST, *YEAR_LAST)) -> Any:
    """Return where text looks like a date; null where a cell is missing."""
    plain = "|".join(re.sub(r"\?P<\w+>", "?:", pattern) for pattern in patterns)
    return pc.match_substring_regex(cells, plain)


def as_days(cells: pa.ChunkedArray, order: str = "") -> Floats:
    """Parse text or timestamps as days since 1970; everything else becomes NaN.

    Without an ``order``, a date in text starts with the year. Time zones are ignored.
    """
    if not pa.types.is_string(cells.type):
        return _days(cells.cast(pa.int64()))
    days = _parse(cells, YEAR_FIRST, "ymd")
    for pattern in YEAR_LAST if order else ():
        days = np.where(np.isnan(days), _parse(cells, pattern, order), days)
    return days


def order_of_dates(cells: pa.ChunkedArray, preferred: DateOrder | None = None) -> tuple[str, str]:
    """Return the order of dates that end with the year, and an example if it is ambiguous.

    The order is "" if all dates start with the year, or if no order fits nearly all of them.
    Points mean that the day comes first.

    >>> cells = pa.chunked_array([["12/31/2020", "01/05/2021"]])
    >>> order_of_dates(cells), order_of_dates(cells.slice(1))
    (('mdy', ''), ('', '01/05/2021'))
    """
    if not pa.types.is_string(cells.type):
        return "", ""
    cells = cells.filter(pc.fill_null(is_date(cells, YEAR_LAST), False))
    if not len(cells):
        return "", ""
    shares = {order: float((~np.isnan(as_days(cells, order))).mean()) for order in ORDERS}
    if preferred and shares[preferred] >= FITS:
        return preferred, ""
    best = max(shares, key=lambda order: shares[order])
    if shares[best] < FITS:
        return "", ""
    differ = np.flatnonzero(as_days(cells, "dmy") != as_days(cells, "mdy"))
    points = pc.match_substring(cells, ".")
    if shares["dmy"] != shares["mdy"] or not len(differ):
        return best, ""
    if 2 * (pc.sum(points).as_py() or 0) > len(cells):
        return "dmy", ""
    return "", str(cells[int(differ[0])].as_py())


def _parse(cells: Any, pattern: str, order: str) -> Floats:
    """Parse the dates of one pattern. ``order`` names its parts: "ymd", "dmy" or "mdy"."""
    parts = pc.extract_regex(cells, pattern)
    rows = np.flatnonzero(np.asarray(parts.is_valid()))
    result = np.full(len(cells), np.nan)
    if not len(rows):
        return result
    parts = parts.take(pa.array(rows))
    part = {name: pc.struct_field(parts, name) for name in re.findall(r"\?P<(\w+)>", pattern)}
    first, last, year = (_whole(part[name]) for name in ("first", "last", "year"))
    month, day = (last, first) if order == "dmy" else (first, last)
    is_short = np.asarray(pc.equal(pc.utf8_length(part["year"]), 2))
    year = np.where(is_short, year + np.where(year < LAST_CENTURY, 2000, 1900), year)
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
    months = np.where(exists, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    length = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(int)
    exists &= day <= length
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    hour, minute, second = (_whole(part[name]) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(pc.utf8_slice_codeunits(part["half"], 0, 1))
    is_am, is_pm = (np.asarray(pc.equal(half, letter)) for letter in "ap")
    hour = np.where(is_am | is_pm, hour % 12, hour) + 12 * is_pm
    result[rows] = np.where(exists, days + (hour * 3600 + minute * 60 + second) / 86400, np.nan)
    return result


def _whole(texts: Any) -> Ints:
    """Return whole numbers; a part that a date lacks is 0."""
    filled = pc.if_else(pc.equal(texts, ""), "0", texts)
    return np.asarray(filled.cast(pa.int64()))


def _days(seconds: pa.ChunkedArray) -> Floats:
    return np.array(pc.fill_null(seconds.cast(pa.float64()), np.nan), dtype=np.float64) / 86400
