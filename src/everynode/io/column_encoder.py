"""Encoder of one column: it converts the cells to features, in the same way for every file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from everynode.errors import DataError
from everynode.io.cells import Cells
from everynode.io.lists import JOINER, multi_hot
from everynode.io.parsing import Floats, resolve_comma
from everynode.io.summary import ColumnSummary, Notes, counted
from everynode.io.tables import writable_array
from everynode.io.type_inference import CELL_TYPES, Kind

#: Features are clipped at this value, so that an outlier in a later file cannot dominate.
CLIP = 1e3
#: Larger numbers in a file are mistakes.
MAX_NUMBER = 1e30
#: From this many cells on, a column is refused if most cells cannot be parsed.
MIN_CELLS_TO_REFUSE = 4
#: Messages show at most this many characters of a cell.
SHOWN = 40


@dataclass(frozen=True)
class ColumnEncoder:
    """Encoder of one column, made by :func:`everynode.io.column_fitting.fit_column`.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : str
        The type: number, boolean, date, category, text, vector, list or ignored.
    reason : str
        The reason for this type, if it is not obvious. Always set for an ignored column.
    center, scale : tuple of float
        Numbers, dates and vectors are encoded as ``(value - center) / scale``.
    log : bool
        Numbers: whether ``log(1 + value)`` is applied first.
    comma : str
        Numbers: the meaning of a comma, "decimal", "thousands" or "".
    unit : str
        Numbers: the unit, such as a currency.
    words : tuple of str
        Categories and lists: the values with a separate feature. Text: the vocabulary.
    weights : tuple of float
        Text: the inverse document frequency of each word.
    other : bool
        Categories: whether an additional feature represents all other values.
    missing : bool
        Whether an additional feature marks missing values.
    date_order : str
        Dates that end with the year: whether the day ("dmy") or the month ("mdy") comes first.
    separator : str
        Lists: the sign between the elements.
    """

    name: str
    kind: Kind
    reason: str = ""
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    log: bool = False
    comma: str = ""
    unit: str = ""
    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    other: bool = False
    missing: bool = False
    date_order: str = ""
    separator: str = ""

    def check(self) -> None:
        """Raise a ValueError if the numbers are inconsistent, as in a damaged file."""
        sizes = {"number": 1, "date": 1, "vector": len(self.center)}
        size = sizes.get(self.kind, len(self.center))
        if not len(self.center) == len(self.scale) == size or 0 in self.scale:
            raise ValueError(f"the scale of column {self.name!r} is damaged")
        if self.kind == "text" and len(self.words) != len(self.weights):
            raise ValueError(f"the words of column {self.name!r} are damaged")

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        if self.kind == "ignored":
            return []
        if self.kind == "category":
            names = [f"{self.name} = {word}" for word in self.words]
            names += [f"{self.name} = (other)"] * self.other
        elif self.kind == "list":
            names = [f"{self.name} has {word}" for word in self.words]
        elif self.kind == "text":
            names = [f"{self.name}: {word}" for word in self.words]
        elif self.kind == "vector":
            names = [f"{self.name}[{i}]" for i in range(len(self.center))]
        else:
            names = [self.name]
        return names + [f"{self.name} is missing"] * self.missing

    @property
    def summary(self) -> ColumnSummary:
        """The type of the column, for the summary of the graph."""
        details = {
            "number": self._describe_number,
            "boolean": lambda: "0 or 1",
            "date": lambda: (
                "days, standardized" + (f", written {self.date_order}" if self.date_order else "")
            ),
            "list": lambda: counted(len(self.words), "element"),
            "category": lambda: (
                counted(len(self.words), "value")
                + (" and one feature for all others" if self.other else "")
            ),
            "text": lambda: f"{counted(len(self.words), 'word')} by TF-IDF",
            "vector": lambda: f"{len(self.center)} numbers, standardized",
            "ignored": lambda: "",
        }
        detail = details[self.kind]() + (", one feature for missing" if self.missing else "")
        return ColumnSummary(self.name, self.kind, "; ".join(filter(None, (detail, self.reason))))

    def _describe_number(self) -> str:
        parts = ["logarithm"] if self.log else []
        parts.append("scaled" if self.center == (0.0,) else "standardized")
        return ", ".join(parts + ([f"written with {self.unit}"] if self.unit else []))

    def transform(self, cells: Cells, notes: Notes) -> Any:
        """Encode the cells of the column.

        Returns the n x d features, dense or sparse. Missing and unknown values are noted.
        """
        check_type(cells, self.kind)
        if self.kind == "category":
            return self._one_hot(cells, notes)
        if self.kind == "text":
            return self._tf_idf(cells, notes)
        if self.kind == "list":
            return self._multi_hot(cells, notes)
        return self._scale(cells, notes)

    def _scale(self, cells: Cells, notes: Notes) -> npt.NDArray[np.float32]:
        comma = ""
        if self.kind == "number":
            plain, possible = cells.without_unit(self.unit), cells.possible_commas(self.unit)
            comma = resolve_comma(plain, possible, cells.where, training=self.comma, unit=self.unit)
        order = self.date_order
        if self.kind == "date" and cells.date_order:
            order = cells.order[0] or order
        values = parse(cells, self.kind, unit=self.unit, comma=comma, order=order)
        if self.kind == "vector" and values.shape[1] != len(self.center):
            raise DataError(
                f"{cells.where} holds lists of {values.shape[1]} numbers; "
                f"{len(self.center)} are expected."
            )
        missing = np.isnan(values)
        self._note_repairs(cells, values, missing, notes)
        values = np.log1p(np.maximum(values, 0)) if self.log else values
        features = standardize(values, np.array(self.center or 0.0), np.array(self.scale or 1.0))
        if self.missing:
            marks = missing.any(1, keepdims=True).astype(np.float32)
            features = np.hstack([features, marks])
        return features

    def _note_repairs(
        self, cells: Cells, values: Floats, missing: npt.NDArray[np.bool_], notes: Notes
    ) -> None:
        """Note cells that could not be parsed, brackets, missing units and missing values."""
        table, where = cells.table, cells.where
        unreadable = np.flatnonzero(missing.any(1) & np.asarray(cells.values.is_valid()))
        if len(unreadable) and self.kind != "vector":
            example = str(cells.values[int(unreadable[0])].as_py())[:SHOWN]
            expected = f"{self.kind}{f' with {self.unit}' if self.unit else ''}"
            problem = f"not a {expected} ({example!r}: {table.rows(unreadable)})"
            if 2 * len(unreadable) > cells.num_present >= MIN_CELLS_TO_REFUSE:
                raise DataError(
                    f"{where}: {len(unreadable)} of {counted(cells.num_present, 'cell')} are "
                    f"{problem}, but the column held a {self.kind} in training. Correct these "
                    "cells, or leave them empty: an empty cell counts as missing."
                )
            notes.repair(
                f"{where}: {counted(len(unreadable), 'cell')} {problem}, treated as missing.",
                len(unreadable),
            )
        plain = cells.without_unit(self.unit) if self.kind == "number" else cells.values
        if plain is not cells.values:
            opened = pc.match_substring(cells.values, "(")
            in_brackets = pc.and_(opened, pc.starts_with(plain, "-"))
            negative = np.flatnonzero(np.asarray(pc.fill_null(in_brackets, False)))
            if len(negative):
                notes.repair(
                    f"{where}: {counted(len(negative), 'number')} in brackets, treated as "
                    f"negative ({table.rows(negative)}).",
                    len(negative),
                )
        if self.unit:  # 0.83 instead of 83 % would be wrong by a factor of 100
            unchanged = np.asarray(pc.fill_null(pc.equal(plain, cells.values), False))
            bare = np.flatnonzero(unchanged & ~missing[:, 0] & (values[:, 0] != 0))
            if len(bare):
                notes.warn(
                    f"{where}: {counted(len(bare), 'cell')} without {self.unit}, assumed to have "
                    f"the same unit ({table.rows(bare)}).",
                    len(bare),
                )
        self.note_missing(int(missing.sum()), where, notes)

    def note_missing(self, count: int, where: str, notes: Notes) -> None:
        """Note how missing values of a column were filled."""
        if count:
            filling = "no" if self.kind == "boolean" else "the mean"
            notes.repair(
                f"{where}: {counted(count, 'missing value')} filled with {filling}.", count
            )

    def _one_hot(self, cells: Cells, notes: Notes) -> Any:
        text = as_words(cells.values)
        vocabulary = pa.array(self.words, pa.string())
        codes = writable_array(pc.fill_null(pc.index_in(text, value_set=vocabulary), -1), np.int64)
        missing = np.asarray(text.is_null())
        new = (codes < 0) & ~missing
        width = len(self.words)
        if self.other:
            codes[new], width = width, width + 1
        elif new.any():
            example = text[int(new.argmax())].as_py()[:SHOWN]
            notes.warn(
                f"{cells.where}: {counted(int(new.sum()), 'value')} not seen in training "
                f"({example!r}), encoded without a feature.",
                int(new.sum()),
            )
        if count := int(missing.sum()):
            notes.repair(f"{cells.where}: {counted(count, 'missing value')}.", count)
        if self.missing:
            codes[missing], width = width, width + 1
        rows = np.flatnonzero(codes >= 0)
        return scipy.sparse.csc_array(
            (np.ones(len(rows), np.float32), (rows, codes[rows])), shape=(len(codes), width)
        )

    def _multi_hot(self, cells: Cells, notes: Notes) -> Any:
        features = multi_hot(cells.values, self.separator, self.words)
        present = np.asarray(cells.values.is_valid())
        unknown = np.flatnonzero(present & (features.sum(axis=1) == 0))
        if len(unknown):
            notes.repair(
                f"{cells.where}: {counted(len(unknown), 'list')} without a known element, encoded "
                f"without a feature ({cells.table.rows(unknown)}).",
                len(unknown),
            )
        if not self.missing:
            return features
        marks = scipy.sparse.csc_array((~present).astype(np.float32)[:, None])
        return scipy.sparse.hstack([features, marks], format="csc")

    def _tf_idf(self, cells: Cells, notes: Notes) -> Any:
        """Encode each word as (1 + log count) x weight, then scale each row to length 1."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.preprocessing import normalize

        documents = pc.fill_null(cells.values.cast(pa.string()), "").to_pylist()
        counts = scipy.sparse.csr_array(
            CountVectorizer(vocabulary=self.words).transform(documents), dtype=np.float32
        )
        weights = np.array(self.weights, np.float32)[counts.indices]
        counts.data = (1 + np.log(counts.data)) * weights
        num_empty = int((np.diff(counts.indptr) == 0).sum())
        if num_empty:
            notes.repair(
                f"{cells.where}: {counted(num_empty, 'row')} without a known word, encoded without "
                "a feature.",
                num_empty,
            )
        return normalize(counts)


def standardize(values: Floats, center: Floats, scale: Floats) -> npt.NDArray[np.float32]:
    """Return ``(value - center) / scale``, clipped; 0 where a value is missing."""
    values = np.clip((values - center) / scale, -CLIP, CLIP)
    return np.where(np.isnan(values), 0.0, values).astype(np.float32)


def check_type(cells: Cells, kind: Kind) -> None:
    """Refuse a kind that does not suit the cells."""
    if cells.type not in CELL_TYPES[kind]:
        raise DataError(
            f"{cells.table.where}: column {cells.name!r} holds {cells.values.type}, which cannot "
            f"be a {kind}."
        )


def parse(cells: Cells, kind: Kind, *, unit: str = "", comma: str = "", order: str = "") -> Floats:
    """Parse the cells as rows of numbers, and refuse infinite or huge numbers."""
    values = cells.parse(kind, unit=unit, comma=comma, order=order)
    too_large = np.flatnonzero((np.abs(values) > MAX_NUMBER).any(1))
    if len(too_large):
        row = values[too_large[0]]
        raise DataError(
            f"{cells.table.row(too_large[0])}, column {cells.name!r} holds "
            f"{row[np.abs(row) > MAX_NUMBER][0]:g} ({counted(len(too_large), 'such cell')}). "
            f"Features must be finite and below {MAX_NUMBER:g}. Correct or empty the cells, or "
            "leave the column out."
        )
    return values


def as_words(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert categories to text; write whole numbers as in a text file, not as 1.23e+11."""
    if pa.types.is_floating(cells.type):
        is_exact = pc.and_(pc.equal(cells, pc.floor(cells)), pc.less(pc.abs(cells), 2.0**53))
        if pc.all(is_exact).as_py():
            cells = cells.cast(pa.int64())
    return pc.replace_substring(cells.cast(pa.string()), JOINER, " ")
