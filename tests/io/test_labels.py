"""Labels and splits: missing ones, odd classes, and words that are no part."""

from __future__ import annotations

import pandas
import pytest

import everynode as en


def test_a_split_column(write, refused):
    rows = ["1,a,Train", "2,b,validation", "3,a,TEST", "4,b,", "5,,val"]
    write(nodes_csv="id,label,split\n" + "\n".join(rows), edges_csv="1,2\n")
    graph = en.read("nodes.csv", "edges.csv")
    (split,) = graph.splits
    assert [part.tolist() for part in split] == [[0], [1, 4], [2]]
    assert graph.summary.split == {"train": 1, "val": 1, "test": 1}  # those with a label
    write(nodes_csv="id,label,split\n" + "\n".join([*rows, "6,a,tset"]))
    refused("row 7", "'split'", "'tset'", "train, val or test", "split='none'")
    assert not en.read("nodes.csv", "edges.csv", split="none").splits


@pytest.mark.parametrize("written", ["", "NA", "NaN", "null", "  "])
def test_a_missing_label_is_no_label(write, written, notes):
    write(nodes_csv=f"id,x,label\n1,1,a\n2,2,b\n3,4,{written}\n", edges_csv="1,2\n2,3\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.labels.tolist() == [0, 1, -1]
    assert ("written" in notes(graph)) == bool(written.strip())


@pytest.mark.parametrize(
    "labels", [[-1, 0, 1, 0], [-1.0, 0.0, 1.0, 0.0], ["-1.0", "0.0", "1.0", "0.0"]]
)
def test_labels_that_are_numbers_may_be_missing_too(labels, notes):
    nodes = {"id": [0, 1, 2, 3], "x": [3, 4, 5, 8], "label": labels}
    graph = en.read(nodes, {"source": [0], "target": [1]}, na=["-1"])
    assert graph.labels.tolist() == [-1, 0, 1, 0]
    assert "1 label in column 'label' written '-1" in notes(graph)


def test_a_class_with_one_node_is_allowed_and_said(write):
    write(nodes_csv="id,x,label\n1,1,a\n2,2,b\n3,4,b\n", edges_csv="1,2\n2,3\n")
    assert "one node" in en.read("nodes.csv", "edges.csv").summary.warnings[0].text


@pytest.mark.parametrize("written", ["-1", "?", "Unknown", "-", "unlabeled", "Unlabelled"])
def test_a_class_that_may_mean_no_label_is_asked_about(write, written):
    others = ("0", "1") if written == "-1" else ("a", "b")
    write(
        nodes_csv="id,x,label\n"
        + "".join(f"{i},{i},{(*others, written)[i % 3]}\n" for i in range(9)),
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert len(graph.classes) == 3
    assert [note.text for note in graph.summary.warnings] == [
        f"'{written}' is treated as a class. If it means unlabeled, declare it missing (na=['{written}'], or --na={written})."
    ]
    assert not en.read("nodes.csv", "edges.csv", na=[written]).summary.warnings


def test_classes_that_differ_in_capitals_are_asked_about(write):
    write(
        nodes_csv="id,x,label\n1,1,Sales\n2,2,sales\n3,4,sales\n4,5,Sales\n", edges_csv="1,2\n2,3\n"
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.classes == ("Sales", "sales")
    assert [note.text for note in graph.summary.warnings] == [
        "The classes 'Sales' and 'sales' differ only in capitals. If they are one class, write them in the same way."
    ]
    write(
        nodes_csv="id,x,label\n1,1,Gold\n2,2,gold\n3,4,GOLD\n4,5,gold\n5,6,Gold\n6,7,GOLD\n7,7,tin\n8,7,tin\n",
        edges_csv="1,2\n2,3\n",
    )
    (warning,) = en.read("nodes.csv", "edges.csv").summary.warnings
    assert (
        warning.text
        == "The classes 'GOLD', 'Gold' and 'gold' differ only in capitals. If they are one class, write them in the same way."
    )


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("caf\u00e9", "cafe\u0301", r"The classes 'cafe\u0301' and 'caf\xe9' look the same"),
        ("red", "r\u200bed", r"The classes 'red' and 'r\u200bed' look the same"),
        ("A 1", "a\u00a01", r"The classes 'A 1' and 'a\xa01' look the same"),
        ("1", "1.0", "The classes '1' and '1.0' are the same number"),
        ("7", "007", "The classes '007' and '7' are the same number"),
    ],
)
def test_classes_that_look_the_same_are_asked_about(one, other, said):
    nodes = {
        "id": list(range(9)),
        "x": [3, 1, 4, 1, 5, 9, 2, 6, 5],
        "label": [one, other, "green"] * 3,
    }
    graph = en.read(nodes, {"source": [0], "target": [1]})
    assert len(graph.classes) == 3
    (warning,) = graph.summary.warnings
    assert warning.text == f"{said}. If they are one class, write them in the same way."


NODES, EDGES = "id,x,label\n1,1,a\n2,2,b\n3,5,b\n", "source,target\n1,2\n2,3\n"


@pytest.mark.parametrize(
    ("cells", "parts"),
    [("train,holdout,,test", [[0], [], [3]]), ("1,2,3,1", None), ("a,b,c,d", None)],
)
def test_with_a_feature_encoder_the_split_is_no_more_than_a_remark(
    write, cells, parts, refused, notes
):
    write(
        nodes_csv="id,x,label,split\n1,1,a,train\n2,2,b,val\n3,5,b,test\n",
        edges_csv=EDGES,
        links_csv="1,2\n3,4\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv").feature_encoder
    lines = [f"{i},{i},a,{cell}" for i, cell in enumerate(cells.split(","), 1)]
    write(new_csv="\n".join(["id,x,label,split", *lines]))
    graph = en.read("new.csv", "links.csv", feature_encoder=feature_encoder)
    assert [[part.tolist() for part in split] for split in graph.splits] == (
        [parts] if parts else []
    )
    assert "Column 'split' of new.csv holds" in notes(graph)
    assert "in no part" in notes(graph)
    refused(
        "A split column holds",
        nodes="new.csv",
        edges="links.csv",
        feature_encoder=feature_encoder,
        split="split",
    )
    frame = pandas.DataFrame({"id": [1, 2], "x": [1, 2], "split": [0.5, 1.5]})
    assert not en.read(
        frame, {"source": [1], "target": [2]}, feature_encoder=feature_encoder
    ).splits


@pytest.mark.parametrize(
    ("label", "classes", "nodes", "asked"),
    [("{}.5", 2, 80, True), ("{}", 2, 80, False), ("{}", 21, 80, True), ("{}", 20, 80, False), ("{}", 21, 210, False),
     ("v{}.5", 3, 80, False), ("v{}", 30, 80, False)],
)  # fmt: skip
def test_labels_that_look_like_a_measurement_are_asked_about(write, label, classes, nodes, asked):
    rows = "".join(f"{i},{i},{label.format(i % classes)}\n" for i in range(nodes))
    write(nodes_csv="id,x,label\n" + rows, edges_csv="1,2\n2,3\n")
    warnings = [note.text for note in en.read("nodes.csv", "edges.csv").summary.warnings]
    assert (
        any(
            text.startswith(f"The labels are {classes} different numbers, such as 0")
            for text in warnings
        )
        == asked
    )


def test_whole_numbers_that_pandas_wrote_as_fractions_stay_whole(write):
    write(nodes_csv="id,label\n1,0.0\n2,1.0\n3,\n4,1.0\n", edges_csv="source,target\n1,2\n3,4\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.classes == (0, 1)
    assert graph.labels.tolist() == [0, 1, -1, 1]
