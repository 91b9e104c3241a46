"""Fit the encoder of a column: its type, scale, categories or vocabulary."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError, unknown
from everynode.io.cells import Cells
from everynode.io.column_encoder import SHOWN, ColumnEncoder, as_words, check_type, parse
from everynode.io.column_names import CLASH_SUFFIX
from everynode.io.lists import find_separator, frequent_elements
from everynode.io.missing_values import MIN_SHARE
from everynode.io.parsing import Floats, as_numbers, resolve_comma
from everynode.io.summary import counted
from everynode.io.tables import Table, is_unnamed
from everynode.io.type_inference import KINDS, Kind, infer_kind, two_units

#: A column with at least this share of zeros is scaled but not centered, and stays sparse.
SPARSE_SHARE = 0.5
#: Non-negative numbers further than this many standard deviations from the mean are logged.
MAX_DEVIATIONS = 10.0
#: In a column with at least this many cells, one cell that cannot be parsed counts as a typo.
MIN_CELLS_FOR_SLIP = 10
#: How to write the cells of these kinds.
EXAMPLES = {"number": "as in 1234.5", "date": "as in 2020-12-31", "boolean": "as yes or no"}
#: A category column has features for this many of its most frequent values.
MAX_CATEGORIES = 100
#: A text column has features for this many of its most frequent words.
MAX_VOCABULARY = 2000
#: With at least this many documents, very rare and very common words are left out.
MIN_DOCUMENTS = 10


def fit_column(cells: Cells, kind: Kind | None = None) -> ColumnEncoder:
    """Fit the encoder of a column. Without ``kind``, infer the type from the cells."""
    name = cells.name
    if kind is not None and kind not in KINDS:
        unknown(f"kind for column {name!r}", kind, KINDS)
    is_declared, reason = kind is not None, ""
    if kind is None:
        kind, reason = infer_kind(cells)
        if kind in ("number", "boolean") and may_be_index(name, cells.table) and _is_index(cells):
            kind, reason = "ignored", "a row number"  # in a sorted table it leaks the label
    if kind == "ignored":
        return ColumnEncoder(name, kind, "as requested" if is_declared else reason)
    check_type(cells, kind)
    if kind == "category":
        return _fit_category(cells, reason)
    if kind == "text":
        return _fit_text(cells, reason)
    if kind == "list":
        return _fit_list(cells, reason, is_declared)
    unit = cells.unit if kind == "number" else ""
    comma = ""
    if kind == "number":
        plain, possible = cells.without_unit(unit), cells.possible_commas(unit)
        comma = resolve_comma(plain, possible, cells.where, unit=unit)
    if kind == "boolean" and not is_declared:
        return ColumnEncoder(name, kind, missing=cells.values.null_count > 0)
    order = _date_order(cells) if kind == "date" else ""
    values = parse(cells, kind, unit=unit, comma=comma, order=order)
    if is_declared and kind in EXAMPLES:
        _check_declared(cells, kind, values)
    if kind == "boolean":
        return ColumnEncoder(name, kind, missing=cells.values.null_count > 0)
    return replace(_fit_scale(cells, kind, values, unit, comma), date_order=order)


def _date_order(cells: Cells) -> str:
    """Return the order of the dates; refuse an ambiguous order."""
    order, ambiguous = cells.order
    if ambiguous:
        raise DataError(
            f"{cells.where} holds {ambiguous}, where the day or the month may come first. Give the "
            "order (date_order='dmy' or 'mdy', or --date-order)."
        )
    return order


def _fit_list(cells: Cells, reason: str, is_declared: bool) -> ColumnEncoder:
    is_text = cells.type == "text"
    separator = find_separator(cells.values, declared=is_declared) if is_text else ""
    words = frequent_elements(cells.values, separator)
    if not words:
        return ColumnEncoder(cells.name, "ignored", "no element occurs in several rows")
    missing = cells.values.null_count > 0
    return ColumnEncoder(
        cells.name, "list", reason, words=words, separator=separator, missing=missing
    )


def _fit_scale(cells: Cells, kind: Kind, values: Floats, unit: str, comma: str) -> ColumnEncoder:
    missing = np.isnan(values).any(1)
    if missing.all():
        reason = "all values are equal" if cells.num_present else "empty"
        return ColumnEncoder(cells.name, "ignored", reason)
    scales = fit_scales(values[~missing].T, is_number=kind == "number")
    has_missing = bool(missing.any())
    if kind == "vector":
        return scales.vector_encoder(cells.name, missing=has_missing)
    encoder = scales.encoder(cells.name, 0, missing=has_missing)
    return (
        encoder
        if encoder.kind == "ignored"
        else replace(encoder, kind=kind, unit=unit, comma=comma)
    )


class Scales(NamedTuple):
    """How numbers are scaled.

    Attributes
    ----------
    log : ndarray of shape (k,)
        Whether ``log(1 + value)`` is applied first.
    center, scale : ndarray of shape (k,)
        Numbers are encoded as ``(value - center) / scale``.
    """

    log: npt.NDArray[np.bool_]
    center: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    def encoder(self, name: str, i: int, *, missing: bool = False) -> ColumnEncoder:
        """Return the encoder of a column of numbers."""
        if not self.scale[i] > 0:
            return ColumnEncoder(name, "ignored", "all values are equal")
        center, scale = float(self.center[i]), float(self.scale[i])
        return ColumnEncoder(
            name, "number", "", (center,), (scale,), log=bool(self.log[i]), missing=missing
        )

    def vector_encoder(self, name: str, *, missing: bool) -> ColumnEncoder:
        """Return the encoder of a column of vectors, with one scale for each element."""
        if not (self.scale > 0).any():
            return ColumnEncoder(name, "ignored", "all values are equal")
        scale = np.where(self.scale == 0, 1.0, self.scale).tolist()
        center = tuple(self.center.tolist())
        return ColumnEncoder(name, "vector", "", center, tuple(scale), missing=missing)


def fit_scales(values: Floats, *, is_number: bool = True) -> Scales:
    """Fit the scales of many columns.

    Parameters
    ----------
    values
        The numbers of each column, of shape (k, n) with n > 0, without missing values.
    is_number
        Whether the columns are numbers, which may be logged, and stay sparse if most are zero.
    """
    center, scale = values.mean(1), values.std(1)
    log = np.zeros(len(values), dtype=bool)
    if is_number:
        far = values.max(1) - center > MAX_DEVIATIONS * scale
        log = (values.min(1) >= 0) & far & (scale > 0)
        logged = np.log1p(values[log])
        center[log], scale[log] = logged.mean(1), logged.std(1)
        center[(values == 0).mean(1) >= SPARSE_SHARE] = 0.0
    return Scales(log, center, scale)


def _check_declared(cells: Cells, kind: Kind, values: Floats) -> None:
    """Refuse a declared kind that too many cells contradict."""
    present = np.asarray(cells.values.is_valid())
    wrong = np.flatnonzero(np.isnan(values).any(1) & present)
    num_present, table = cells.num_present, cells.table
    if len(wrong) <= max(int(num_present >= MIN_CELLS_FOR_SLIP), (1 - MIN_SHARE) * num_present):
        return
    texts = cells.values.take(pa.array(wrong)).cast(pa.string())
    most_frequent = max(pc.value_counts(texts).to_pylist(), key=lambda count: count["counts"])
    example = most_frequent["values"]
    first = int(wrong[int(pc.index(texts, example).as_py())])
    shown, units = example[:SHOWN], two_units(cells.sample) if kind == "number" else ""
    advice = "leave them empty"
    # A word with digits may be a valid value in another column.
    if 2 * len(wrong) < num_present and not any(map(str.isdigit, example)):
        advice = (
            f"declare {shown!r} a missing value of all columns "
            f"(na=[{shown!r}], or --na={shlex.quote(shown)})"
        )
    raise DataError(
        f"{cells.where} is declared as {kind}, but {len(wrong):,} of "
        f"{counted(num_present, 'cell')} {'is' if len(wrong) == 1 else 'are'} not, such as "
        f"{shown!r} in {table.unit} {table.numbers[first]}{f' ({units})' if units else ''}. "
        f"Write them {EXAMPLES[kind]}, or {advice}, or declare another kind."
    )


def may_be_index(name: str, table: Table) -> bool:
    """Return whether a program may have added a column: an unnamed column, or a second id."""
    return name == f"id{CLASH_SUFFIX}" or (is_unnamed(name) and table.has_names)


def _is_index(cells: Cells) -> bool:
    """Return whether the values are whole numbers without repetition (gaps are allowed)."""
    values = as_numbers(cells.values)
    present = values[~np.isnan(values)]
    return (
        len(present) > 0
        and bool((present == np.floor(present)).all())
        and len(np.unique(present)) == len(present)
    )


def _fit_category(cells: Cells, reason: str) -> ColumnEncoder:
    counts = pc.value_counts(as_words(cells.values).drop_null()).to_pylist()
    if not counts:
        return ColumnEncoder(cells.name, "ignored", "empty")
    by_frequency = sorted(counts, key=lambda count: (-count["counts"], count["values"]))
    return ColumnEncoder(
        cells.name,
        "category",
        reason,
        words=tuple(sorted(count["values"] for count in by_frequency[:MAX_CATEGORIES])),
        other=len(counts) > MAX_CATEGORIES,
        missing=cells.values.null_count > 0,
    )


def _fit_text(cells: Cells, reason: str) -> ColumnEncoder:
    from sklearn.feature_extraction.text import CountVectorizer

    documents = cells.values.drop_null().cast(pa.string()).to_pylist()
    # A word in one row, or in nearly all rows, carries no information.
    min_df, max_df = (2, 0.9) if len(documents) >= MIN_DOCUMENTS else (1, 1.0)
    vectorizer = CountVectorizer(max_features=MAX_VOCABULARY, min_df=min_df, max_df=max_df)
    try:
        counts = vectorizer.fit_transform(documents)
    except ValueError:  # scikit-learn: no word is left
        return ColumnEncoder(cells.name, "ignored", "no word occurs in several rows")
    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    weights = np.log((1 + len(documents)) / (1 + document_frequency)) + 1
    return ColumnEncoder(
        cells.name,
        "text",
        reason,
        words=tuple(vectorizer.get_feature_names_out().tolist()),
        weights=tuple(weights.tolist()),
    )
