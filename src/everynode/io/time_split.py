"""A split by time: train on the past, test on the future."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from everynode.errors import DataError, UsageError
from everynode.io.cells import Cells
from everynode.io.column_names import NONE, DateOrder
from everynode.io.dates import as_days, is_date
from everynode.io.parsing import as_numbers, is_text, likely_comma, possible_commas
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table

#: The share of the labels with the latest times that is the test part.
LATEST = 0.2


def check_one_split(split: str | None, split_by: str | None) -> None:
    """Refuse a column of parts together with a column of times."""
    if split_by is not None and split not in (None, NONE):
        raise UsageError(
            f"Column {split!r} names the parts, and {split_by!r} would divide by time. Give one of "
            "the two (--split or --split-by)."
        )


def split_by_time(
    table: Table, name: str, labels: Any, notes: Notes, *,
    na: Sequence[str] = (), date_order: DateOrder | None = None,
) -> list[tuple[Any, Any, Any]]:  # fmt: skip
    """Return masks for training, validation (empty) and test: the latest fifth of the labels.

    Nodes of one time stay together. Labeled nodes without a time train.
    """
    times, is_day = read_times(Cells(table, name, na, date_order))
    labeled = np.asarray(labels) >= 0
    dated = labeled & ~np.isnan(times)
    values = np.unique(times[dated])
    if len(values) < 2:
        many = "one time only" if len(values) else "no time"
        raise DataError(
            f"{table.column(name)} has {many} among the {int(labeled.sum())} labeled nodes. A "
            "split by time needs at least two: name another column, or leave --split-by out."
        )
    # The first time of the test part: as close to a fifth of the labels as ties allow.
    later = dated.sum() - np.searchsorted(np.sort(times[dated]), values[1:])
    first = values[1:][np.abs(later - LATEST * dated.sum()).argmin()]
    test = dated & (times >= first)
    train = labeled & ~test
    last = values[values < first][-1]
    notes.time_split = (
        f"{int(train.sum()):,} labels up to {_shown(last, is_day=is_day)} ({name}) train, and "
        f"{int(test.sum()):,} from {_shown(first, is_day=is_day)} on test"
    )
    undated = int((labeled & np.isnan(times)).sum())
    if undated:
        notes.warn(
            f"{counted(undated, 'labeled node')} of {table.where} without a time in {name!r}: they "
            "train.", undated,
        )  # fmt: skip
    return [(train, np.zeros_like(train), test)]


def read_times(cells: Cells) -> tuple[npt.NDArray[np.float64], bool]:
    """Return the times of a column as numbers, NaN where one is missing, and whether it has dates.

    A column of times holds dates or numbers, such as years. Anything else is refused.
    """
    values, advice = cells.values, "Name a column of times (split_by='...', or --split-by)."
    if cells.type == "date":
        return as_days(values), True
    if cells.type == "number":
        return as_numbers(values), False
    if cells.type != "text" or not is_text(values):
        raise DataError(f"{cells.where} holds {values.type}, not dates or numbers. {advice}")
    dates = np.asarray(is_date(cells.distinct).fill_null(False))
    if dates.any():
        order, ambiguous = cells.order
        if ambiguous:
            raise DataError(
                f"{cells.where} holds {ambiguous!r}: day or month first? Give the order "
                "(date_order='dmy' or 'mdy', or --date-order)."
            )
        times = as_days(values, order)
    else:
        times = as_numbers(values, likely_comma(possible_commas(values)))
    wrong = np.flatnonzero(np.isnan(times) & np.asarray(values.is_valid()))
    if len(wrong):
        raise DataError(
            f"{cells.table.row(wrong[0])}, column {cells.name!r} holds "
            f"{values[int(wrong[0])].as_py()!r}, which is neither a date nor a number "
            f"({counted(len(wrong), 'such row')}). {advice}"
        )
    return times, bool(dates.any())


def _shown(time: float, *, is_day: bool) -> str:
    if not is_day:
        return f"{time:g}"
    day = np.datetime64(0, "D") + np.timedelta64(int(np.floor(time)), "D")
    return str(day)
