"""A file of labels beside the node table: joined by id, and refused with its row."""

from __future__ import annotations

import pytest

import everynode as en
from everynode.errors import DataError

NODES = "id,age,team\n1,30,red\n2,40,blue\n3,50,\n4,60,\n"
EDGES = "source,target\n1,2\n2,3\n3,4\n"


@pytest.fixture
def files(write):
    write(nodes_csv=NODES, edges_csv=EDGES)
    return write


def read(**options):
    return en.read("nodes.csv", "edges.csv", labels="labels.csv", **options)


def test_labels_of_a_file_join_those_of_the_nodes_and_replace_them(files):
    files(labels_csv="id,why,team\n3,near,blue\n4,far,\n1,wrong,blue\n2,x,red\n")
    graph = read(label="team")
    assert [graph.classes[c] if c >= 0 else None for c in graph.labels] == [
        "blue",
        "red",
        "blue",
        None,
    ]
    (note,) = [note.text for note in graph.summary.notes if "replaced" in note.text]
    assert "2 labels replaced by those of labels.csv" in note
    assert "labels.csv" in graph.summary.files
    assert graph.feature_encoder.feature_names == ["age"]
    assert graph.feature_encoder.roles["label"] == "team"


def test_a_table_of_nodes_without_labels_and_edges_alone(files):
    files(bare_csv="name,age\n1,30\n2,40\n3,50\n", labels_csv="name,label\n1,a\n3.0,b\n")
    graph = en.read("bare.csv", {"source": [1, 2], "target": [2, 3]}, labels="labels.csv")
    assert graph.labels.tolist() == [0, -1, 1]
    graph = en.read(edges="edges.csv", labels="labels.csv")
    assert graph.labels.tolist() == [0, -1, 1, -1]
    graph = en.read("nodes.csv", "edges.csv", label="none", labels="labels.csv")
    assert graph.classes == ("a", "b")


def test_the_encoder_of_a_model_reads_labels_too(files):
    files(labels_csv="id,team\n3,blue\n4,red\n")
    graph = read(label="team")
    again = read(feature_encoder=graph.feature_encoder)
    assert again.labels.tolist() == graph.labels.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,team\n3,red\n9,red\n", ("row 3", "'9' is not a node", "remove")),
        ("id,team\n3,red\n3,blue\n", ("row 3", "'3' appears twice")),
        ("id,team\n3,\n4,\n", ("'team' has no label", "fill in")),
        ("id,why\n3,red\n", ("no column 'team'",)),
        ("team\nred\nblue\n", ("no column of ids",)),
    ],
)
def test_a_bad_file_is_refused_with_its_row(files, text, words):
    files(labels_csv=text)
    with pytest.raises(DataError) as caught:
        read(label="team")
    for word in ("labels.csv", *words):
        assert word in str(caught.value)


def test_a_file_without_a_usual_label_column_asks_for_it(files):
    files(labels_csv="id,color\n3,red\n")
    with pytest.raises(DataError, match="no column is called label or class"):
        en.read(edges="edges.csv", labels="labels.csv")


def test_few_labels_are_enough_to_suggest_more(files):
    files(one_csv="id,label\n1,a\n2,\n3,\n4,\n")
    with pytest.raises(DataError, match="two classes"):
        en.read("one.csv", "edges.csv")
    assert en.read("one.csv", "edges.csv", few_labels=True).labels.tolist() == [0, -1, -1, -1]
    files(none_csv="id,label,x\n1,,1\n2,,2\n3,,5\n4,,8\n")
    assert en.read("none.csv", "edges.csv", few_labels=True).labels.tolist() == [-1] * 4
