"""The label column and the split column of people's tables."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.columns import Column
from everynode.io.ids import natural, whole
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, where_true
from everynode.io.type_inference import clean, is_text, numpy_array, shape_of

#: How the parts of a split may be written, in lower case.
PARTS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "dev": 1,
    "test": 2,
    "testing": 2,
}
#: Classes that may mean that there is no label, in lower case.
LIKE_NONE = (
    "-1",
    "-",
    "--",
    "?",
    ".",
    "none",
    "unknown",
    "unlabelled",
    "unlabeled",
    "missing",
    "tbd",
)
#: More classes than this, of which each has fewer nodes than that on average, are names or amounts.
MANY_CLASSES, HALF, NEARLY = 20, 0.5, 0.9
#: More different whole numbers than this, of which each was seen less often than that on average, are more likely a measurement.
MANY_NUMBERS, SELDOM = 20, 10
#: A column gives the label away only if its values were seen with it this often, on average.
SEEN = 5
#: And one of numbers or days only if it has no more different ones than this for each class: it is a code of the label then.
PER_CLASS = 10
#: And if fewer columns than this would be expected to do so by chance: of many rare words, some are in the only node of a class.
CHANCE = 0.01


class Labels(NamedTuple):
    """Class indices, -1 for none, and what they stand for."""

    codes: npt.NDArray[np.int64]
    classes: tuple[Hashable, ...]

    def counts(self) -> dict[str, int]:
        """How many nodes each class has."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        return {str(name): int(count) for name, count in zip(self.classes, counts, strict=True)}


def read_labels(
    table: Table,
    name: str | None,
    notes: Notes,
    na: Sequence[str] = (),
    *,
    classes: Sequence[Hashable] | None = None,
) -> Labels:
    """The labels of a table's rows; without given ``classes`` there must be two or more in it."""
    if name is None:
        return Labels(np.full(table.num_rows, -1), tuple(classes or ()))
    column = table[name]
    cells = clean(column, na)
    text = _as_text(cells, table, name)
    if is_text(column):
        _count_spaces(column, cells, table, name, notes)
    if is_text(column) or shape_of(cells) == "number":
        _note_spelling(column, cells, name, notes)
    fitting = classes is None
    if classes is None:
        classes = sorted(natural(pa.chunked_array([pc.unique(text.drop_null())])))
        _check_classes(classes, text, table, name)
    codes = numpy_array(
        pc.fill_null(
            pc.index_in(text, value_set=pa.array([str(c) for c in classes], pa.string())), -1
        ),
        np.int64,
    )
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
        notes.warn(
            f"Classes of one node, which cannot be both learned and tested: {names}.", len(rare)
        )
    for name in labels.classes:
        if str(name).casefold() in LIKE_NONE:
            notes.warn(
                f"{str(name)!r} is taken for a class. If it means that there is no label, say so (na=['{name}'], or --na={name})."
            )
    numbers = [_number(str(name)) for name in labels.classes]
    many = len(numbers) > MANY_NUMBERS and (labels.codes >= 0).sum() < SELDOM * len(numbers)
    if None not in numbers and (
        many or any(number % 1 for number in numbers if number is not None)
    ):
        notes.warn(
            f"The labels are {len(numbers)} different numbers, such as {labels.classes[0]} and {labels.classes[1]}, each of which is "
            "taken for a class of its own: if they measure something, name another column as the label, or cut them into groups."
        )
    _warn_of_twins(labels.classes, notes)


def _warn_of_twins(classes: Sequence[Hashable], notes: Notes) -> None:
    """Classes that are one to a reader. They stay apart: only who wrote them knows."""
    cased: dict[str, list[str]] = {}
    for name in classes:
        cased.setdefault(str(name).casefold(), []).append(repr(name))
    for *others, last in cased.values():
        if others:
            notes.warn(
                f"The classes {', '.join(others)} and {last} differ in capitals only: are they one?"
            )
    spelled: dict[str, Hashable] = {}
    valued: dict[float, Hashable] = {}
    for name in classes:
        text = str(name)
        visible = "".join(
            letter
            for letter in unicodedata.normalize("NFKC", text)
            if unicodedata.category(letter) != "Cf"
        )
        number = _number(text)
        twin = spelled.setdefault(visible.casefold(), name)
        same = name if number is None else valued.setdefault(number, name)
        if twin != name and str(twin).casefold() == text.casefold():
            continue  # told above
        if twin != name:  # in ASCII, where one sees what differs
            notes.warn(
                f"The classes {twin!a} and {name!a} look the same: if they are one, write them in the same way."
            )
        elif same != name:
            notes.warn(
                f"The classes {same!r} and {name!r} are the same number: if they are one, write them in the same way."
            )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def warn_of_label_leakage(
    table: Table, columns: Sequence[Column], labels: Labels, notes: Notes, na: Sequence[str] = ()
) -> None:
    """Say which columns tell the label by themselves: what is only known once the label is known is no feature."""
    known = np.flatnonzero(labels.codes >= 0)
    # log of the number of columns that would tell it, were the labels shuffled; but for the classes that each value may stand for
    shuffled = (
        math.log(max(len(columns), 1))
        + sum(math.lgamma(n + 1) for n in labels.counts().values())
        - math.lgamma(len(known) + 1)
    )
    for column in columns:
        if column.kind in ("category", "number", "boolean", "date") and len(
            column.words
        ) * SEEN <= len(known):
            values = np.asarray(
                clean(table[column.name], na)
                .combine_chunks()
                .dictionary_encode()
                .indices.fill_null(-1)
            )[known]
            different = len(np.unique(values))
            few = column.kind == "category" or different <= min(
                PER_CLASS * len(labels.classes), len(known) / SEEN
            )
            if (
                not few
                or different < 2
                or shuffled + different * math.log(len(labels.classes)) > math.log(CHANCE)
            ):
                continue
            if different == len(
                np.unique(values.astype(np.int64) * len(labels.classes) + labels.codes[known])
            ):
                notes.warn(
                    f"Column {column.name!r} of {table.where} tells the label of every labelled node: if it is not known before the "
                    "label, leave it out."
                )


def _as_text(cells: pa.ChunkedArray, table: Table, name: str) -> pa.ChunkedArray:
    if shape_of(cells) in ("vector", "other"):
        raise DataError(
            f"{table.where}, column {name!r} holds {cells.type}: a label is text or a whole number."
        )
    if pa.types.is_floating(cells.type):
        cells = whole(cells, table, name, "a label is a class, not a measurement")
    return cells.cast(pa.string())


def _count_spaces(
    column: pa.ChunkedArray, cells: pa.ChunkedArray, table: Table, name: str, notes: Notes
) -> None:
    stray = where_true(pc.not_equal(column, cells))
    if len(stray):
        notes.repair(
            f"{counted(len(stray), 'label')} in column {name!r} freed of spaces around ({table.rows(stray)}).",
            len(stray),
        )


def _note_spelling(
    column: pa.ChunkedArray, cells: pa.ChunkedArray, name: str, notes: Notes
) -> None:
    written = column.filter(cells.is_null()).drop_null().cast(pa.string())
    counts = {
        c["values"]: c["counts"]
        for c in pc.value_counts(written).to_pylist()
        if c["values"].strip()
    }
    for word, count in counts.items():
        notes.repair(
            f"{counted(count, 'label')} in column {name!r} written {word.strip()!r}: counted as unlabelled.",
            count,
        )


def _check_classes(
    classes: Sequence[Hashable], text: pa.ChunkedArray, table: Table, name: str
) -> None:
    labelled = len(text) - text.null_count
    if not labelled:
        raise DataError(
            f"{table.where}: no row has a label in column {name!r}. Name another column, or fill it in for some nodes."
        )
    if len(classes) == 1:
        raise DataError(
            f"{table.where}: every label in column {name!r} is {classes[0]!r}. There must be two classes or more to tell apart."
        )
    if len(classes) == labelled > 2:
        raise DataError(
            f"{table.where}: all {labelled:,} labels in column {name!r} are different. Name the column that holds the classes."
        )
    amounts = pc.all(pc.match_substring_regex(text, r"^[+-]?[\d.,]+$")).as_py()
    if len(classes) > MANY_CLASSES and len(classes) > (HALF if amounts else NEARLY) * labelled:
        raise DataError(
            f"{table.where}: the {labelled:,} labels in column {name!r} are {len(classes):,} different ones, such as {classes[0]} and "
            f"{classes[1]}, so it looks like an amount or a name. Name the column that holds the classes."
        )


def read_split(
    table: Table, name: str | None, na: Sequence[str] = ()
) -> list[tuple[Any, Any, Any]]:
    """The split that a column gives, if there is one: train, val (valid, validation), test; empty for nodes in no part."""
    if name is None:
        return []
    cells = clean(table[name], na)
    if not is_text(cells):
        raise DataError(
            f"{table.where}, column {name!r} holds {cells.type}: a split column says train, val or test."
        )
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
