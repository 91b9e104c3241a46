"""The roles of columns, by name and by position."""

from __future__ import annotations

import pytest

import everynode as en

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""


def test_a_heading_is_one_though_its_words_are_nodes(write):
    write(nodes_csv="id,label\nfrom,a\nto,b\nx,b\n", edges_csv="from,to\nx,to\nx,from\n")
    assert en.read("nodes.csv", "edges.csv").edges.tolist() == [[0, 1], [2, 2]]


def test_a_first_edge_is_not_taken_for_a_heading(write, refused):
    write(nodes_csv=PEOPLE, edges_csv="ann,bob\nbob,cas\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    write(edges_csv="ann,bob\nbob,cas\nann,zoe\n")
    refused("row 3", "'zoe'", label="team")


def test_the_row_number_is_no_end_of_an_edge(write):
    write(nodes_csv="id,label\n0,a\n1,a\n2,b\n", edges_csv=",person,friend\n0,1,2\n1,0,2\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.edges.tolist() == [[0, 1], [2, 2]]


def test_a_column_without_a_name_may_be_the_ids_or_a_measurement(write):
    write(nodes_csv=",x,label\n0,3,a\n1,1,b\n2,4,b\n", edges_csv="source,target\n0,1\n1,2\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.node_ids == (0, 1, 2)
    assert "column    column 1: id" in graph.summary.lines()
    write(
        nodes_csv=",id,x,label\n7,a,0,a\n2,b,1,b\n4,c,2,b\n", edges_csv="source,target\na,b\nb,c\n"
    )
    assert en.read("nodes.csv", "edges.csv").feature_encoder.feature_names == ["x"], (
        "an index of a table that was filtered or sorted"
    )
    write(
        nodes_csv=",id,x,label\n7,a,0,a\n2,b,1,b\n2,c,2,b\n", edges_csv="source,target\na,b\nb,c\n"
    )
    assert en.read("nodes.csv", "edges.csv").feature_encoder.feature_names == ["column 1", "x"]
    write(nodes_csv=",id,x,label\nyes,a,0,a\nno,b,1,b\nno,c,2,b\n")
    assert en.read("nodes.csv", "edges.csv").feature_encoder.feature_names == ["column 1", "x"]


def test_columns_under_any_name_and_in_any_order(write, refused):
    write(
        nodes_csv="team,person,x\nred,7,1\nblue,8,2\nred,9,5\n", edges_csv="w,b,a\n2,7,8\n3,9,7\n"
    )
    graph = en.read(
        "nodes.csv",
        "edges.csv",
        id="person",
        label="team",
        source="a",
        target="b",
        weight="w",
        directed=True,
    )
    assert graph.node_ids == (7, 8, 9)
    assert graph.edges.tolist() == [[0, 1], [2, 0]]
    assert graph.weights.tolist() == pytest.approx([3 / 2.5, 2 / 2.5])  # divided by their mean
    assert graph.summary.weighted
    assert (
        en.read("nodes.csv", "edges.csv", label="team", id="person", source="a", target="b").weights
        is None
    )
    same_name = {"person": [7, 9], "friend": [8, 7]}
    assert en.read(
        "nodes.csv", same_name, id="person", label="team", directed=True
    ).edges.tolist() == [[0, 2], [1, 0]]
    refused("'persn'", "did you mean 'person'", "team, person, x", id="persn")


NODES, EDGES = "id,x,label\n1,1,a\n2,2,b\n3,5,b\n", "source,target\n1,2\n2,3\n"


@pytest.mark.parametrize(
    ("heading", "found"),
    [
        ("x,user", "user"),
        ("user,x,label", "user"),
        ("label,x,NODE,more", "NODE"),
        ("x,user,more", None),
        ("x,label", None),
    ],
)
def test_with_a_feature_encoder_no_feature_is_taken_for_the_id(write, heading, found, refused):
    write(nodes_csv=NODES, edges_csv=EDGES)
    feature_encoder = en.read("nodes.csv", "edges.csv").feature_encoder
    cells = {"x": (2, 3, 1), "label": "aab"}
    rows = [[str(cells.get(name, (1, 2, 3))[i]) for name in heading.split(",")] for i in range(3)]
    write(new_csv="\n".join([heading, *(",".join(row) for row in rows)]))
    if found is None:
        refused(
            "new.csv has no column 'id'",
            "id='...', or --id",
            f"Its columns: {heading.replace(',', ', ')}",
            nodes="new.csv",
            feature_encoder=feature_encoder,
        )
        assert en.read(
            "new.csv", "edges.csv", feature_encoder=feature_encoder, id="x"
        ).node_ids == (2, 3, 1)
    else:
        graph = en.read("new.csv", "edges.csv", feature_encoder=feature_encoder)
        assert graph.node_ids == (1, 2, 3)
        assert f"{found}: id" in str(graph.summary)


def test_a_column_is_left_out_of_all_features():
    nodes = {"id": [1, 2, 3], "a": [1, 2, 3], "-b": [1, 2, 4], "c": [3, 1, 2]}
    edges = {"source": [1], "target": [2]}
    graph = en.read(nodes, edges, features="all,-a")
    assert graph.feature_encoder.feature_names == ["-b", "c"]
    assert en.read(nodes, edges, features="-b").feature_encoder.feature_names == ["-b"]
    with pytest.raises(en.DataError, match="no column 'zip'"):
        en.read(nodes, edges, features="all,-zip")


def test_the_headings_of_neo4j_are_roles(write):
    write(
        nodes_csv="name,personId:ID(Person),age,:LABEL\nAnn,7,30,a\nBob,8,41,b\nCem,9,5,a\n",
        edges_csv="since,:START_ID(Person),:END_ID(Person),:TYPE\n2020,7,8,KNOWS\n2021,8,9,KNOWS\n",
    )
    graph = en.read("nodes.csv", "edges.csv", display="none")
    roles = graph.feature_encoder.roles
    assert roles["id"] == "personId:ID(Person)"
    assert roles["label"] == ":LABEL"
    assert (roles["source"], roles["target"]) == (":START_ID(Person)", ":END_ID(Person)")
    assert graph.node_ids == (7, 8, 9)
    assert graph.num_edges == 2


def test_layout_and_colors_of_gephi_are_left_out_and_said(notes):
    drawing = {name: [1.5, 2.5, 4.0] for name in ("x", "y", "r", "g", "b", "size")}
    nodes = {"id": [1, 2, 3], "age": [3.0, 1.0, 2.0], **drawing}
    edges = {"source": [1], "target": [2]}
    graph = en.read(nodes, edges)
    assert graph.feature_encoder.feature_names == ["age"]
    assert "Columns x, y, r, g, b, size left out" in notes(graph)
    assert en.read(nodes, edges, features="x,age").num_features == 2
    del nodes["r"]  # coordinates alone may mean something
    assert en.read(nodes, edges).num_features == 6
