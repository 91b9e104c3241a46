"""Columns become features: their numbers against plain arithmetic."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from everynode.errors import DataError
from everynode.io.cells import Cells
from everynode.io.column_encoder import CLIP
from everynode.io.column_fitting import MAX_CATEGORIES, fit_column
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


def test_numbers_are_standardized_and_missing_ones_are_the_mean():
    column, features = fit([1, 2, 6, None])
    known = np.array([1, 2, 6.0])
    np.testing.assert_allclose(features[:3, 0], (known - known.mean()) / known.std(), rtol=1e-6)
    assert features[3].tolist() == [0, 1]
    assert features[:3, 1].tolist() == [0, 0, 0]
    assert column.feature_names == ["x", "x is missing"]


@pytest.mark.parametrize("text", [["1,5", "2,25", "7"], ["1.5", "2.25", "7"], [1.5, 2.25, 7]])
def test_decimal_commas(text):
    np.testing.assert_array_equal(fit(text)[1], fit([1.5, 2.25, 7.0])[1])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (["12,5", "1.234", "980", "2.500"], [12.5, 1234, 980, 2500]),
        (["12,5", "1.234,56", "-1.234.567", "2.500.000,5"], [12.5, 1234.56, -1234567, 2500000.5]),
        (["1.234,56", "2.345,67", "1.000,00"], [1234.56, 2345.67, 1000]),
        (
            ["12,5", "1.5", "0.125"],
            [12.5, 1.5, 0.125],
        ),  # points too, but none can separate thousands
        (["12,5", "1.234.567", "2.345.678", "3.456.789"], [12.5, 1234567, 2345678, 3456789]),
    ],
)
def test_points_between_thousands_where_the_comma_is_decimal(text, numbers):
    column, features = fit(text)
    assert column.kind == "number"
    np.testing.assert_array_equal(features, fit(numbers)[1])
    np.testing.assert_array_equal(apply(column, text)[0], features)


def test_points_that_may_be_either_are_refused():
    sentence = "'x' of the table of nodes holds 1.234 {}, which may mean 1.234 or 1234. Write it without the point, or use the same decimal sign"
    with pytest.raises(DataError, match=sentence.format("beside 12,5")):
        fit(["12,5", "1.234", "1.5"])
    column, features = fit(["12,5", "1,234", "7"])
    with pytest.raises(DataError, match=sentence.format("after decimal commas in training")):
        apply(column, ["12", "1.234", "7"])
    np.testing.assert_array_equal(apply(column, ["12.5", "1.234", "7"])[0], features)
    np.testing.assert_array_equal(apply(column, ["12.5", "1,234", "7"])[0], features)
    plain, _ = fit(["12.5", "1.234", "7"])  # no commas: points are what they always are
    assert apply(plain, ["12", "1.234", "7"])[0].shape == (3, 1)


def test_another_file_may_write_its_commas_otherwise():
    column, features = fit(["1.5", "2.25", "7"])
    for same in (["1,5", "2,25", "7"], ["1.5", "2.25", "7"]):
        np.testing.assert_array_equal(apply(column, same)[0], features)
    column, features = fit(["1,5", "2,25", "7"])
    np.testing.assert_array_equal(apply(column, ["1.5", "2.25", "7"])[0], features)
    column, features = fit(["1,500", "2,250", "7"])  # thousands
    for same in (["1500", "2250", "7"], ["1500,0", "2250,0", "7"], ["1,500.0", "2,250", "7"]):
        np.testing.assert_array_equal(apply(column, same)[0], features)
    column, features = fit(["1,5", "2,250", "7"])  # decimal
    np.testing.assert_array_equal(apply(column, ["1,500", "2,250", "7"])[0], features)


def test_commas_that_may_be_either_are_refused_where_the_model_does_not_tell():
    column, features = fit(["1.500", "2.250", "7"])
    with pytest.raises(
        DataError,
        match=r"'x' of .* holds 1,500, which may mean 1.500 or 1500. Write it with a point, or without the comma",
    ):
        apply(column, ["1,500", "2,250", "7"])
    np.testing.assert_array_equal(apply(column, ["1,500", "2,25", "7"])[0], features)


def test_words_with_commas_do_not_hide_what_commas_in_numbers_are():
    column, _ = fit(["1.5", "2.25", "7"])
    rows, notes = apply(column, ["1,5", "2,25", "a, b"])
    np.testing.assert_array_equal(rows[:2], apply(column, ["1.5", "2.25"])[0])
    assert "1 cell not a number ('a, b'" in notes[0]


def test_a_column_of_something_else_is_refused_and_a_few_odd_cells_are_missing():
    column, _ = fit(["1.5", "2.25", "7"])
    with pytest.raises(
        DataError,
        match=r"'x' of .*: 3 of 4 cells are not a number \('old': record.*but the column held a number in training. Correct these cells, or leave them empty",
    ):
        apply(column, ["old", "older", "?", "7"])
    for few in (["old", "older", "7", "8"], ["old", "older", "7"], ["?"]):
        _, notes = apply(column, few)
        assert "not a number" in notes[0]


def test_thousands():
    np.testing.assert_array_equal(
        fit(["1,234", "2,000,000.5", "7"])[1], fit([1234, 2000000.5, 7])[1]
    )


def test_mostly_zeros_stay_zeros():
    _, features = fit([0, 0, 0, 4, 2])
    assert features[:3].tolist() == [[0], [0], [0]]
    np.testing.assert_allclose(
        features[3:, 0], np.array([4, 2]) / np.std([0, 0, 0, 4, 2]), rtol=1e-6
    )


def test_far_reaching_numbers_are_taken_by_their_logarithm():
    values = [*range(1, 400), 10**9]
    column, features = fit(values)
    assert column.log
    logs = np.log1p(values)
    np.testing.assert_allclose(features[:, 0], (logs - logs.mean()) / logs.std(), rtol=1e-5)
    assert not fit([*range(1, 400), -(10**9)])[0].log


def test_a_wild_value_in_a_later_file_is_held():
    column, _ = fit([1, 2, 3])
    assert apply(column, ["1e29", "-1e29", "2"])[0][:, 0].tolist() == [CLIP, -CLIP, 0]
    with pytest.raises(DataError, match="record 2, column 'x' holds inf"):
        apply(column, ["1", "inf", "2"])


def test_words_among_numbers_count_as_missing_and_are_said():
    column, _ = fit([1, 2, 3])
    features, notes = apply(column, ["1", "two", "3", ""])
    assert features[1].tolist() == features[3].tolist() == [0]
    assert (
        notes[0]
        == "Column 'x' of the table of nodes: 1 cell not a number ('two': record 2), treated as missing."
    )
    assert "2 missing values filled with the mean" in notes[1]


def test_days():
    _, features = fit(["2020-01-01", "2020-01-03", "2020-01-08 17:00"])
    days = np.array([0, 2, 7 + 17 / 24])
    np.testing.assert_allclose(features[:, 0], (days - days.mean()) / days.std(), rtol=1e-6)
    np.testing.assert_allclose(
        fit([datetime.datetime(2020, 1, day, 17 * (day == 8)) for day in (1, 3, 8)])[1],
        features,
        rtol=1e-6,
    )


def test_one_feature_for_each_value_and_one_for_missing():
    column, features = fit(["b", "a", None, "b"])
    assert column.feature_names == ["x = a", "x = b", "x is missing"]
    assert features.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    new, notes = apply(column, ["c", "a", "a", "a"])
    assert new[0].tolist() == [0, 0, 0]
    assert "1 value not seen in training ('c')" in notes[0]


def test_many_values_share_one_feature():
    values = [f"v{i}" for i in range(MAX_CATEGORIES + 5) for _ in range(1 + (i < MAX_CATEGORIES))]
    column, features = fit(values)
    assert len(column.words) == MAX_CATEGORIES
    assert column.feature_names[-1] == "x = (other)"
    assert features.sum(1).tolist() == [1] * len(values)
    assert features[-5:, -1].tolist() == [1] * 5
    assert apply(column, ["never seen"])[0][0, -1] == 1


def test_text_is_scikit_learns_tf_idf():
    column, features = fit(TITLES)
    reference = TfidfVectorizer(sublinear_tf=True)
    np.testing.assert_allclose(features, reference.fit_transform(TITLES).toarray(), rtol=1e-5)
    assert list(column.words) == reference.get_feature_names_out().tolist()
    new = ["trees of trees", "nothing known", ""]
    rows, notes = apply(column, new)
    np.testing.assert_allclose(rows, reference.transform(new).toarray(), rtol=1e-5)
    assert "2 rows without a known word" in notes[0]


def test_words_that_tell_nothing_are_left_out():
    column, _ = fit(
        [f"person {name} works on {thing}" for name in "ABCDEFGHIJ" for thing in ("code", "tea")]
    )
    assert column.words == ("code", "tea")
    assert fit([f"person {name}{name}" for name in "ABCDEFGHIJ"])[0].kind == "ignored"


def test_vectors():
    values = [[1.0, 2.0], [3.0, 2.0], None, [5.0, 8.0]]
    column, features = fit(values)
    known = np.array([[1, 2], [3, 2], [5, 8.0]])
    np.testing.assert_allclose(
        features[[0, 1, 3], :2], (known - known.mean(0)) / known.std(0), rtol=1e-6
    )
    assert features[2].tolist() == [0, 0, 1]
    with pytest.raises(
        DataError, match=r"record 2, column 'x' has a list of 1 where others have 2"
    ):
        fit([[1.0, 2.0], [3.0]])
    with pytest.raises(DataError, match="lists of 3 numbers; 2 are expected"):
        apply(column, [[1.0, 2.0, 3.0]])


MONEY = {
    "€": ["€1,334.73", "€ 20.50", "-€3", "€-4.25", "(€12.50)", "€0"],
    "$": ["$1,334.73", "20.5 $", "($3)", "$(4.25)", "-12.50$", "+$0"],
    "EUR": ["1,334.73 EUR", "EUR 20.50", "-3EUR", "- 4.25\u00a0EUR", "(12.50) EUR", "0 EUR"],
    "CHF": ["CHF1,334.73", "CHF20.50", "CHF -3", "(CHF 4.25)", "CHF-12.50", "CHF\u202f0"],
    "%": ["1,334.73%", "20.5 %", "-3%", "(4.25%)", "-12.50\u202f%", "0%"],
}


@pytest.mark.parametrize("unit", MONEY)
def test_money_and_percents_are_numbers(unit):
    """As words they were lost, or a hundred features of noise."""
    column, features = fit(MONEY[unit])
    assert (column.kind, column.unit) == ("number", unit)
    assert column.summary.detail == f"standardized, written with {unit}"
    np.testing.assert_allclose(features, fit([1334.73, 20.5, -3, -4.25, -12.5, 0])[1], rtol=1e-6)
    assert fit(MONEY[unit], "number")[0] == column


@pytest.mark.parametrize(
    ("money", "numbers"),
    [
        (["1.334,73 €", "20,50 €", "7 €"], [1334.73, 20.5, 7]),
        (
            ["1.334 €", "980 €", "2.500.000 €"],
            [1334, 980, 2500000],
        ),  # the point was decimal here: wrong by 1000
        (["1.334 €", "12.500 €", "2.500.000 €"], [1334, 12500, 2500000]),
        (["1.739 €", "1.801 €", "2.000 €", "0 €"], [1.739, 1.801, 2, 0]),  # per litre
        (["1.125 €", "2.5 €", "7 €"], [1.125, 2.5, 7]),
        (["1 334,50 €", "1\u00a0334 €", "2\u202f500\u202f000 €"], [1334.5, 1334, 2500000]),
        (["CHF 1'334.50", "CHF 2’500’000", "980.00 CHF"], [1334.5, 2500000, 980]),
    ],
)
def test_thousands_in_money(money, numbers):
    column, features = fit(money)
    assert column.kind == "number"
    np.testing.assert_allclose(features, fit(numbers)[1], rtol=1e-6)
    np.testing.assert_array_equal(apply(column, money)[0], features)


@pytest.mark.parametrize(
    "money", [["$1.125", "$1.250", "$2", "$3.375"], ["1.334 €", "980 €", "12 €"]]
)
def test_money_that_may_be_thousands_is_refused(money):
    with pytest.raises(
        DataError,
        match=r"holds 1\.\d+ beside whole amounts, which may mean 1\.\d+ or 1\d+\. Write it without the point",
    ):
        fit(money)
    column, _ = fit(["$1.50", "$12.50", "$7.25"])  # a point that is plainly decimal stays so
    np.testing.assert_allclose(
        apply(column, ["$1.125", "$2.00"])[0], apply(column, ["$1.125", "$2"])[0]
    )


def test_brackets_are_a_minus():
    """As words they were missing, or the whole column was lost."""
    accounts = ["1,334.73", "(200.00)", "(1,250.50)", "20"]
    column, features = fit(accounts)
    assert (column.kind, column.unit) == ("number", "")
    np.testing.assert_array_equal(features, fit([1334.73, -200, -1250.5, 20])[1])
    np.testing.assert_array_equal(apply(column, accounts)[0], features)
    np.testing.assert_array_equal(apply(column, ["(200.00)"])[0], features[1:2])
    assert fit(["(030)", "(040)", "(089)", "(040)"])[0].kind == "category"  # no number without
    assert fit(["5 (2)", "6 (3)", "5 (2)"])[0].kind != "number"


def test_money_by_the_rules_of_numbers():
    known = [f"${i}" for i in range(1, 96)]
    column, _ = fit([*known, "free", "free", "", "tba", "$"])
    assert (column.kind, column.missing) == ("number", True)
    assert fit([*known, *["free"] * 6])[0].kind == "category"
    assert fit(["0%", "1%", "0%"])[0].kind == "number"
    coded = fit_column(cells(["$-999", "$5", "$6"], ["-999"]))
    assert (coded.missing, coded.center) == (True, (5.5,))
    rows, notes = apply(column, ["$5", "€5", "7", "0"])
    assert rows[1].tolist() == [0, 1]
    assert (
        notes[0]
        == "Column 'x' of the table of nodes: 1 cell not a number with $ ('€5': record 2), treated as missing."
    )
    assert (
        notes[1]
        == "Column 'x' of the table of nodes: 1 cell without $, assumed to have the same unit (record 3)."
    )


def test_a_model_reads_its_unit_or_none():
    column, features = fit(["€1,334.73", "€20.50", "€3"])
    rows, notes = apply(column, ["1334.73", "20.5", "3"])
    np.testing.assert_array_equal(rows, features)
    assert notes == [
        "Column 'x' of the table of nodes: 3 cells without €, assumed to have the same unit (records 1, 2, 3)."
    ]
    np.testing.assert_array_equal(apply(column, [1334.73, 20.5, 3.0])[0], features)
    sentence = r"4 of 4 cells are not a number with € \('\$5': records 1, 2, 3 and 1 more\)"
    with pytest.raises(DataError, match=sentence):
        apply(column, ["$5", "$6", "$7", "$8"])
    plain, _ = fit(["0.5", "0.75", "0.25"])
    with pytest.raises(DataError, match="4 of 4 cells are not a number"):
        apply(plain, ["50%", "75%", "25%", "1%"])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=2, max_size=30))
def test_numbers_as_text_or_as_numbers_are_the_same(values):
    column, features = fit(values)
    text, again = fit(["" if value is None else repr(value) for value in values])
    assert text == column
    assert (again is None) == (features is None)
    if features is not None:
        np.testing.assert_array_equal(again, features)
