"""Fitting a column: declared kinds, and row numbers that programs add."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

import everynode as en
from everynode.errors import DataError, UsageError
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


def test_a_kind_can_be_said():
    assert fit(["1050", "8001", "1050"])[0].kind == "number"
    column, features = fit(["1050", "8001", "1050"], "category")
    assert column.words == ("1050", "8001")
    assert features.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert fit(["a1", "b2", "c3"], "category")[0].kind == "category"
    assert fit(["1", "2"], "ignored")[0].kind == "ignored"
    with pytest.raises(UsageError, match=r"'nmber'.*did you mean 'number'"):
        fit(["1"], "nmber")
    with pytest.raises(DataError, match="cannot be a vector"):
        fit(["1", "2"], "vector")


def test_a_kind_that_was_said_must_be_that_of_nearly_all_cells():
    """They were all treated as missing, and the column ignored for a reason that was false."""
    price = [f"about {i}" for i in range(20)]
    with pytest.raises(
        DataError,
        match=r"Column 'x' of the table of nodes is declared as number, but 20 of 20 cells are not, such as 'about 0' in record 1\. "
        r"Write them as in 1234.5, or leave them empty, or declare another kind\.$",
    ):
        fit(price, "number")
    with pytest.raises(
        DataError,
        match=r"is declared as date, but 2 of 3 cells are not, such as 'Dec 31' in record 1. Write them as in 2020-12-31",
    ):
        fit(["Dec 31", "2021-02-01", "Nov 30"], "date")
    with pytest.raises(
        DataError,
        match=r"is declared as boolean, but 1 of 3 cells is not, such as 'maybe' in record 3. Write them as yes or no",
    ):
        fit(["yes", "no", "maybe"], "boolean")
    known = [str(i) for i in range(95)]
    assert fit([*known, "a", "b", "?", "?", "c"], "number")[0].kind == "number"
    missing = (
        r"but 6 of 101 cells are not, such as '\?' in record 98\. .*declare '\?' a missing value of all columns "
        r"\(na=\['\?'\], or --na='\?'\)"
    )
    with pytest.raises(DataError, match=missing):
        fit([*known, "a", "b", "?", "?", "c", "d"], "number")
    assert fit(["", None, "NA"], "number")[0].reason == "empty"
    assert fit(["3", None, "3"], "number")[0].reason == "all values are equal"


def test_one_slip_in_ten_is_missing():
    assert fit([*map(str, range(9)), "unknown"], "number")[0].kind == "number"


@pytest.mark.parametrize("heading", ["", '""', "Unnamed: 0"])
@pytest.mark.parametrize("first", [0, 1])
def test_the_row_number_that_pandas_and_r_write_is_no_feature(write, heading, first):
    """A table that is sorted by its label has the label in it."""
    rows = [f"{i + first},n{i},{x},{'ab'[i > 2]}" for i, x in enumerate([3, 1, 4, 1, 5])]
    write(
        nodes_csv=f"{heading},id,x,label\n" + "\n".join(rows),
        edges_csv="source,target\nn0,n1\nn1,n9\n",
    )
    graph = en.read("nodes.csv", "edges.csv", unknown="add")
    name = "Unnamed: 0" if "Unnamed" in heading else "column 1"
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    assert f"column    {name}: ignored, a row number" in graph.summary.lines()
    assert en.read(
        "nodes.csv", "edges.csv", unknown="drop", features=f"{name}:number"
    ).feature_encoder.feature_names == [name]
    again = en.read(
        {"id": ["n0", "n1"], "x": [1, 2]},
        {"source": ["n0"], "target": ["n1"]},
        feature_encoder=graph.feature_encoder,
    )
    assert again.num_features == 2


def test_an_index_that_pandas_wrote_into_parquet_is_no_feature(tmp_path):
    columns = {
        "id": [5, 6, 7],
        "x": [3, 1, 4],
        "label": ["a", "a", "b"],
        "__index_level_0__": [0, 1, 2],
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    graph = en.read(tmp_path / "nodes.parquet", {"source": [5], "target": [6]})
    assert graph.feature_encoder.feature_names == ["x"]
