"""Columns beside the ids: a name that is found or chosen, and kept columns."""

from __future__ import annotations

import pytest

import everynode as en

NODES = {
    "id": [1, 2, 3],
    "Name": ["Ann", None, "Cem"],
    "city": ["Graz", "Oslo", "Rome"],
    "age": [30, 41, 52],
}
EDGES = {"source": [1, 2], "target": [2, 3]}


def test_a_name_column_is_found_and_columns_are_kept():
    summary = en.read(NODES, EDGES, keep="city, age").summary
    assert summary.name_column == "Name"
    assert summary.shown == {
        "Name": ("Ann", "", "Cem"),
        "city": ("Graz", "Oslo", "Rome"),
        "age": ("30", "41", "52"),
    }
    assert "shown" not in summary.to_dict()


def test_a_name_column_is_chosen_or_turned_off():
    assert en.read(NODES, EDGES, display="city").summary.name_column == "city"
    assert en.read(NODES, EDGES, display="none").summary.shown == {}
    assert en.read(NODES, EDGES, display="none", keep=["age"]).summary.name_column == ""
    with pytest.raises(en.DataError, match="no column 'zip'"):
        en.read(NODES, EDGES, keep="zip")


def test_the_id_is_not_shown_twice():
    nodes = {"name": ["a", "b"], "x": [1, 2]}
    assert en.read(nodes, {"source": ["a"], "target": ["b"]}).summary.shown == {}
