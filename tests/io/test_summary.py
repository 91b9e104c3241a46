"""The summary: roles and types of columns, counts, repairs and warnings."""

from __future__ import annotations

import json

import everynode as en

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""


LINKS = "source,target\nann,bob\nbob,cas\ncas,dan\ndan,eve\n"


def test_what_was_understood(write):
    write(nodes_csv=PEOPLE, edges_csv=LINKS)
    found = en.read("nodes.csv", "edges.csv", label="team").summary
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {
        "id": "id", "team": "label", "age": "number", "city": "category", "member": "boolean", "source": "source", "target": "target",
    }  # fmt: skip
    assert (found.nodes, found.labeled, found.unlabeled, found.edges) == (5, 4, 1, 4)
    assert found.classes == {"blue": 2, "red": 2}
    assert [note.text for note in found.repairs] == [
        "Column 'age' of nodes.csv: 1 missing value filled with the mean."
    ]
    assert json.loads(json.dumps(found.to_dict()))["unlabeled"] == 1
    lines = str(found).splitlines()
    assert "nodes     5: 4 labeled, 1 unlabeled" in lines
    assert "classes   2: blue 2, red 2" in lines


def test_many_columns_are_summed_up_in_few_lines(write):
    names = [f"w{i}" for i in range(40)]
    rows = "\n".join(
        f"{i},{','.join(str((i + j) % 2) for j in range(40))},{'ab'[i % 2]}" for i in range(6)
    )
    write(nodes_csv=f"id,{','.join(names)},label\n{rows}\n", edges_csv="0 1\n1 2\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert "column    w0 to w39: boolean (40 columns)" in graph.summary.lines()
    assert len(graph.summary.lines()) < 15


def test_columns_that_are_not_used_are_named(write):
    write(nodes_csv=PEOPLE, edges_csv="source,target,since\nann,bob,2020\nbob,cas,2021\n")
    assert (
        "column    since: not used"
        in str(en.read("nodes.csv", "edges.csv", label="team").summary).splitlines()
    )
    assert "since: weight" in str(
        en.read("nodes.csv", "edges.csv", label="team", weight="since").summary
    )
    write(edges_csv="source,target,weight\nann,bob,2\nbob,cas,2\n")
    assert "not used" in str(en.read("nodes.csv", "edges.csv", label="team", weight="none").summary)
    some = str(en.read("nodes.csv", "edges.csv", label="team", features="age").summary)
    assert "column    city: not used" in some.splitlines()
    assert "team: not used" not in some
    assert "city: not used" not in str(en.read("nodes.csv", "edges.csv", label="team").summary)
