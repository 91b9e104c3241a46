"""Label leakage: feature columns that determine the label, or are filled only in labelled rows."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from everynode.io.cells import Cells
from everynode.io.column_encoder import ColumnEncoder
from everynode.io.labels import Labels
from everynode.io.summary import Leak, Notes

#: The minimum mean number of labelled rows per value.
MIN_OCCURRENCES = 5
#: Numbers and dates with more distinct values than this per class are not a code of the label.
MAX_VALUES_PER_CLASS = 10
#: The maximum number of value ranges per class in a number or date that determines the label.
RANGES_PER_CLASS = 2
#: The maximum expected number of columns that determine shuffled labels.
CHANCE = 0.01
#: A column nearly determines the label if it is right for this share of the labelled nodes,
#: and wrong for at most this share of the nodes outside the largest class.
NEARLY, ERROR_SHARE = 0.975, 0.1

Ints = npt.NDArray[np.int64]


def warn_of_label_leakage(
    cells: Cells, column: ColumnEncoder, labels: Labels, notes: Notes, *, num_columns: int
) -> None:
    """Warn if a column (nearly) determines the label, or is filled only in labelled rows.

    The test accounts for chance: with shuffled labels, the expected number of warnings among
    ``num_columns`` columns is below 0.01.
    """
    labelled = np.flatnonzero(labels.codes >= 0)
    if not len(labelled) or column.kind == "ignored":
        return
    where = f"column {cells.name!r} of {cells.table.where}"
    codes, present = labels.codes[labelled], np.asarray(cells.values.is_valid())
    errors = min(
        (
            wrong
            for values, places in _groupings(cells, column, labelled, present, codes)
            if (wrong := _errors(values, codes, num_columns, places)) is not None
        ),
        default=None,
    )
    kind: Literal["determines", "nearly", "filled"]
    if errors is not None:
        exactly = "determines the label of every labelled node"
        nearly = f"nearly determines the label: it is wrong for {errors} of {len(codes):,} nodes"
        kind = "nearly" if errors else "determines"
        text = f"Label leakage: {where} {nearly if errors else exactly}."
    elif _is_filled_beside_labels(present, labels.codes >= 0, num_columns):
        kind = "filled"
        text = f"Label leakage: {where} is filled only in rows that have a label."
    else:
        return
    flag = f"features='all,-{cells.name}', or --features"
    notes.warn(f"{text} Leave it out if it is not known before the label ({flag}).")
    notes.leaks.append(Leak(cells.name, kind))


def _groupings(
    cells: Cells,
    column: ColumnEncoder,
    labelled: Ints,
    present: npt.NDArray[np.bool_],
    codes: Ints,
) -> Any:
    """Yield groups of the labelled nodes by value, with the number of possible boundaries."""
    filled = present[labelled].astype(np.int64)
    if 0 < filled.sum() < len(filled):
        yield filled, 0
    if column.kind not in ("category", "number", "boolean", "date"):
        return
    if len(column.words) * MIN_OCCURRENCES > len(labelled):
        return
    encoded = cells.values.combine_chunks().dictionary_encode().indices.fill_null(-1)
    values = np.asarray(encoded)[labelled].astype(np.int64)
    num_values, num_classes = len(np.unique(values)), int(codes.max()) + 1
    limit = min(MAX_VALUES_PER_CLASS * num_classes, len(labelled) / MIN_OCCURRENCES)
    if num_values >= 2 and (column.kind == "category" or num_values <= limit):
        yield values, 0
    elif column.kind in ("number", "date"):
        yield _ranges(cells, column, labelled, codes)


def _ranges(cells: Cells, column: ColumnEncoder, labelled: Ints, codes: Ints) -> tuple[Ints, int]:
    """Return the ranges of a number or date that separate the classes best."""
    from sklearn.tree import DecisionTreeClassifier

    numbers = cells.parse(
        column.kind, unit=column.unit, comma=column.comma, order=column.date_order
    )[labelled]
    known = np.isfinite(numbers[:, 0])
    ranges = np.full(len(labelled), -1, np.int64)
    most = RANGES_PER_CLASS * (int(codes.max()) + 1)
    if known.any() and _may_separate(numbers[known, 0], codes[known], codes, most):
        tree = DecisionTreeClassifier(
            max_leaf_nodes=most, min_samples_leaf=MIN_OCCURRENCES, random_state=0
        )
        clipped = np.clip(numbers[known], -1e30, 1e30)
        ranges[known] = tree.fit(clipped, codes[known]).apply(clipped)
    return ranges, len(labelled)


def _may_separate(numbers: npt.NDArray[np.float64], known: Ints, codes: Ints, ranges: int) -> bool:
    """Return whether this many ranges may determine the label; only then a tree is fitted.

    In a column that separates the classes, sorted by value, the class changes between ranges only.
    Each error adds at most two changes.
    """
    ordered = known[np.lexsort((known, numbers))]
    changes = int((ordered[1:] != ordered[:-1]).sum())
    return changes < ranges + 2 * _most_errors(codes)


def _most_errors(codes: Ints) -> float:
    n = len(codes)
    return min((1 - NEARLY) * n, ERROR_SHARE * (n - np.bincount(codes).max()))


def _errors(values: Ints, codes: Ints, num_columns: int, places: int) -> int | None:
    """Return the errors of the majority class per value; None if many, or explained by chance."""
    classes, codes = np.unique(codes, return_inverse=True)
    groups, values = np.unique(values, return_inverse=True)
    num_values, num_classes, n = len(groups), len(classes), len(codes)
    if num_values < 2 or num_classes < 2:
        return None
    table = np.zeros((num_values, num_classes), np.int64)
    np.add.at(table, (values, codes), 1)
    sizes = table.sum(0)
    errors = int(n - table.max(1).sum())
    if errors and (errors > (1 - NEARLY) * n or errors > ERROR_SHARE * (n - sizes.max())):
        return None
    # Log of the expected number: each value picks a class, the errors and the ends of the ranges
    # pick their places, divided by the shuffles of the labels.
    log_shuffles = math.lgamma(n + 1) - sum(math.lgamma(size + 1) for size in sizes.tolist())
    log_expected = math.log(num_columns) + num_values * math.log(num_classes) - log_shuffles
    log_expected += _log_choose(n, errors) + errors * math.log(num_classes)
    log_expected += _log_choose(places, num_values) if places else 0.0
    return None if log_expected > math.log(CHANCE) else errors


def _is_filled_beside_labels(
    present: npt.NDArray[np.bool_], is_labelled: npt.NDArray[np.bool_], num_columns: int
) -> bool:
    """Whether every filled cell is in a labelled row, beyond chance."""
    filled = int(present.sum())
    if is_labelled.all() or filled < MIN_OCCURRENCES or present[~is_labelled].any():
        return False
    return math.log(num_columns) + filled * math.log(is_labelled.mean()) < math.log(CHANCE)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
