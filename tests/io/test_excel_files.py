"""Excel workbooks as tables."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import openpyxl
import pytest

import everynode as en
from everynode.errors import DataError
from everynode.io.excel_files import read_excel
from everynode.io.formats import size_limit
from everynode.io.summary import Notes

NODES = [
    ["Key", "Sales", "Since", "Label"],
    ["a", 1.5, datetime.datetime(2020, 1, 31), "x"],
    ["b", 2, datetime.datetime(2021, 1, 31), "y"],
    ["c", None, datetime.datetime(2022, 1, 31), None],
]
EDGES = [["from", "to"], ["a", "b"], ["b", "c"]]


def book(**sheets: list[list[object]]) -> Path:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        page = workbook.create_sheet(title)
        for row in rows:
            page.append(row)
    workbook.save("book.xlsx")
    return Path("book.xlsx")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_sheets_are_named_after_the_file():
    book(companies=NODES, trade=EDGES)
    graph = en.read("book.xlsx#companies", "book.xlsx#trade")
    assert graph.node_ids == ("a", "b", "c")
    assert graph.classes == ("x", "y")
    assert [(c.name, c.kind) for c in graph.feature_encoder.columns] == [
        ("Sales", "number"),
        ("Since", "date"),
    ]
    assert graph.summary.files["book.xlsx#companies"] == "3 rows, 4 columns, Excel"
    assert graph.name == "book"


def test_usual_names_of_sheets_are_found():
    book(readme=[["about this book"]], Nodes=NODES, Edges=EDGES)
    assert en.read("book.xlsx", "book.xlsx").num_edges == 2


def test_a_workbook_of_one_table_needs_no_sheet():
    path = book(empty=[], companies=[[], ["Our companies, 2024"], [], *NODES], **{"also empty": []})
    notes = Notes()
    table = read_excel(path, "", notes)
    assert table.row(0) == "book.xlsx#companies, row 5"
    assert notes.notes[0].text == "1 row above the heading of book.xlsx#companies skipped."


def test_other_sheets_are_refused_with_their_names():
    book(companies=NODES, trade=EDGES)
    with pytest.raises(
        DataError, match=r"2 sheets with cells. Name one, as in book.xlsx#companies."
    ):
        en.read("book.xlsx", "book.xlsx#trade")
    with pytest.raises(DataError, match=r"no sheet 'Trade'.*Its sheets: companies, trade"):
        en.read("book.xlsx#companies", "book.xlsx#Trade")
    book(one=[], two=[])
    with pytest.raises(DataError, match="0 sheets with cells"):
        en.read("book.xlsx", "book.xlsx")


def test_failed_formulas_and_blank_rows_are_missing():
    rows = [*NODES[:2], [None, " "], ["b", "#DIV/0!", None, "y"], ["c", 3, None, "x"]]
    table = read_excel(book(nodes=rows), "", Notes())
    assert table["Sales"].to_pylist() == [1.5, None, 3]
    assert list(table.numbers) == [2, 4, 5]


def test_a_bare_edge_list():
    path = book(trade=[[1, 2, 0.5], [2, 3, 1.5]])
    table = read_excel(path, "", Notes(), edges=True)
    assert list(table.columns) == ["column 1", "column 2", "column 3"]
    assert table.num_rows == 2
    words = book(trade=[["a", "b", 1], ["b", "c", 2]])
    graph = en.read({"id": ["a", "b", "c"], "label": ["x", "y", "x"]}, words)
    assert graph.num_edges == 2


def test_damaged_workbooks_and_a_missing_package(monkeypatch):
    Path("book.xlsx").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(DataError, match="not an Excel workbook that can be read"):
        en.read("book.xlsx", "book.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'everynode\[excel\]' .*, or save the sheet"):
        en.read("book.xlsx", "book.xlsx")


def test_a_workbook_that_unpacks_to_too_much_is_refused():
    book(nodes=NODES, edges=EDGES)
    with (
        size_limit(100),
        pytest.raises(DataError, match=r"book.xlsx unpacks to more than .*--max-size"),
    ):
        en.read("book.xlsx", "book.xlsx")
