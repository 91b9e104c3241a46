"""Label leakage: feature columns that determine the label."""

from __future__ import annotations

import math

import numpy as np

from everynode.io.cells import Cells
from everynode.io.column_encoder import ColumnEncoder
from everynode.io.labels import Labels
from everynode.io.summary import Notes

#: On average, each value must occur this often with a label.
MIN_OCCURRENCES = 5
#: Numbers and dates with more distinct values than this per class are not a code of the label.
MAX_VALUES_PER_CLASS = 10
#: The maximum expected number of columns that determine shuffled labels.
CHANCE = 0.01


def warn_of_label_leakage(
    cells: Cells, column: ColumnEncoder, labels: Labels, notes: Notes, *, num_columns: int
) -> None:
    """Warn if a column determines the label of every labelled node.

    The column is tested against chance: of ``num_columns`` columns, fewer than 0.01 may be expected
    to determine shuffled labels.
    """
    labelled = np.flatnonzero(labels.codes >= 0)
    if column.kind not in ("category", "number", "boolean", "date"):
        return
    if len(column.words) * MIN_OCCURRENCES > len(labelled):
        return
    encoded = cells.values.combine_chunks().dictionary_encode().indices.fill_null(-1)
    values = np.asarray(encoded)[labelled].astype(np.int64)
    num_values, num_classes = len(np.unique(values)), len(labels.classes)
    limit = min(MAX_VALUES_PER_CLASS * num_classes, len(labelled) / MIN_OCCURRENCES)
    if num_values < 2 or (column.kind != "category" and num_values > limit):
        return
    # Log of the expected number: each value picks a class, divided by the shuffles of the labels.
    log_shuffles = math.lgamma(len(labelled) + 1) - sum(
        math.lgamma(count + 1) for count in labels.counts().values()
    )
    log_expected = math.log(num_columns) + num_values * math.log(num_classes) - log_shuffles
    if log_expected > math.log(CHANCE):
        return
    if num_values == len(np.unique(values * num_classes + labels.codes[labelled])):
        notes.warn(
            f"Label leakage: column {cells.name!r} of {cells.table.where} determines the label of "
            "every labelled node. Leave it out if it is not known before the label."
        )
