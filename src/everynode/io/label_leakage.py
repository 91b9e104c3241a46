"""Label leakage: feature columns that determine the label, or are filled only in labeled rows."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from everynode.io.cells import Cells
from everynode.io.column_encoder import ColumnEncoder
from everynode.io.labels import Labels
from everynode.io.summary import Leak, Notes

#: The minimum mean number of labeled rows per value.
MIN_OCCURRENCES = 5
#: Numbers and dates with more distinct values than this per class are not a code of the label.
MAX_VALUES_PER_CLASS = 10
#: The maximum number of value ranges per class in a number or date that determines the label.
RANGES_PER_CLASS = 2
#: The maximum expected number of columns that determine shuffled labels.
CHANCE = 0.01
#: A column nearly determines the label if it is right for this share of the labeled nodes,
#: and wrong for at most this share of the nodes outside the largest class.
NEARLY, ERROR_SHARE = 0.975, 0.1

Ints = npt.NDArray[np.int64]


def warn_of_label_leakage(
    cells: Cells, column: ColumnEncoder, labels: Labels, notes: Notes, *, num_columns: int
) -> None:
    """Warn if a column (nearly) determines the label, or is filled only in labeled rows.

    The test accounts for chance: with shuffled labels, the expected number of warnings among
    ``num_columns`` columns is below 0.01.
    """
    labeled = np.flatnonzero(labels.codes >= 0)
    if not len(labeled) or column.kind == "ignored":
        return
    where = f"column {cells.name!r} of {cells.table.where}"
    codes, present = labels.codes[labeled], np.asarray(cells.values.is_valid())
    errors = min(
        (
            wrong
            for values, places in _groupings(cells, column, labeled, present, codes)
            if (wrong := _errors(values, codes, num_columns, places)) is not None
        ),
        default=None,
    )
    kind: Literal["determines", "nearly", "filled"]
    if errors is not None:
        exactly = "determines the label of every labeled node"
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


def may_leak(
    values: npt.NDArray[np.float64], labels: Labels, *, num_columns: int
) -> npt.NDArray[np.bool_]:
    """Return which columns of numbers (k x n, NaN if missing) to check for label leakage.

    The others pass :func:`warn_of_label_leakage`, which takes much longer: a number leaks only if
    few labels differ from those of the neighbors in the order of its values.
    """
    is_labeled = labels.codes >= 0
    missing, codes = np.isnan(values), labels.codes[is_labeled]
    has_missing, sizes = np.asarray(missing.any(1)), np.bincount(codes)
    n, num_classes = len(codes), np.count_nonzero(sizes)
    may: npt.NDArray[np.bool_] = (
        has_missing & missing[:, ~is_labeled].all(1) & (0 < n < len(is_labeled))
    )
    least = math.log(num_columns) + 2 * math.log(num_classes or 1) - _log_shuffles(sizes)
    if num_classes < 2 or least > math.log(CHANCE):
        return may
    most, limit = _most_errors(codes), _most_values(codes)
    filled = ~missing[np.ix_(has_missing, is_labeled)]
    may[has_missing] |= _count_errors(filled.astype(np.int64), codes) <= most
    numbers = np.where(missing, np.inf, values)[:, is_labeled]
    order = np.lexsort((np.broadcast_to(codes, numbers.shape), numbers), axis=1)
    ordered, numbers = codes[order], np.take_along_axis(numbers, order, 1)
    groups = np.cumsum(numbers[:, 1:] != numbers[:, :-1], axis=1)
    is_few = groups[:, -1] < limit
    changes = (ordered[:, 1:] != ordered[:, :-1]).sum(1)
    # Missing values form one more range, with errors inside it too.
    may |= ~is_few & (changes < RANGES_PER_CLASS * len(sizes) + 3 * most + 2)
    groups = np.concatenate([np.zeros((is_few.sum(), 1), np.int64), groups[is_few]], 1)
    may[is_few] |= _count_errors(groups, ordered[is_few]) <= most
    return may


def _groupings(
    cells: Cells,
    column: ColumnEncoder,
    labeled: Ints,
    present: npt.NDArray[np.bool_],
    codes: Ints,
) -> Any:
    """Yield groups of the labeled nodes by value, with the number of possible boundaries."""
    filled = present[labeled].astype(np.int64)
    if 0 < filled.sum() < len(filled):
        yield filled, 0
    if column.kind not in ("category", "number", "boolean", "date"):
        return
    if len(column.words) * MIN_OCCURRENCES > len(labeled):
        return
    encoded = cells.values.combine_chunks().dictionary_encode().indices.fill_null(-1)
    values = np.asarray(encoded)[labeled].astype(np.int64)
    num_values = len(np.unique(values))
    if num_values >= 2 and (column.kind == "category" or num_values <= _most_values(codes)):
        yield values, 0
    elif column.kind in ("number", "date"):
        yield _ranges(cells, column, labeled, codes)


def _ranges(cells: Cells, column: ColumnEncoder, labeled: Ints, codes: Ints) -> tuple[Ints, int]:
    """Return the ranges of a number or date that separate the classes best."""
    from sklearn.tree import DecisionTreeClassifier

    numbers = cells.parse(
        column.kind, unit=column.unit, comma=column.comma, order=column.date_order
    )[labeled]
    known = np.isfinite(numbers[:, 0])
    ranges = np.full(len(labeled), -1, np.int64)
    most = RANGES_PER_CLASS * (int(codes.max()) + 1)
    if known.any() and _may_separate(numbers[known, 0], codes[known], codes, most):
        tree = DecisionTreeClassifier(
            max_leaf_nodes=most, min_samples_leaf=MIN_OCCURRENCES, random_state=0
        )
        clipped = np.clip(numbers[known], -1e30, 1e30)
        ranges[known] = tree.fit(clipped, codes[known]).apply(clipped)
    return ranges, len(labeled)


def _may_separate(numbers: npt.NDArray[np.float64], known: Ints, codes: Ints, ranges: int) -> bool:
    """Return whether this many ranges may determine the label; only then a tree is fitted.

    In a column that separates the classes, sorted by value, the class changes between ranges only.
    Each error adds at most two changes. And a range stands for one class: with many small classes,
    a tree would take memory for ranges times classes, to no avail.
    """
    most_ranges = min(ranges, len(numbers) // MIN_OCCURRENCES) + 1  # one for missing values
    if np.sort(np.bincount(codes))[:-most_ranges].sum() > _most_errors(codes):
        return False
    ordered = known[np.lexsort((known, numbers))]
    changes = int((ordered[1:] != ordered[:-1]).sum())
    return changes < ranges + 2 * _most_errors(codes)


def _most_values(codes: Ints) -> float:
    """Return how many distinct numbers may be a code of the label."""
    return min(MAX_VALUES_PER_CLASS * (int(codes.max()) + 1), len(codes) / MIN_OCCURRENCES)


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
    sizes = np.bincount(codes)
    errors = int(_count_errors(values[None], codes)[0])
    if errors and (errors > (1 - NEARLY) * n or errors > ERROR_SHARE * (n - sizes.max())):
        return None
    # Log of the expected number: each value picks a class, the errors and the ends of the ranges
    # pick their places, divided by the shuffles of the labels.
    log_expected = math.log(num_columns) + num_values * math.log(num_classes) - _log_shuffles(sizes)
    log_expected += _log_choose(n, errors) + errors * math.log(num_classes)
    log_expected += _log_choose(places, num_values) if places else 0.0
    return None if log_expected > math.log(CHANCE) else errors


def _count_errors(groups: Ints, codes: Ints) -> Ints:
    """Return the nodes outside the majority class of their group, for each row of ``groups``.

    Memory is proportional to ``groups``: a table of groups and classes may be much larger.
    """
    if not len(groups):
        return np.empty(0, np.int64)
    rows, width, num_classes = len(groups), groups.max() + 1, codes.max() + 1
    places = (np.arange(rows)[:, None] * width + groups) * num_classes + codes
    cells, counts = np.unique(places, return_counts=True)
    owners = cells // num_classes
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    largest = np.maximum.reduceat(counts, starts)
    right = np.bincount(owners[starts] // width, largest, rows).astype(np.int64)
    return groups.shape[1] - right


def _is_filled_beside_labels(
    present: npt.NDArray[np.bool_], is_labeled: npt.NDArray[np.bool_], num_columns: int
) -> bool:
    """Whether every filled cell is in a labeled row, beyond chance."""
    filled = int(present.sum())
    if is_labeled.all() or filled < MIN_OCCURRENCES or present[~is_labeled].any():
        return False
    return math.log(num_columns) + filled * math.log(is_labeled.mean()) < math.log(CHANCE)


def _log_shuffles(sizes: Ints) -> float:
    """Return the log of the number of distinct orders of labels, from the sizes of the classes."""
    return math.lgamma(sizes.sum() + 1) - sum(math.lgamma(size + 1) for size in sizes.tolist())


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
