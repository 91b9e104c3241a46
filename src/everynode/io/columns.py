"""One column of a table as features: what it is, what is learned from it, and its numbers, the same for every file it is applied to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from everynode.errors import DataError, unknown
from everynode.io.summary import Notes, ColumnSummary, counted
from everynode.io.tables import CLASH, Table, is_unnamed
from everynode.io.type_inference import (
    KINDS,
    MADE_OF,
    MOSTLY,
    Kind,
    as_booleans,
    as_dates,
    as_numbers,
    as_vectors,
    clean,
    comma_in,
    kind_of,
    numpy_array,
    sample,
    shape_of,
    two_units,
)
from everynode.io.units import unit_of, without_unit

Floats = npt.NDArray[np.float64]

#: Numbers of which at least this share are zero are scaled but not centred: zeros stay zeros, and the matrix sparse.
MOSTLY_ZERO = 0.5
#: Numbers that reach further than so many standard deviations, and none of which is negative, are taken by their logarithm.
FAR = 10.0
#: No feature is larger than this: a wild value in a later file must not drown everything else.
CLIP = 1e3
#: Larger numbers than this in a file are a mistake.
LARGEST = 1e30
#: From so many cells on, a column most of which cannot be read is refused.
FEW = 4
#: From so many cells on, one that is no number is a slip, though more than a few percent.
TEN = 10
#: How the cells of these kinds are written.
WRITTEN = {"number": "as in 1234.5", "date": "as in 2020-12-31", "boolean": "as yes or no"}
#: A column of words has features for its most frequent values, so many at most.
CATEGORIES = 100
#: A column of text has features for its most frequent words, so many at most.
VOCABULARY = 2000


@dataclass(frozen=True)
class Column:
    """How one column becomes features."""

    name: str
    kind: Kind
    #: Why it is taken for that, where it is not plain to see; of an ignored one, always.
    why: str = ""
    #: number, date, vector: the features are (value - center) / scale.
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    #: number: log(1 + value) comes first.
    log: bool = False
    #: number: what a comma stands for.
    comma: str = ""
    #: number: what is written around it, such as a currency.
    unit: str = ""
    #: category: the values that have a feature; text: the vocabulary.
    words: tuple[str, ...] = ()
    #: text: the weight of each word.
    weights: tuple[float, ...] = ()
    #: category: one more feature for all the other values.
    other: bool = False
    #: One more feature says where the value is missing.
    missing: bool = False

    @property
    def feature_names(self) -> list[str]:
        """What to call the features."""
        if self.kind == "ignored":
            return []
        if self.kind == "category":
            names = [f"{self.name} = {word}" for word in self.words] + [
                f"{self.name} = (other)"
            ] * self.other
        elif self.kind == "text":
            names = [f"{self.name}: {word}" for word in self.words]
        elif self.kind == "vector":
            names = [f"{self.name}[{i}]" for i in range(len(self.center))]
        else:
            names = [self.name]
        return names + [f"{self.name} is missing"] * self.missing

    @property
    def taken(self) -> ColumnSummary:
        """For the summary: what the column was taken for."""
        detail = {
            "number": f"{'logarithm, ' if self.log else ''}{'scaled' if self.center == (0.0,) else 'standardised'}"
            f"{f', written with {self.unit}' if self.unit else ''}",
            "boolean": "0 or 1",
            "date": "days, standardised",
            "category": f"{counted(len(self.words), 'value')}{' and one feature for all others' if self.other else ''}",
            "text": f"{counted(len(self.words), 'word')} by TF-IDF",
            "vector": f"{len(self.center)} numbers, standardised",
            "ignored": "",
        }[self.kind]
        detail += ", one feature for missing" if self.missing else ""
        return ColumnSummary(self.name, self.kind, "; ".join(filter(None, (detail, self.why))))


# ---------------------------------------------------------------------- learning


def fit_column(name: str, kind: Kind | None, table: Table, na: Sequence[str] = ()) -> Column:
    """What a column teaches; its kind, unless given, is guessed from its cells."""
    if kind is not None and kind not in KINDS:
        unknown(f"kind for column {name!r}", kind, KINDS)
    cells = clean(table[name], na)
    said, why = kind is not None, ""
    if kind is None:
        kind, why = kind_of(cells)
        if (
            kind in ("number", "boolean")
            and _is_index(name, table)
            and _numbers_rows(as_numbers(cells))
        ):
            kind, why = "ignored", "a row number"  # in a sorted table it would tell the label
        if kind == "ignored":
            return Column(name, kind, why)
    if kind == "ignored":
        return Column(name, kind, "as asked")
    _check_shape(name, kind, cells, table)
    if kind == "category":
        return _fit_category(name, cells, why)
    if kind == "text":
        return _fit_text(name, cells, why)
    unit = unit_of(sample(cells)) if kind == "number" and shape_of(cells) == "text" else ""
    plain = without_unit(cells, unit)
    comma = (
        comma_in(plain, f"Column {name!r} of {table.where}", unit=unit) if kind == "number" else ""
    )
    if said and kind in WRITTEN:
        _check_said(name, kind, cells, _numbers(name, kind, comma, plain, table), table)
    if kind == "boolean":
        return Column(name, kind, missing=cells.null_count > 0)
    values = _numbers(name, kind, comma, plain, table)
    missing = np.isnan(values).any(1)
    known = values[~missing]
    log = bool(
        kind == "number"
        and len(known)
        and known.min() >= 0
        and known.max() - known.mean() > FAR * known.std() > 0
    )
    known = np.log1p(known) if log else known
    sparse = kind == "number" and len(known) and (known == 0).mean() >= MOSTLY_ZERO
    center = np.zeros(known.shape[1]) if sparse or not len(known) else known.mean(0)
    scale = known.std(0) if len(known) else center
    if not (scale > 0).any():
        return Column(
            name,
            "ignored",
            "no two values that differ" if len(cells) > cells.null_count else "empty",
        )
    scale[scale == 0] = 1.0
    return Column(
        name,
        kind,
        "",
        tuple(center.tolist()),
        tuple(scale.tolist()),
        log,
        comma,
        unit,
        missing=bool(missing.any()),
    )


def _check_said(
    name: str, kind: Kind, cells: pa.ChunkedArray, values: Floats, table: Table
) -> None:
    """Refuse what somebody said a column is if more of its cells are something else than where it is guessed."""
    present = np.asarray(cells.is_valid())
    wrong = np.flatnonzero(np.isnan(values).any(1) & present)
    if len(wrong) <= max(int(present.sum() >= TEN), (1 - MOSTLY) * present.sum()):
        return
    strange = cells.take(pa.array(wrong)).cast(pa.string())
    most = max(pc.value_counts(strange).to_pylist(), key=lambda c: c["counts"])
    example = most["values"]
    first = int(wrong[int(pc.index(strange, example).as_py())])
    way, two = "empty them", two_units(sample(cells)) if kind == "number" else ""
    if 2 * len(wrong) < present.sum() and not any(
        map(str.isdigit, example)
    ):  # a number may be a value elsewhere
        way = f"if it stands for a missing value in all columns, say so (na=[{example[:40]!r}], or --na={shlex.quote(example[:40])})"
    raise DataError(
        f"You said that column {name!r} of {table.where} is a {kind}, but {len(wrong):,} of {counted(int(present.sum()), 'cell')} "
        f"{'is' if len(wrong) == 1 else 'are'} none, such as {example[:40]!r} in {table.unit} {table.numbers[first]}"
        f"{f' ({two})' if two else ''}: "
        f"write them {WRITTEN[kind]}, or {way}, or say another kind."
    )


def _is_index(name: str, table: Table) -> bool:
    """Whether nobody gave the column its name, though others have theirs; or it is the id of another program."""
    return name == f"id{CLASH}" or (is_unnamed(name) and not all(map(is_unnamed, table.columns)))


def _numbers_rows(values: Floats) -> bool:
    """Whether the values are whole and all different as far as they are known: of a table that was filtered not all are left."""
    known = values[~np.isnan(values)]
    return (
        len(known) > 0
        and bool((known == np.floor(known)).all())
        and len(np.unique(known)) == len(known)
    )


def _fit_category(name: str, cells: pa.ChunkedArray, why: str) -> Column:
    counts = pc.value_counts(_words(cells).drop_null()).to_pylist()
    if not counts:
        return Column(name, "ignored", "empty")
    frequent = sorted(counts, key=lambda c: (-c["counts"], c["values"]))[:CATEGORIES]
    words = tuple(sorted(c["values"] for c in frequent))
    return Column(
        name,
        "category",
        why,
        words=words,
        other=len(counts) > CATEGORIES,
        missing=cells.null_count > 0,
    )


def _fit_text(name: str, cells: pa.ChunkedArray, why: str) -> Column:
    from sklearn.feature_extraction.text import CountVectorizer

    documents = cells.drop_null().cast(pa.string()).to_pylist()
    rare, common = (
        (2, 0.9) if len(documents) >= 10 else (1, 1.0)
    )  # a word of one row, or of nearly all rows, tells nothing
    vectorizer = CountVectorizer(max_features=VOCABULARY, min_df=rare, max_df=common)
    try:
        counts = vectorizer.fit_transform(documents)
    except ValueError:  # scikit-learn's way to say that no word is left
        return Column(name, "ignored", "no word that some rows share")
    found = np.bincount(counts.indices, minlength=counts.shape[1])
    weights = np.log((1 + len(documents)) / (1 + found)) + 1
    return Column(
        name,
        "text",
        why,
        words=tuple(vectorizer.get_feature_names_out().tolist()),
        weights=tuple(weights.tolist()),
    )


# ---------------------------------------------------------------------- applying


def column_values(column: Column, table: Table, notes: Notes, na: Sequence[str] = ()) -> Any:
    """The features of every row from one column, n x its width, dense or sparse; what is missing or new is noted."""
    cells = clean(table[column.name], na)
    _check_shape(column.name, column.kind, cells, table)
    where = f"Column {column.name!r} of {table.where}"
    if column.kind == "category":
        return _one_hot(column, cells, where, notes)
    if column.kind == "text":
        return _tf_idf(column, cells, where, notes)
    plain = without_unit(cells, column.unit)
    comma = comma_in(plain, where, column.comma, column.unit) if column.kind == "number" else ""
    values = _numbers(column.name, column.kind, comma, plain, table)
    if column.kind == "vector" and values.shape[1] != len(column.center):
        raise DataError(
            f"{where} holds lists of {values.shape[1]} numbers; {len(column.center)} are expected."
        )
    gone = np.isnan(values)
    unreadable = np.flatnonzero(gone.any(1) & np.asarray(cells.is_valid()))
    if len(unreadable) and column.kind != "vector":
        example = str(cells[int(unreadable[0])].as_py())[:40]
        these = f"not a {column.kind}{f' with {column.unit}' if column.unit else ''} ({example!r}: {table.rows(unreadable)})"
        present = len(cells) - cells.null_count
        if 2 * len(unreadable) > present >= FEW:
            raise DataError(
                f"{where}: {len(unreadable)} of {counted(present, 'cell')} are {these}, which the column is taken for. "
                "Correct them, or empty them: an empty cell counts as missing."
            )
        notes.repair(
            f"{where}: {counted(len(unreadable), 'cell')} {these}, taken as missing.",
            len(unreadable),
        )
    minus = (
        np.asarray(
            pc.fill_null(pc.and_(pc.match_substring(cells, "("), pc.starts_with(plain, "-")), False)
        )
        if plain is not cells
        else ()
    )
    if np.any(minus):
        negative = np.flatnonzero(minus)
        notes.repair(
            f"{where}: {counted(len(negative), 'number')} in brackets, taken as negative ({table.rows(negative)}).",
            len(negative),
        )
    if column.unit:  # 0.83 where training had 83 % would be wrong by 100: it must at least be seen
        same = np.asarray(pc.fill_null(pc.equal(plain, cells), False))
        bare = np.flatnonzero(same & ~gone[:, 0] & (values[:, 0] != 0))
        if len(bare):
            notes.warn(
                f"{where}: {counted(len(bare), 'cell')} without {column.unit} taken for the same unit ({table.rows(bare)}).",
                len(bare),
            )
    if gone.any():
        filling = "no" if column.kind == "boolean" else "the mean"
        notes.repair(
            f"{where}: {counted(int(gone.sum()), 'missing value')} filled with {filling}.",
            int(gone.sum()),
        )
    if column.kind != "boolean":
        values = np.log1p(np.maximum(values, 0)) if column.log else values
        values = np.clip((values - np.array(column.center)) / np.array(column.scale), -CLIP, CLIP)
    values[gone] = 0.0
    features = values.astype(np.float32)
    return (
        np.hstack([features, gone.any(1, keepdims=True).astype(np.float32)])
        if column.missing
        else features
    )


def _check_shape(name: str, kind: Kind, cells: pa.ChunkedArray, table: Table) -> None:
    if shape_of(cells) not in MADE_OF[kind]:
        raise DataError(
            f"{table.where}: column {name!r} holds {cells.type}, which cannot be taken for a {kind}."
        )


def _numbers(name: str, kind: Kind, comma: str, cells: pa.ChunkedArray, table: Table) -> Floats:
    """The cells as rows of numbers, NaN where missing; infinities and the like are refused."""
    if kind == "vector":
        values = as_vectors(cells, name, table)
    else:
        values = (
            as_dates(cells)
            if kind == "date"
            else as_booleans(cells)
            if kind == "boolean"
            else as_numbers(cells, comma)
        )[:, None]
    wrong = np.flatnonzero(
        (np.abs(values) > LARGEST).any(1)
    )  # infinities too; NaN is not larger than anything
    if len(wrong):
        row = values[wrong[0]]
        raise DataError(
            f"{table.row(wrong[0])}, column {name!r} holds {row[np.abs(row) > LARGEST][0]:g} ({counted(len(wrong), 'such cell')}): "
            f"features must be finite and below {LARGEST:g}. Correct or empty the cells, or leave the column out."
        )
    return values


def _words(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a category as text: whole numbers as they are written in a text file, not as 1.23e+11."""
    if (
        pa.types.is_floating(cells.type)
        and pc.all(
            pc.and_(pc.equal(cells, pc.floor(cells)), pc.less(pc.abs(cells), 2.0**53))
        ).as_py()
    ):
        cells = cells.cast(pa.int64())
    return cells.cast(pa.string())


def _one_hot(column: Column, cells: pa.ChunkedArray, where: str, notes: Notes) -> Any:
    text = _words(cells)
    codes = numpy_array(
        pc.fill_null(pc.index_in(text, value_set=pa.array(column.words, pa.string())), -1), np.int64
    )
    gone = np.asarray(text.is_null())
    new = (codes < 0) & ~gone
    width = len(column.words)
    if column.other:
        codes[new], width = width, width + 1
    elif new.any():
        example = text[int(new.argmax())].as_py()[:40]
        notes.warn(
            f"{where}: {counted(int(new.sum()), 'value')} not seen in training ({example!r}), left without a feature.",
            int(new.sum()),
        )
    if gone.any():
        notes.repair(f"{where}: {counted(int(gone.sum()), 'missing value')}.", int(gone.sum()))
    if column.missing:
        codes[gone], width = width, width + 1
    rows = np.flatnonzero(codes >= 0)
    return scipy.sparse.csc_array(
        (np.ones(len(rows), np.float32), (rows, codes[rows])), shape=(len(codes), width)
    )


def _tf_idf(column: Column, cells: pa.ChunkedArray, where: str, notes: Notes) -> Any:
    """(1 + log of the count) x weight for each word of the vocabulary, each row then of length 1."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    documents = pc.fill_null(cells.cast(pa.string()), "").to_pylist()
    counts = scipy.sparse.csr_array(
        CountVectorizer(vocabulary=column.words).transform(documents), dtype=np.float32
    )
    counts.data = (1 + np.log(counts.data)) * np.array(column.weights, np.float32)[counts.indices]
    empty = int((np.diff(counts.indptr) == 0).sum())
    if empty:
        notes.repair(
            f"{where}: {counted(empty, 'row')} without a known word, left without a feature from it.",
            empty,
        )
    return normalize(counts)
