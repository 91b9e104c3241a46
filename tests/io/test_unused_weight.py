"""A column of numbers of the edges that has no role is named, other columns are not."""

from __future__ import annotations

import pytest

import everynode as en

PEOPLE = "id,team\nann,red\nbob,blue\ncas,\ndan,red\n"
ENDS = ("ann,bob", "bob,cas", "cas,dan", "dan,ann")


def unused(write, heading, cells, **arguments):
    rows = [f"{ends},{cell}" for ends, cell in zip(ENDS, cells, strict=True)]
    write(nodes_csv=PEOPLE, edges_csv="\n".join([f"source,target,{heading}", *rows, ""]))
    return en.read("nodes.csv", "edges.csv", label="team", **arguments).summary


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("messages", "3195"),
        ("amount", ["1.5", "20", "3e2", "4"]),
        ("Betrag", ['"1,5"'] * 2 + list("12")),
    ],
)
def test_numbers_may_be_weights(write, heading, cells):
    summary = unused(write, heading, cells)
    assert summary.unused_weight == heading
    assert f"{heading}: not used, --weight {heading} uses it" in str(summary)


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("weight", "3195"),  # used
        ("kind", "abca"),
        ("flag", "0110"),
        ("level", "1212"),
        ("row", "1234"),
        ("balance", ["3", "-1", "2", "5"]),
        ("amount", ["3", "", "2", "5"]),
        ("amount", ["3", "inf", "2", "5"]),
        ("edge_id", "3195"),
        ("Timestamp", "3195"),
        ("day", ["2020-01-01", "2020-01-02", "2020-01-05", "2020-01-03"]),
    ],
)
def test_other_columns_are_no_weights(write, heading, cells):
    assert unused(write, heading, cells).unused_weight == ""


def test_no_hint_after_a_decision(write):
    assert unused(write, "messages", "3195", weight="none").unused_weight == ""
    assert unused(write, "messages", "3195", weight="messages").unused_weight == ""
    encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    assert en.read("nodes.csv", "edges.csv", feature_encoder=encoder).summary.unused_weight == ""
