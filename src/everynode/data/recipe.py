"""Recipe: how the columns of a table become features. Fitted once, kept with the model, and followed again for other files."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from everynode.data.cells import CATEGORIES, Kind, as_booleans, as_dates, as_numbers, clean, comma_of, kind_of, numpy_array
from everynode.data.tables import Table
from everynode.data.understood import Notes, Taken
from everynode.errors import DataError, unknown
from everynode.tidy import SPARSE_DENSITY

KINDS: tuple[Kind, ...] = ("number", "boolean", "date", "category", "text", "vector", "ignored")
#: Numbers of which at least this share are zero are scaled but not centred: zeros stay zeros, and the matrix sparse.
MOSTLY_ZERO = 0.5
#: Numbers that reach further than so many standard deviations, and none of which is negative, are taken by their logarithm.
FAR = 10.0
#: Larger numbers overflow in float32 sooner or later.
LARGEST = 1e30


@dataclass(frozen=True)
class Column:
    """How one column becomes features."""

    name: str
    kind: Kind
    #: Why it is ignored, if it is.
    why: str = ""
    #: number, date, vector: the features are (value - center) / scale.
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    #: number: log(1 + value) comes first.
    log: bool = False
    #: number: what a comma stands for.
    comma: str = ""
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
        if self.kind in ("category", "text"):
            names = [f"{self.name} = {word}" if self.kind == "category" else f"{self.name}: {word}" for word in self.words]
        elif self.kind == "ignored":
            names = []
        else:
            names = [self.name] if len(self.center) <= 1 else [f"{self.name}[{i}]" for i in range(len(self.center))]
        return names + [f"{self.name} = (other)"] * self.other + [f"{self.name} is missing"] * self.missing

    @property
    def taken(self) -> Taken:
        """For the summary: what the column was taken for."""
        if self.kind == "ignored":
            return Taken(self.name, self.kind, self.why)
        detail = {
            "number": f"{'its logarithm ' if self.log else ''}{'scaled' if self.center == (0.0,) else 'standardised'}",
            "boolean": "0 or 1",
            "date": "days, standardised",
            "category": f"{len(self.words)} values{' and all others' if self.other else ''}",
            "text": f"{len(self.words)} words",
            "vector": f"{len(self.center)} numbers, standardised",
        }[self.kind]
        return Taken(self.name, self.kind, detail + (", where missing: one more feature" if self.missing else ""))


@dataclass(frozen=True)
class Recipe:
    """How a table's columns become features, and which columns are something else. Plain JSON by :meth:`to_dict`."""

    columns: tuple[Column, ...] = ()
    #: Which column is the id, label, split, source, target, weight.
    roles: Mapping[str, str] = field(default_factory=dict)
    #: What the labels stand for, in the order of the class indices.
    classes: tuple[Hashable, ...] = ()
    #: The features are computed from the structure of the graph: from that of each new graph anew.
    structural: bool = False

    @property
    def feature_names(self) -> list[str]:
        """What to call each feature."""
        return [name for column in self.columns for name in column.feature_names]

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, for JSON."""
        default = {f.name: f.default for f in dataclasses.fields(Column)}
        columns = [{k: v for k, v in dataclasses.asdict(column).items() if v != default[k]} for column in self.columns]
        return {"columns": columns, "roles": dict(self.roles), "classes": list(self.classes), "structural": self.structural}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Recipe:
        """The recipe that :meth:`to_dict` wrote."""
        try:
            columns = tuple(Column(**{k: tuple(v) if isinstance(v, list) else v for k, v in column.items()}) for column in plain["columns"])
            return cls(columns, dict(plain["roles"]), tuple(plain["classes"]), bool(plain["structural"]))
        except (KeyError, TypeError, AttributeError) as wrong:
            raise DataError(f"This is not a recipe that everynode wrote ({wrong}).") from None

    @classmethod
    def fit(cls, table: Table, wanted: Mapping[str, Kind | None], notes: Notes, na: Sequence[str] = ()) -> Recipe:
        """The recipe for the wanted columns, each with its kind where that is given; what is missing or ignored is noted."""
        return cls(tuple(_fit(name, kind, table, notes, na) for name, kind in wanted.items()))

    def apply(self, table: Table, notes: Notes, na: Sequence[str] = ()) -> Any:
        """The features of a table's rows, n x c, sparse if they mostly are zero."""
        blocks = []
        for column in self.columns:
            if column.kind != "ignored":
                blocks.append(_small(_values(column, table, notes, na)))
        return join(blocks, table.num_rows)


def join(blocks: Sequence[Any], n: int) -> Any:
    """Blocks of columns side by side, sparse if they mostly are zero."""
    if not blocks:
        return np.zeros((n, 0), np.float32)
    width = sum(block.shape[1] for block in blocks)
    stored = sum(block.nnz if scipy.sparse.issparse(block) else block.size for block in blocks)
    if stored <= SPARSE_DENSITY * n * width:
        return scipy.sparse.hstack([scipy.sparse.csc_array(block) for block in blocks], format="csr", dtype=np.float32)
    features = np.empty((n, width), np.float32)
    start = 0
    for block in blocks:
        features[:, start : start + block.shape[1]] = block.toarray() if scipy.sparse.issparse(block) else block
        start += block.shape[1]
    return features


def _small(block: Any) -> Any:
    """A block in the form that takes less memory."""
    if scipy.sparse.issparse(block) or np.count_nonzero(block) > SPARSE_DENSITY * block.size:
        return block
    return scipy.sparse.csc_array(block)


# ---------------------------------------------------------------------- one column


def _fit(name: str, kind: Kind | None, table: Table, notes: Notes, na: Sequence[str]) -> Column:
    cells = clean(table[name], na)
    guessed, why = kind_of(cells)
    if guessed == "ignored" and kind is None:
        return Column(name, "ignored", why)
    kind = kind or guessed
    if kind not in KINDS:
        unknown(f"kind of column for {name!r}", kind, KINDS)
    missing = cells.null_count > 0
    if kind == "category":
        counts = pc.value_counts(cells.drop_null())
        order = sorted(
            zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True), key=lambda c: (-c[1], str(c[0]))
        )
        words = sorted(str(word) for word, _ in order[:CATEGORIES])
        return Column(name, kind, words=tuple(words), other=len(order) > CATEGORIES, missing=missing)
    if kind == "boolean":
        return Column(name, kind, missing=missing)
    comma = comma_of(cells) if kind == "number" else ""
    values = as_dates(cells) if kind == "date" else as_numbers(cells, comma)
    known = values[~np.isnan(values)]
    _check_size(name, values, table)
    if not len(known) or known.min() == known.max():
        return Column(name, "ignored", "no two values that differ")
    missing = len(known) < len(values)
    log = bool(kind == "number" and known.min() >= 0 and (known.max() - known.mean()) / known.std() > FAR)
    known = np.log1p(known) if log else known
    center = 0.0 if kind == "number" and (known == 0).mean() >= MOSTLY_ZERO else float(known.mean())
    return Column(name, kind, center=(center,), scale=(float(known.std()),), log=log, comma=comma, missing=missing)


def _check_size(name: str, values: npt.NDArray[np.float64], table: Table) -> None:
    wrong = np.flatnonzero(np.abs(values) > LARGEST)  # infinities too; NaN is not larger than anything
    if len(wrong):
        many = f" ({len(wrong):,} such cells)" if len(wrong) > 1 else ""
        raise DataError(
            f"{table.row(wrong[0])}, column {name!r} holds {values[wrong[0]]:g}{many}: features must be finite numbers below {LARGEST:g}. "
            "Correct the cells, empty them, or leave the column out."
        )


def _values(column: Column, table: Table, notes: Notes, na: Sequence[str]) -> Any:
    """The features from one column, n x width."""
    cells = clean(table[column.name], na)
    name = f"column {column.name!r} of {table.where}"
    if column.kind == "category":
        return _one_hot(column, cells, name, notes)
    if column.kind == "boolean":
        values = as_booleans(cells)
    else:
        values = as_dates(cells) if column.kind == "date" else as_numbers(cells, column.comma)
        _check_size(column.name, values, table)
    gone = np.isnan(values)
    unreadable = np.flatnonzero(gone & np.asarray(cells.is_valid()))
    if len(unreadable):
        example = str(cells[int(unreadable[0])].as_py())[:40]
        notes.repair(
            f"{name}: {len(unreadable):,} cells that are no {column.kind} ({example!r}: {table.rows(unreadable)}) taken as missing.",
            len(unreadable),
        )
    if gone.any():
        notes.repair(
            f"{name}: {int(gone.sum()):,} missing values filled with {'no' if column.kind == 'boolean' else 'the mean'}.", int(gone.sum())
        )
    if column.kind != "boolean":
        values = np.log1p(np.maximum(values, 0)) if column.log else values
        values = (values - column.center[0]) / column.scale[0]
    values[gone] = 0.0
    return np.stack([values, gone], axis=1).astype(np.float32) if column.missing else values.astype(np.float32)[:, None]


def _one_hot(column: Column, cells: pa.ChunkedArray, name: str, notes: Notes) -> Any:
    text = cells.cast(pa.string())
    found = pc.index_in(text, value_set=pa.array(column.words, pa.string()))
    gone = np.asarray(text.is_null())
    codes = numpy_array(pc.fill_null(found, -1), np.int64)
    codes[gone] = -1
    new = (codes < 0) & ~gone
    width = len(column.words)
    if column.other:
        codes[new], width = width, width + 1
    elif new.any():
        notes.warn(f"{name}: {int(new.sum()):,} cells hold values that the model has not seen; they get no feature.", int(new.sum()))
    if column.missing:
        codes[gone], width = width, width + 1
    rows = np.flatnonzero(codes >= 0)
    if gone.any():
        notes.repair(f"{name}: {int(gone.sum()):,} missing values{'' if column.missing else ' get no feature'}.", int(gone.sum()))
    return scipy.sparse.csc_array((np.ones(len(rows), np.float32), (rows, codes[rows])), shape=(len(codes), width))
