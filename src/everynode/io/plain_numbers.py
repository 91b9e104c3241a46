"""Plain numbers: the numeric columns of a wide table, parsed and encoded many at a time.

One column at a time takes about 1 ms, however few its rows: 100,000 columns would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.io.cells import cell_type
from everynode.io.column_encoder import MAX_NUMBER, ColumnEncoder, standardize
from everynode.io.column_fitting import fit_scales, may_be_index
from everynode.io.column_names import MISSING_WORDS
from everynode.io.label_leakage import may_leak
from everynode.io.labels import Labels
from everynode.io.missing_values import numbers_in
from everynode.io.parsing import Floats
from everynode.io.summary import Notes
from everynode.io.tables import Table
from everynode.io.type_inference import Kind

Marks = npt.NDArray[np.bool_]
#: A number without unit, comma or leading zero: every parser reads it in the same way.
PLAIN = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"
#: Cells of one batch of columns, so that a batch takes some 100 MB at most.
MAX_CELLS = 2_000_000
#: Columns with longer cells, in bytes on average, hold no plain numbers.
MAX_BYTES = 40


class PlainColumns(NamedTuple):
    """Columns of plain numbers.

    Attributes
    ----------
    names : list of str
        The names of the columns.
    values : ndarray of shape (k, n)
        The numbers of each column, NaN where a value is missing.
    """

    names: list[str]
    values: Floats


def plain_columns(
    table: Table, names: Sequence[str], na: Sequence[str] = ()
) -> Iterator[PlainColumns]:
    """Yield the columns of plain numbers and missing values, in batches.

    Parameters
    ----------
    table
        The table.
    names
        The candidates.
    na
        Additional words for a missing value. With a number among them, no column is plain.
    """
    if len(numbers_in(na)):
        return
    size = max(1, MAX_CELLS // max(table.num_rows, 1))
    for start in range(0, len(names), size):
        by_type: dict[pa.DataType, list[str]] = {}
        for name in names[start : start + size]:
            column = table[name]
            is_short = column.nbytes <= MAX_BYTES * len(column)
            if is_short and cell_type(column) in ("text", "number", "boolean"):
                by_type.setdefault(column.type, []).append(name)
        for batch in by_type.values():
            yield _parse(table, batch, na)


def _parse(table: Table, names: list[str], na: Sequence[str]) -> PlainColumns:
    """Parse columns of one type; keep the columns of plain numbers and missing values."""
    cells = pa.concat_arrays([chunk for name in names for chunk in table[name].chunks])
    is_plain = np.ones(len(cells), dtype=bool)
    if pa.types.is_string(cells.type):
        cells = pc.utf8_trim_whitespace(cells)
        is_missing = pc.is_in(cells, value_set=pa.array([*MISSING_WORDS, *na, None], pa.string()))
        is_number = pc.fill_null(pc.match_substring_regex(cells, PLAIN), False)
        is_plain = np.asarray(pc.or_(is_missing, is_number))
        cells = pc.if_else(is_number, cells, pa.scalar(None, pa.string()))
    try:
        numbers = np.asarray(pc.fill_null(cells.cast(pa.float64(), safe=False), np.nan))
    except pa.ArrowInvalid:  # a number beyond float64
        return PlainColumns([], np.empty((0, table.num_rows)))
    values = numbers.reshape(len(names), -1)
    with np.errstate(invalid="ignore"):
        keep = is_plain.reshape(values.shape).all(1) & ~(np.abs(values) > MAX_NUMBER).any(1)
    return PlainColumns([names[i] for i in np.flatnonzero(keep)], values[keep])


class PlainBlock(NamedTuple):
    """The features of one column of a table.

    Attributes
    ----------
    features : array of float32
        The columns, n x d.
    num_missing : int
        Number of missing values.
    """

    features: npt.NDArray[np.float32]
    num_missing: int

    def take(self, column: ColumnEncoder, table: Table, notes: Notes) -> npt.NDArray[np.float32]:
        """Return the features, and note the missing values."""
        column.note_missing(self.num_missing, table.column(column.name), notes)
        return self.features


#: Blocks by the name of the column.
Blocks = dict[str, PlainBlock]


class FittedColumns(NamedTuple):
    """Encoders of columns of plain numbers, with the encoded features.

    Attributes
    ----------
    encoders : dict of str to ColumnEncoder
        The encoder of each column.
    blocks : dict of str to PlainBlock
        The features of each column that is not ignored.
    to_check : set of str
        Columns to check for label leakage. The others have none.
    """

    encoders: dict[str, ColumnEncoder]
    blocks: Blocks
    to_check: set[str]


def fit_plain_columns(
    table: Table, kinds: Mapping[str, Kind | None], labels: Labels, na: Sequence[str] = ()
) -> FittedColumns:
    """Fit and apply the encoders of all columns of plain numbers without a declared kind."""
    fitted = FittedColumns({}, {}, set())
    undeclared = [name for name, kind in kinds.items() if kind is None]
    for names, values in plain_columns(table, undeclared, na):
        encoders = _fit(table, names, values)
        fitted.encoders.update({encoder.name: encoder for encoder in encoders.values()})
        used = [i for i, encoder in encoders.items() if encoder.kind != "ignored"]
        kept = values[used]
        fitted.blocks.update(_encode([encoders[i] for i in used], kept))
        may = may_leak(kept, labels, num_columns=len(kinds))
        fitted.to_check.update(names[used[i]] for i in np.flatnonzero(may))
    return fitted


def encode_plain_columns(
    table: Table, columns: Sequence[ColumnEncoder], na: Sequence[str] = ()
) -> Blocks:
    """Return the features of columns of plain numbers, by name; other columns are left out."""
    by_name = {
        column.name: column
        for column in columns
        if column.kind in ("number", "boolean") and not column.comma and not column.unit
    }
    by_name = {name: column for name, column in by_name.items() if name in table.columns}
    blocks: Blocks = {}
    for names, values in plain_columns(table, list(by_name), na):
        encoders = [by_name[name] for name in names]
        is_boolean = np.array([encoder.kind == "boolean" for encoder in encoders], dtype=bool)
        used = np.flatnonzero(~is_boolean | _are_boolean(values))
        blocks.update(_encode([encoders[i] for i in used], values[used]))
    return blocks


def _fit(table: Table, names: list[str], values: Floats) -> dict[int, ColumnEncoder]:
    """Fit the encoders, as :func:`everynode.io.column_fitting.fit_column`; by place in ``names``.

    A column without an encoder has something special, and is left to that function.
    """
    missing: Marks = np.isnan(values)
    has_missing, is_empty = np.asarray(missing.any(1)), np.asarray(missing.all(1))
    is_constant = ~has_missing & np.asarray((values == values[:, :1]).all(1))
    is_boolean = _are_boolean(values)
    scales = fit_scales(np.where(has_missing[:, None], 0.0, values))
    encoders: dict[int, ColumnEncoder] = {}
    for i, name in enumerate(names):
        if is_empty[i]:
            encoders[i] = ColumnEncoder(name, "ignored", "empty")
        elif is_constant[i]:
            if len(pc.unique(table[name])) == 1:  # else 1 and 1.0
                value = str(table[name][0].as_py()).strip()[:30]
                encoders[i] = ColumnEncoder(name, "ignored", f"the same in every row ({value})")
        elif may_be_index(name, table):
            continue
        elif is_boolean[i]:
            encoders[i] = ColumnEncoder(name, "boolean", missing=bool(has_missing[i]))
        elif has_missing[i]:
            encoders[i] = fit_scales(values[i : i + 1, ~missing[i]]).encoder(name, 0, missing=True)
        else:
            encoders[i] = scales.encoder(name, i)
    return encoders


def _are_boolean(values: Floats) -> Marks:
    return np.asarray(((values == 0) | (values == 1) | np.isnan(values)).all(1))


def _encode(encoders: Sequence[ColumnEncoder], values: Floats) -> Blocks:
    """Encode the rows of ``values``, one for each encoder."""
    if not encoders:
        return {}
    log = np.array([encoder.log for encoder in encoders])
    values = np.where(log[:, None], np.log1p(np.maximum(values, 0)), values)
    center = np.array([encoder.center or (0.0,) for encoder in encoders])
    scale = np.array([encoder.scale or (1.0,) for encoder in encoders])
    features = standardize(values, center, scale)
    missing = np.isnan(values)
    counts, marks = missing.sum(1).tolist(), missing.astype(np.float32)
    blocks: Blocks = {}
    for i, encoder in enumerate(encoders):
        columns = [features[i], marks[i]] if encoder.missing else [features[i]]
        blocks[encoder.name] = PlainBlock(np.stack(columns, 1), counts[i])
    return blocks
