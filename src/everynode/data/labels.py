"""The label column and the split column of people's tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.data.cells import clean, is_text, numpy_array, shape_of
from everynode.data.columns import Column
from everynode.data.ids import natural
from everynode.data.tables import Table, where_true
from everynode.data.understood import Notes, counted
from everynode.errors import DataError

#: How the parts of a split may be written, in lower case.
PARTS = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2}
#: Classes that may mean that there is no label, in lower case.
LIKE_NONE = ("-1", "-", "--", "?", ".", "none", "unknown", "unlabelled", "unlabeled", "missing", "tbd")
#: More classes than this, of which each has fewer nodes than that on average, are names or amounts.
MANY_CLASSES, TOO_FEW = 20, 2
#: More different whole numbers than this, of which each was seen less often than that on average, are more likely a measurement.
MANY_NUMBERS, SELDOM = 20, 10
#: A column gives the label away only if its values were seen with it this often, on average.
SEEN = 5


class Labels(NamedTuple):
    """Class indices, -1 for none, and what they stand for."""

    codes: npt.NDArray[np.int64]
    classes: tuple[Hashable, ...]

    def counts(self) -> dict[str, int]:
        """How many nodes each class has."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        return {str(name): int(count) for name, count in zip(self.classes, counts, strict=True)}


def read_labels(
    table: Table, name: str | None, notes: Notes, na: Sequence[str] = (), *, classes: Sequence[Hashable] | None = None
) -> Labels:
    """The labels of a table's rows; without given ``classes`` there must be two or more in it."""
    if name is None:
        return Labels(np.full(table.num_rows, -1), tuple(classes or ()))
    column = table[name]
    cells = clean(column, na)
    text = _as_text(cells, table, name)
    if is_text(column):
        _count_spaces(column, cells, table, name, notes)
        _note_spelling(column, cells, name, notes)
    fitting = classes is None
    if classes is None:
        classes = sorted(natural(pa.chunked_array([pc.unique(text.drop_null())])))
        _check_classes(classes, text, table, name)
    codes = numpy_array(pc.fill_null(pc.index_in(text, value_set=pa.array([str(c) for c in classes], pa.string())), -1), np.int64)
    codes[np.asarray(text.is_null())] = -1
    new = np.flatnonzero((codes < 0) & np.asarray(text.is_valid()))
    if len(new):
        notes.warn(
            f"{counted(len(new), 'label')} in column {name!r} not among the model's classes ({text[int(new[0])].as_py()!r}: "
            f"{table.rows(new)}): counted as unlabelled.",
            len(new),
        )
    labels = Labels(codes, tuple(classes))
    if fitting:
        _warn(labels, notes)
    return labels


def _warn(labels: Labels, notes: Notes) -> None:
    """What is odd about the classes, but allowed."""
    rare = [name for name, count in labels.counts().items() if count == 1]
    if rare:
        names = ", ".join(rare[:10]) + (" and others" if len(rare) > 10 else "")
        notes.warn(f"Classes of one node, which cannot be both learned and tested: {names}.", len(rare))
    for name in labels.classes:
        if str(name).casefold() in LIKE_NONE:
            notes.warn(f"{str(name)!r} is taken for a class. If it means that there is no label, say so (na=['{name}'], or --na={name}).")
    numbers = [_number(str(name)) for name in labels.classes]
    many = len(numbers) > MANY_NUMBERS and (labels.codes >= 0).sum() < SELDOM * len(numbers)
    if None not in numbers and (many or any(number % 1 for number in numbers if number is not None)):
        notes.warn(
            f"The labels are {len(numbers)} different numbers, such as {labels.classes[0]} and {labels.classes[1]}, each of which is "
            "taken for a class of its own: if they measure something, name another column as the label, or cut them into groups."
        )
    spelled: dict[str, Hashable] = {}
    for name in labels.classes:
        other = spelled.setdefault(str(name).casefold(), name)
        if other != name:
            notes.warn(f"The classes {other!r} and {name!r} differ in capitals only: are they one?")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def warn_of_giveaways(table: Table, columns: Iterable[Column], labels: Labels, notes: Notes, na: Sequence[str] = ()) -> None:
    """Say which columns tell the label by themselves: what is only known once the label is known is no feature."""
    known = np.flatnonzero(labels.codes >= 0)
    for column in columns:
        if column.kind == "category" and len(column.words) * SEEN <= len(known):
            values = np.asarray(clean(table[column.name], na).combine_chunks().dictionary_encode().indices.fill_null(-1))[known]
            different = len(np.unique(values))
            if different > 1 and different == len(np.unique(np.stack([values, labels.codes[known]]), axis=1).T):
                notes.warn(
                    f"Column {column.name!r} of {table.where} tells the label of every labelled node: if it is not known before the "
                    "label, leave it out."
                )


def _as_text(cells: pa.ChunkedArray, table: Table, name: str) -> pa.ChunkedArray:
    if shape_of(cells) in ("vector", "other"):
        raise DataError(f"{table.where}, column {name!r} holds {cells.type}: a label is text or a whole number.")
    if pa.types.is_floating(cells.type):
        fraction = where_true(pc.or_(pc.not_equal(cells, pc.floor(cells)), pc.greater(pc.abs(cells), 2.0**53)))
        if len(fraction):
            value = cells[int(fraction[0])].as_py()
            raise DataError(f"{table.row(fraction[0])}, column {name!r} holds {value}: a label is a class, not a measurement.")
        cells = cells.cast(pa.int64(), safe=False)
    return cells.cast(pa.string())


def _count_spaces(column: pa.ChunkedArray, cells: pa.ChunkedArray, table: Table, name: str, notes: Notes) -> None:
    stray = where_true(pc.not_equal(column, cells))
    if len(stray):
        notes.repair(f"{counted(len(stray), 'label')} in column {name!r} freed of spaces around ({table.rows(stray)}).", len(stray))


def _note_spelling(column: pa.ChunkedArray, cells: pa.ChunkedArray, name: str, notes: Notes) -> None:
    written = column.filter(cells.is_null()).drop_null()
    counts = {c["values"]: c["counts"] for c in pc.value_counts(written).to_pylist() if c["values"].strip()}
    for word, count in counts.items():
        notes.repair(f"{counted(count, 'label')} in column {name!r} written {word.strip()!r}: counted as unlabelled.", count)


def _check_classes(classes: Sequence[Hashable], text: pa.ChunkedArray, table: Table, name: str) -> None:
    labelled = len(text) - text.null_count
    if not labelled:
        raise DataError(f"{table.where}: no row has a label in column {name!r}. Name another column, or fill it in for some nodes.")
    if len(classes) == 1:
        raise DataError(
            f"{table.where}: every label in column {name!r} is {classes[0]!r}. There must be two classes or more to tell apart."
        )
    if len(classes) == labelled > 2:
        raise DataError(f"{table.where}: all {labelled:,} labels in column {name!r} are different. Name the column that holds the classes.")
    if len(classes) > MANY_CLASSES and labelled < TOO_FEW * len(classes):
        raise DataError(
            f"{table.where}: the {labelled:,} labels in column {name!r} are {len(classes):,} different ones, such as {classes[0]} and "
            f"{classes[1]}, so it looks like an amount or a name. Name the column that holds the classes."
        )


def read_split(table: Table, name: str | None, na: Sequence[str] = ()) -> list[tuple[Any, Any, Any]]:
    """The split that a column gives, if there is one: train, val (valid, validation), test; empty for nodes in no part."""
    if name is None:
        return []
    cells = clean(table[name], na)
    if not is_text(cells):
        raise DataError(f"{table.where}, column {name!r} holds {cells.type}: a split column says train, val or test.")
    lower = pc.utf8_lower(cells)
    found = pc.index_in(lower, value_set=pa.array(PARTS))
    strange = where_true(pc.and_(found.is_null(), cells.is_valid()))
    if len(strange):
        raise DataError(
            f"{table.row(strange[0])}, column {name!r} holds {cells[int(strange[0])].as_py()!r} ({counted(len(strange), 'such row')}): "
            "a split column says train, val or test, or nothing. If it is something else, use none (split='none', or --split none)."
        )
    part = np.array([*PARTS.values(), -1])[numpy_array(pc.fill_null(found, len(PARTS)), np.int64)]
    part[np.asarray(cells.is_null())] = -1
    return [(part == 0, part == 1, part == 2)]
