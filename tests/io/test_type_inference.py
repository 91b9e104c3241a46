"""Type inference: the kind of each column."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

from everynode.errors import DataError
from everynode.io.cells import Cells
from everynode.io.column_fitting import fit_column
from everynode.io.summary import Notes
from everynode.io.table_files import open_table


def cells(values, na=()):
    return Cells(open_table({"x": values}, Notes()), "x", na)


def fit(values, kind=None):
    """The column that these values make, and its features as rows."""
    column = fit_column(cells(values), kind)
    return column, None if column.kind == "ignored" else apply(column, values)[0]


def apply(column, values):
    notes = Notes()
    features = column.transform(cells(values), notes)
    rows = features.toarray() if scipy.sparse.issparse(features) else features
    assert rows.shape == (len(values), len(column.feature_names))
    return rows, [note.text for note in notes.notes]


TITLES = [
    "deep learning of graphs",
    "graphs and trees",
    "learning to learn",
    "deep deep nets",
    "of mice and men",
    "trees of life",
]


GUESSED = [
    (["1", "2.5", "-3e2", "+4"], "number"),
    ([1, 2, 5, None], "number"),
    (["1,5", "2,25", "7"], "number"),
    (["1,234", "2,000,000.5", "7"], "number"),
    (["12"] * 30 + ["13"] * 30 + ["unknown"], "number"),  # a few words among numbers count as missing
    (["yes", "No", "yes", ""], "boolean"),
    (["TRUE", "false"], "boolean"),
    (["0", "1", "1"], "boolean"),
    (["yes", None, "Yes"], "boolean"),  # where it is missing says the rest
    (["N", "F", "N"], "category"),  # both mean no
    (["y", "t", "t"], "category"),
    ([0.0, 1.0, 0.0], "boolean"),
    ([True, False], "boolean"),
    (["2020-01-31", "2021-12-01 08:00", None], "date"),
    ([datetime.date(2020, 1, 31), datetime.date(2021, 1, 1)], "date"),
    ([datetime.datetime(2020, 1, 31), datetime.datetime(2021, 1, 1), -6.2e16], "date"),  # a time beyond all years
    (["red", "blue", "red"], "category"),
    (["New York", "Rome", "New York", "Rome"], "category"),
    (TITLES, "text"),
    ([["graph", "tree"], ["tree", "life"], ["graph", "life"]], "list"),
    ([["graph", "tree"], ["life", "death"], ["leaf"]], "text"),  # no word repeats
    (["jazz;rock", "jazz", "rock;jazz", "folk", "folk"], "list"),
    (["jazz|rock", "jazz", "rock|jazz", "folk", "folk"], "list"),
    (['["a", "b"]', '["b"]', "[]", '["a"]'], "list"),
    (["['a', 'b']", "['b']", "['a']"], "list"),  # as pandas writes a list
    (["[0.5, 1]", "[2, 3]"], "vector"),
    ([[1, 2], [2], [1]], "list"),
    (["of mice; men", "war; peace", "crime; punishment"], "text"),
    ([[1.0, 2.0], [3.0, 4.0]], "vector"),
    (["a1", "b2", "c3"], "ignored"),
    (["", None, "NA"], "ignored"),
    (["same"] * 5, "ignored"),
    ([3, 3, 3], "ignored"),
    (["31.12.2020", "01.02.2021 08:30"], "date"),
    (["12/31/2020", "2/1/2021 8:30 PM"], "date"),
    (["01/02/2021", "03/04/2021"], "ignored"),  # the day or the month comes first
    (["31/01/2021", "12/31/2021"], "ignored"),
    (["1.2.10", "1.3.0", "2.0.1"], "ignored"),  # versions
    ([{"a": 1}, {"a": 2}], "ignored"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind"), GUESSED)
def test_the_kind_of_a_column(values, kind):
    column, features = fit(values)
    assert column.kind == kind
    assert column.summary.kind == kind
    if kind == "ignored":
        assert column.reason
        assert column.feature_names == []
    else:
        assert np.isfinite(features).all()


def test_whole_numbers_with_zeros_in_front_are_codes():
    zips = ["01067", "10115", "80331", "01067", "10115", None]
    column, features = fit(zips)
    assert (column.kind, column.words) == ("category", ("01067", "10115", "80331"))
    assert column.summary.detail == "3 values, one feature for missing; codes with leading zeros"
    assert features.shape == (6, 4)
    ids, _ = fit([f"{i:05}" for i in range(200)])
    assert (
        ids.summary.detail == "every value is different: a name or an id; codes with leading zeros"
    )
    assert fit([*zips * 10, "unknown"])[0].kind == "category"
    for numbers in (
        ["007", "7", "12"],
        ["0.5", "1.5", "0.7"],
        ["10", "11", "15"],
        ["0", "1", "5"],
        ["-01", "-02", "-05"],
    ):
        assert fit(numbers)[0].kind == "number"
    assert fit(zips, "number")[0].kind == "number"


def test_large_unsigned_numbers_are_numbers():
    assert fit(pa.array([2**63, 2**63 + 1, 5, 5], pa.uint64()))[0].kind == "number"


@pytest.mark.parametrize(
    "codes",
    [
        ["USD1", "USD2", "USD3"] * 50,
        ["$", "$$", "$$$"] * 50,
        ["ABC 1", "ABC 2"] * 50,
        ["5 eur", "6 eur"] * 50,
        ["%5", "%6"] * 50,
    ],
)
def test_codes_are_no_money(codes):
    assert fit(codes)[0].kind == "category"


def test_two_units_are_no_number():
    column, _ = fit(["5 EUR", "7 USD", "9 EUR", "7 USD"] * 5)
    assert (column.kind, column.reason) == (
        "category",
        "not a number: written with both EUR and USD",
    )
    both = [f"{'€$'[i % 2]}{i}.99" for i in range(200)]
    assert (
        fit(both)[0].reason
        == "every value is different: a name or an id; not a number: written with both $ and €"
    )
    with pytest.raises(
        DataError,
        match=r"is declared as number, but 200 of 200 cells are not, such as '€0.99' in record 1 \(written with both \$ and €\)\. Write",
    ):
        fit(both, "number")
