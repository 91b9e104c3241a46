"""Tables and queries of databases."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import everynode as en
from everynode.errors import DataError, UsageError

STATEMENTS = (
    "CREATE TABLE people (id INTEGER, city TEXT, age REAL, team TEXT)",
    "INSERT INTO people VALUES (1, 'Rome', 30.5, 'red'), (2, 'Oslo', NULL, 'blue'), "
    "(3, 'Rome', 50, NULL), (4, 'Oslo', 20, 'red')",
    "CREATE TABLE calls (caller INTEGER, callee INTEGER, minutes REAL)",
    "INSERT INTO calls VALUES (1, 2, 3), (2, 3, 1), (3, 4, 0.5)",
)


@pytest.fixture(autouse=True)
def _databases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as database, database:
        for statement in STATEMENTS:
            database.execute(statement)


def check(engine: str, file: str) -> None:
    graph = en.read(
        f"{engine}:{file}?people",
        f"{engine}:{file}?SELECT caller, callee, minutes AS weight FROM calls WHERE minutes > 0.6",
        label="team",
    )
    assert graph.name == "shop"
    assert graph.node_ids == (1, 2, 3, 4)
    assert graph.num_edges == 2
    assert graph.summary.weighted
    assert graph.classes == ("blue", "red")
    assert graph.feature_encoder.feature_names == [
        "city = Oslo",
        "city = Rome",
        "age",
        "age is missing",
    ]
    with pytest.raises(DataError, match=f"{file} refuses .*peopel"):
        en.read(f"{engine}:{file}?SELECT * FROM peopel", f"{engine}:{file}?calls")
    with pytest.raises(UsageError, match=f"as in {engine}:{file}.TABLE .*tables: calls, people"):
        en.read(f"{engine}:{file}", f"{engine}:{file}?calls")


def test_sqlite():
    check("sqlite", "shop.db")
    assert en.read("sqlite:///shop.db?people", "sqlite:shop.db?calls", label="team").num_edges == 3


def test_a_database_is_opened_for_reading_only():
    before = Path("shop.db").read_bytes()
    with pytest.raises(DataError, match="readonly"):
        en.read("sqlite:shop.db?DELETE FROM people", "sqlite:shop.db?calls")
    assert Path("shop.db").read_bytes() == before
    with pytest.raises(DataError, match=r"There is no file other.db"):
        en.read("sqlite:other.db?people", "sqlite:shop.db?calls")
    assert not Path("other.db").exists()


def test_rows_are_named_and_empty_answers_refused():
    twice = "sqlite:shop.db?SELECT 1 AS id, age, team FROM people"
    with pytest.raises(DataError, match=r"sqlite:shop.db\?SELECT 1.*record 2, column 'id'"):
        en.read(twice, "sqlite:shop.db?calls", label="team")
    with pytest.raises(DataError, match="is empty"):
        en.read("sqlite:shop.db?SELECT * FROM people WHERE id > 9", "sqlite:shop.db?calls")


def test_a_database_without_a_prefix_says_how():
    with pytest.raises(DataError, match=r"sqlite:FILE.TABLE"):
        en.read("shop.db", "sqlite:shop.db?calls")


def test_duckdb(monkeypatch):
    import duckdb

    with duckdb.connect("shop.duckdb") as database:
        for statement in STATEMENTS:
            database.execute(statement)
        database.execute("COPY calls TO 'calls.parquet'")
    check("duckdb", "shop.duckdb")
    files = "duckdb:?SELECT * FROM 'calls.parquet'"
    assert en.read("sqlite:shop.db?people", files, label="team").num_edges == 3
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError, match=r"pip install 'everynode\[duckdb\]'"):
        en.read("duckdb:shop.duckdb?people", "sqlite:shop.db?calls")
