"""Label encoding: the label column and the split column of a node table."""

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
from everynode.io.cells import Cells
from everynode.io.column_names import SPLIT_WORDS, UNLABELED_WORDS
from everynode.io.ids import as_integers, natural_values
from everynode.io.lists import JOINER
from everynode.io.parsing import is_text
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, where_true, writable_array

#: A label column with more classes than this is refused as amounts or names if this share of the
#: labels differs: the first share applies to numbers, the second to words.
MANY_CLASSES, AMOUNT_SHARE, NAME_SHARE = 20, 0.5, 0.9
#: The least number of distinct numbers, and their largest mean count, that suggest a measurement.
MANY_NUMBERS, RARE = 20, 10
#: Whole numbers as pandas writes them in a column with missing values.
FLOAT_INTEGER = r"^(0|-?[1-9]\d*)\.0$"
#: A message lists at most this many classes.
LISTED_CLASSES = 10


class Labels(NamedTuple):
    """The encoded labels of a node table.

    Attributes
    ----------
    codes : array of shape (n,)
        Class indices; -1 for an unlabeled node.
    classes : tuple
        The class names, in the order of their indices.
    """

    codes: npt.NDArray[np.int64]
    classes: tuple[Hashable, ...]

    def counts(self) -> dict[str, int]:
        """Count the nodes per class."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        return {str(name): int(count) for name, count in zip(self.classes, counts, strict=True)}


def read_labels(
    table: Table,
    name: str | None,
    notes: Notes,
    na: Sequence[str] = (),
    *,
    classes: Sequence[Hashable] | None = None,
    few: bool = False,
) -> Labels:
    """Read the labels of a node table.

    Without ``classes``, the column must hold two classes or more, unless ``few`` labels are
    enough. With ``classes``, other labels count as unlabeled. Without a column (``name=None``),
    every node is unlabeled.
    """
    if name is None:
        return Labels(np.full(table.num_rows, -1), tuple(classes or ()))
    column, cells = table[name], Cells(table, name, na)
    text = label_text(cells)
    if is_text(column):
        _note_spaces(column, cells, notes)
    if is_text(column) or cells.type == "number":
        _note_missing_words(column, cells, notes)
    is_fitting = classes is None
    if classes is None:
        classes = sorted(natural_values(pa.chunked_array([pc.unique(text.drop_null())])))
        if not few or len(classes) > MANY_CLASSES:
            _check_classes(classes, text, table, name)
    names = pa.array([str(c) for c in classes], pa.string())
    codes = writable_array(pc.fill_null(pc.index_in(text, value_set=names), -1), np.int64)
    codes[np.asarray(text.is_null())] = -1
    new = np.flatnonzero((codes < 0) & np.asarray(text.is_valid()))
    if len(new):
        notes.warn(
            f"{counted(len(new), 'label')} in column {name!r} not among the model's classes "
            f"({text[int(new[0])].as_py()!r}: {table.rows(new)}), treated as unlabeled.",
            len(new),
        )
    labels = Labels(codes, tuple(classes))
    if is_fitting:
        _warn_of_odd_classes(labels, notes)
    return labels


def label_text(cells: Cells) -> pa.ChunkedArray:
    """Return labels as text, null where one is missing."""
    values, table = cells.values, cells.table
    if cells.type in ("vector", "other"):
        raise DataError(
            f"{table.where}, column {cells.name!r} holds {values.type}. A label is text or a whole "
            "number."
        )
    if pa.types.is_floating(values.type):
        rule = "A label is a class, not a measurement"
        values = as_integers(values, table, cells.name, rule)
    text = values.cast(pa.string())
    several = where_true(pc.match_substring(text, JOINER))
    if len(several):
        raise DataError(
            f"{table.row(several[0])}, column {cells.name!r} holds several labels "
            f"({text[int(several[0])].as_py().replace(JOINER, ', ')}; "
            f"{counted(len(several), 'such row')}). A node has one label: keep one, or name "
            "another column (label='...', or --label)."
        )
    # In a column with missing labels, pandas writes 1 as 1.0.
    if pc.all(pc.match_substring_regex(text, FLOAT_INTEGER)).as_py():
        text = pc.replace_substring_regex(text, r"\.0$", "")
    return text


def _note_spaces(column: pa.ChunkedArray, cells: Cells, notes: Notes) -> None:
    trimmed = where_true(pc.not_equal(column, cells.values))
    if len(trimmed):
        notes.repair(
            f"{counted(len(trimmed), 'label')} in column {cells.name!r} trimmed: surrounding "
            f"spaces removed ({cells.table.rows(trimmed)}).",
            len(trimmed),
        )


def _note_missing_words(column: pa.ChunkedArray, cells: Cells, notes: Notes) -> None:
    words = column.filter(cells.values.is_null()).drop_null().cast(pa.string())
    for entry in pc.value_counts(words).to_pylist():
        word, count = entry["values"].strip(), entry["counts"]
        if word:
            notes.repair(
                f"{counted(count, 'label')} in column {cells.name!r} written {word!r}, treated as "
                "unlabeled.",
                count,
            )


def _check_classes(
    classes: Sequence[Hashable], text: pa.ChunkedArray, table: Table, name: str
) -> None:
    """Refuse a label column without labels, with a single class, or with names or amounts."""
    num_labeled = len(text) - text.null_count
    if not num_labeled:
        raise DataError(
            f"{table.where}: no row has a label in column {name!r}. Name another column "
            "(label='...', or --label), or label some nodes."
        )
    if len(classes) == 1:
        raise DataError(
            f"{table.where}: every label in column {name!r} is {classes[0]!r}. A model needs "
            f"two classes: name another column (label='...', or --label). {table.column_list()}"
        )
    if len(classes) == num_labeled > 2:
        raise DataError(
            f"{table.where}: all {num_labeled:,} labels in column {name!r} are different. Name "
            f"the column that holds the classes (label='...', or --label). {table.column_list()}"
        )
    are_amounts = pc.all(pc.match_substring_regex(text, r"^[+-]?[\d.,]+$")).as_py()
    max_share = AMOUNT_SHARE if are_amounts else NAME_SHARE
    if len(classes) > MANY_CLASSES and len(classes) > max_share * num_labeled:
        raise DataError(
            f"{table.where}: the {num_labeled:,} labels in column {name!r} have "
            f"{len(classes):,} different values, such as {classes[0]} and {classes[1]}. The column "
            "looks like an amount or a name. Name the column that holds the classes (label='...', "
            f"or --label). {table.column_list()}"
        )


# ---------------------------------------------------------------------- odd classes


def _warn_of_odd_classes(labels: Labels, notes: Notes) -> None:
    """Warn of rare classes, words for "no label", measurements, and classes that look alike."""
    rare = [name for name, count in labels.counts().items() if count == 1]
    if rare:
        names = ", ".join(rare[:LISTED_CLASSES])
        names += " and others" if len(rare) > LISTED_CLASSES else ""
        notes.warn(
            f"Classes with one node, which cannot be both learned and tested: {names}.", len(rare)
        )
    for name in labels.classes:
        if str(name).casefold() in UNLABELED_WORDS:
            notes.warn(
                f"{str(name)!r} is treated as a class. If it means unlabeled, declare it missing "
                f"(na=['{name}'], or --na={name})."
            )
    numbers = [_finite_number(str(name)) for name in labels.classes]
    num_labeled = (labels.codes >= 0).sum()
    are_many = len(numbers) > MANY_NUMBERS and num_labeled < RARE * len(numbers)
    are_fractions = any(number % 1 for number in numbers if number is not None)
    if None not in numbers and (are_many or are_fractions):
        notes.warn(
            f"The labels are {len(numbers)} different numbers, such as {labels.classes[0]} and "
            f"{labels.classes[1]}, and each is treated as a class. If they are a measurement, name "
            "another label column, or group them into classes."
        )
    _warn_of_capitals(labels.classes, notes)
    _warn_of_lookalikes(labels.classes, notes)


def _warn_of_capitals(classes: Sequence[Hashable], notes: Notes) -> None:
    spellings: dict[str, list[str]] = {}
    for name in classes:
        spellings.setdefault(str(name).casefold(), []).append(repr(name))
    for *others, last in spellings.values():
        if others:
            notes.warn(
                f"The classes {', '.join(others)} and {last} differ only in capitals. If they are "
                "one class, write them in the same way."
            )


def _warn_of_lookalikes(classes: Sequence[Hashable], notes: Notes) -> None:
    """Warn of classes that look the same or are the same number."""
    by_look: dict[str, Hashable] = {}
    by_value: dict[float, Hashable] = {}
    advice = "If they are one class, write them in the same way."
    for name in classes:
        text = str(name)
        normalized = unicodedata.normalize("NFKC", text)
        visible = "".join(char for char in normalized if unicodedata.category(char) != "Cf")
        number = _finite_number(text)
        lookalike = by_look.setdefault(visible.casefold(), name)
        equal = name if number is None else by_value.setdefault(number, name)
        if lookalike != name and str(lookalike).casefold() == text.casefold():
            continue  # they differ only in capitals
        if lookalike != name:  # in ASCII, which shows the difference
            notes.warn(f"The classes {lookalike!a} and {name!a} look the same. {advice}")
        elif equal != name:
            notes.warn(f"The classes {equal!r} and {name!r} are the same number. {advice}")


def _finite_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ---------------------------------------------------------------------- split


def read_split(
    table: Table,
    name: str | None,
    na: Sequence[str] = (),
    *,
    notes: Notes | None = None,
) -> list[tuple[Any, Any, Any]]:
    """Read the split column: train, val or test, and empty for nodes in no part.

    Other words are refused. With ``notes`` they cause a warning, and their nodes are in no part.
    Returns masks for training, validation and test nodes, or an empty list without a split.
    """
    if name is None:
        return []
    cells = Cells(table, name, na)
    values = cells.values
    if is_text(values):
        words = pa.array(list(SPLIT_WORDS))
        word_index = pc.index_in(pc.utf8_lower(values), value_set=words)
    elif notes is None:
        raise DataError(
            f"{table.where}, column {name!r} holds {values.type}. A split column holds train, val "
            "or test."
        )
    else:
        word_index = pa.nulls(len(values), pa.int32())
    strange = where_true(pc.and_(word_index.is_null(), values.is_valid()))
    if len(strange):
        word = values[int(strange[0])].as_py()
        if notes is None:
            raise DataError(
                f"{table.row(strange[0])}, column {name!r} holds {word!r} "
                f"({counted(len(strange), 'such row')}). A split column holds train, val or test, "
                "or nothing. If it is not a split column, turn it off (split='none', or --split "
                "none)."
            )
        notes.warn(
            f"Column {name!r} of {table.where} holds {word!r} ({table.rows(strange)}), which is "
            "not train, val or test: these nodes are in no part.",
            len(strange),
        )
    if notes is not None and word_index.null_count == len(values):
        return []
    places = writable_array(pc.fill_null(word_index, len(SPLIT_WORDS)), np.int64)
    part = np.array([*SPLIT_WORDS.values(), -1])[places]
    part[np.asarray(values.is_null())] = -1
    return [(part == 0, part == 1, part == 2)]
