"""People's own files as they really are: what is understood, what is repaired and counted, and what is refused with its place."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import everynode as en
from everynode.errors import DataError, EverynodeError, UsageError
from everynode.io import FeatureEncoder
from everynode.sparse import SparseMatrix

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""
LINKS = "source,target\nann,bob\nbob,cas\ncas,dan\ndan,eve\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files into an empty folder and work there, so that the sentences name them without a path."""
    monkeypatch.chdir(tmp_path)

    def put(**files: str | bytes) -> None:
        for name, content in files.items():
            path = Path(name.replace("_", "."))
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return put


def refused(*parts: str, kind: type[EverynodeError] = DataError, **options):
    """Read nodes.csv and edges.csv, which must be refused in one sentence that has all these parts."""
    nodes, edges = options.pop("nodes", "nodes.csv"), options.pop("edges", "edges.csv")
    with pytest.raises(kind) as caught:
        en.read(nodes, edges, **options)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"


def notes(graph: en.Graph) -> str:
    return "\n".join(note.text for note in graph.summary.notes)


def same(a: en.Graph, b: en.Graph) -> bool:
    return a.digest == b.digest and a.node_ids == b.node_ids


# ---------------------------------------------------------------------- what is understood


def test_two_tables_become_a_graph(write):
    write(nodes_csv=PEOPLE, edges_csv=LINKS)
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.node_ids == ("ann", "bob", "cas", "dan", "eve")
    assert graph.classes == ("blue", "red")
    assert graph.labels.tolist() == [1, 0, 1, -1, 0]
    assert graph.edges.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    ages = np.array([30, 40, 50, 70.0])
    age = (np.array([30, 40, 50, ages.mean(), 70]) - ages.mean()) / ages.std()
    assert graph.feature_encoder.feature_names == [
        "age",
        "age is missing",
        "city = Bern",
        "city = Oslo",
        "city = Rome",
        "member",
    ]
    expected = np.column_stack(
        [age, [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [1, 0, 1, 0, 1]]
    )
    torch.testing.assert_close(graph.dense_features, torch.tensor(expected, dtype=torch.float32))
    assert graph.name == "nodes"


def test_what_was_understood(write):
    write(nodes_csv=PEOPLE, edges_csv=LINKS)
    found = en.read("nodes.csv", "edges.csv", label="team").summary
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {
        "id": "id", "team": "label", "age": "number", "city": "category", "member": "boolean", "source": "source", "target": "target",
    }  # fmt: skip
    assert (found.nodes, found.labelled, found.unlabelled, found.edges) == (5, 4, 1, 4)
    assert found.classes == {"blue": 2, "red": 2}
    assert [note.text for note in found.repairs] == [
        "Column 'age' of nodes.csv: 1 missing value filled with the mean."
    ]
    assert json.loads(json.dumps(found.to_dict()))["unlabelled"] == 1
    lines = str(found).splitlines()
    assert "nodes     5: 4 labelled, 1 unlabelled" in lines
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


def test_zeros_and_ones_stay_as_they_are_and_sparse(write):
    random = np.random.default_rng(0)
    words = (random.random((50, 30)) < 0.1).astype(int)
    table = "\n".join(f"{i},{','.join(map(str, row))},{i % 3}" for i, row in enumerate(words))
    write(
        nodes_csv=f"id,{','.join(f'w{j}' for j in range(30))},label\n{table}\n",
        edges_csv="0,1\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert isinstance(graph.features, SparseMatrix)
    kept = [j for j in range(30) if words[:, j].any()]
    assert graph.dense_features.tolist() == words[:, kept].tolist()
    assert graph.classes == (0, 1, 2)


def test_the_same_table_in_every_format_is_the_same_graph(write):
    write(
        nodes_csv=PEOPLE,
        edges_csv=LINKS,
        nodes_tsv=PEOPLE.replace(",", "\t"),
        edges_txt=LINKS.replace(",", " "),
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    frame, links = pandas.read_csv("nodes.csv"), pandas.read_csv("edges.csv")
    frame["member"] = frame["member"] == "yes"
    frame.to_parquet("nodes.parquet")
    links.to_parquet("edges.parquet")
    frame.to_json("nodes.jsonl", orient="records", lines=True)
    links.to_json("edges.jsonl", orient="records", lines=True)
    Path("nodes.csv.gz").write_bytes(gzip.compress(PEOPLE.encode()))
    Path("semicolons.csv").write_text(PEOPLE.replace(",", ";"))
    Path("bars.txt").write_text(PEOPLE.replace(",", "|"))
    Path("excel.csv").write_bytes(b"\xef\xbb\xbf" + PEOPLE.replace("\n", "\r\n").encode())
    Path("utf16.csv").write_bytes(PEOPLE.encode("utf-16"))
    Path("oldmac.csv").write_text(PEOPLE.replace("\n", "\r"), newline="")
    Path("sep.csv").write_text("sep=;\n" + PEOPLE.replace(",", ";"))
    Path("comments.csv").write_text("# made by hand\n#\n" + PEOPLE)
    Path("quoted.csv").write_text(re.sub(r"([^,\n]+)", r'"\1"', PEOPLE))
    pairs = [
        ("nodes.tsv", "edges.txt"), ("nodes.parquet", "edges.parquet"), ("nodes.jsonl", "edges.jsonl"), ("nodes.csv.gz", links),
        ("semicolons.csv", "edges.csv"), ("bars.txt", "edges.csv"), ("excel.csv", "edges.csv"), ("utf16.csv", "edges.csv"),
        ("oldmac.csv", "edges.csv"), ("comments.csv", "edges.csv"), ("sep.csv", "edges.csv"), ("quoted.csv", "edges.csv"), (frame, links),
        (frame.set_index("id"), links), (pa.table(frame), pa.table(links)), (frame.to_dict("list"), links.to_dict("list")),
    ]  # fmt: skip
    for nodes, edges in pairs:
        assert same(en.read(nodes, edges, label="team"), graph), (nodes, edges)
    Path("table").write_text(PEOPLE)
    assert same(en.read("table", "edges.csv", label="team", format="text"), graph)

    class Stream:  # as polars and others offer it
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(frame).__arrow_c_stream__(requested_schema)

    assert same(en.read(Stream(), "edges.csv", label="team"), graph)
    refused(".csv", ".parquet", nodes="table", label="team")


def test_other_encodings_are_read_and_said(write):
    write(
        nodes_csv="id,stadt,label\n1,Zürich,a\n2,Köln,b\n3,Köln,b\n".encode("cp1252"),
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.feature_encoder.feature_names == ["stadt = Köln", "stadt = Zürich"]
    assert "cp1252" in graph.summary.warnings[0].text


def test_quoted_newlines_and_delimiters_and_quotes(write):
    text = 'id,about,label\n1,"a, b\nc ""quoted""",x\n2,"\n",y\n3,a b c,x\n4,b c d,y\n,5,\n'
    write(nodes_csv=text, edges_csv="1,2\n2,3\n3,4\n")
    refused(
        "nodes.csv, row 6", "'id'", "empty"
    )  # as a spreadsheet counts: a record with a newline in it is one row


@pytest.mark.parametrize("rows", [(5, 30), (38, 39), (5, 30, 35)])
@pytest.mark.parametrize("text", ['"so', '"so" and', 'and "so'])
def test_stray_quotes_do_not_swallow_rows(write, rows, text):
    """Two cells that begin with a quote make one cell of all between: half of the edges were gone without a word."""
    lines = [
        "source,target,remark",
        *(f"{i},{i + 1},{text if i in rows else 'fine'}" for i in range(40)),
    ]
    write(edges_csv="\n".join(lines) + "\n")
    if text == '"so':
        refused(
            f"edges.csv, row {rows[0] + 2}: a double quote",
            "never closes, or only some rows later",
            nodes=None,
        )
    else:
        assert en.read(edges="edges.csv").num_edges == 40


def test_a_stray_quote_in_the_first_column_or_with_other_line_ends(write):
    write(edges_csv='remark,source,target\r\n"a,1,2\r\nb,2,3\r\n"c,3,4\r\nd,4,5\r\n')
    refused("edges.csv, row 2: a double quote", nodes=None)


def test_ditto_marks_do_not_swallow_rows(write):
    between = "".join(f"{i},{i + 1},fine\n" for i in range(2, 20))
    write(edges_csv=f'source,target,remark\n1,2,"\n{between}20,21,"\n21,22,fine\n')
    refused("edges.csv, row 2: a double quote", nodes=None)


def test_an_address_of_three_lines_is_no_stray_quote(write):
    write(
        nodes_csv='id,text\n1,"first\nsecond, part\nthird, part"\n2,"a\nb"\n3,c\n',
        edges_csv="source,target\n1,2\n2,3\n",
    )
    assert en.read("nodes.csv", "edges.csv").num_nodes == 3


def test_text_of_several_lines_is_read(write):
    cells = [
        "one,\ntwo, three, four\nfive",
        "Dear all,\n\nsee you, then\n",
        "a, b\nc, d",
        "1,2\n3,4\n5,6",
    ]
    lines = ["id,about,label", *(f'{i},"{cell}",{"xy"[i % 2]}' for i, cell in enumerate(cells))]
    write(nodes_csv="\n".join([*lines, '4,"so" and so,x', '5,"a\nb",y']), edges_csv="0,1\n2,3\n")
    assert en.read("nodes.csv", "edges.csv").num_nodes == 6


@pytest.mark.parametrize("comment", ["# exported by tool, 2024", "% from a, b"])
def test_a_comment_with_a_comma_is_no_heading(write, comment):
    write(edges_csv=f"{comment}\nsource,target\nn0,n1\nn1,n2\n")
    assert en.read(edges="edges.csv").node_ids == ("n0", "n1", "n2")
    write(
        nodes_csv=f"{comment}, c\nNode,x,team\n0,1,a\n1,2,b\n2,2,b\n",
        edges_csv="# from,to\n0,1\n1,2\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.feature_encoder.feature_names == ["x"]
    write(nodes_csv=f"{comment}, c\nwho,x,team\n0,1,a\n1,2,b\n2,2,b\n")
    assert en.read(
        "nodes.csv", "edges.csv", label="team", id="who"
    ).feature_encoder.feature_names == ["x"]


def test_a_heading_is_one_though_its_words_are_nodes(write):
    write(nodes_csv="id,label\nfrom,a\nto,b\nx,b\n", edges_csv="from,to\nx,to\nx,from\n")
    assert en.read("nodes.csv", "edges.csv").edges.tolist() == [[0, 1], [2, 2]]


def test_a_very_wide_table(write):
    columns = 6_000
    heading = ",".join(f"a long name of column {i}" for i in range(columns))
    rows = "".join(
        f"{i},{'ab'[i % 2]},{','.join(str((i + j) % 3) for j in range(columns))}\n"
        for i in range(3)
    )
    write(nodes_csv=f"id,label,{heading}\n{rows}", edges_csv="0,1\n1,2\n")
    assert en.read("nodes.csv", "edges.csv").num_features == columns


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n2 3\n",
        "1\t2\n2\t3\n",
        "1,2\n2,3\n",
        "# from to\n1 2\n2 3\n",
        "% comment\n1 2\n2 3\n",
        "1 2 9\n2 3 7\n",
        " 1   2\r\n 2   3 \r\n",
        "\n\n1 2\n2\t 3\n",
    ],
)
def test_bare_edge_lists(write, text):
    write(nodes_csv="id,label\n1,a\n2,b\n3,b\n", edges_txt=text)
    assert en.read("nodes.csv", "edges.txt").edges.tolist() == [[0, 1], [1, 2]]


def test_a_first_edge_is_not_taken_for_a_heading(write):
    write(nodes_csv=PEOPLE, edges_csv="ann,bob\nbob,cas\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    write(edges_csv="ann,bob\nbob,cas\nann,zoe\n")
    refused("row 3", "'zoe'", label="team")


def test_edges_alone(write):
    write(edges_txt="c a\na b\n")
    graph = en.read(edges="edges.txt")
    assert graph.node_ids == ("c", "a", "b")
    assert graph.feature_encoder.structural
    assert graph.num_classes == 0
    assert [(column.name, column.kind) for column in graph.summary.columns] == [
        ("column 1", "source"),
        ("column 2", "target"),
    ]
    larger = en.read(
        edges={"source": list(range(99)), "target": list(range(1, 100))},
        feature_encoder=graph.feature_encoder,
    )
    assert larger.num_features == graph.num_features
    refused(
        "'team'", "no table of nodes", nodes=None, edges="edges.txt", label="team", kind=UsageError
    )


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


def test_the_row_number_is_no_end_of_an_edge(write):
    write(nodes_csv="id,label\n0,a\n1,a\n2,b\n", edges_csv=",person,friend\n0,1,2\n1,0,2\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.edges.tolist() == [[0, 1], [2, 2]]


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


def test_columns_under_any_name_and_in_any_order(write):
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


def test_a_weight_column_is_used_unless_told_otherwise(write):
    write(nodes_csv=PEOPLE, edges_csv="source,target,weight\nann,bob,2.5\nbob,cas,0\ncas,dan,1\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == pytest.approx([2.5 / 1.75, 1 / 1.75])
    assert "1 edge of edges.csv with weight 0 dropped (row 3)." in notes(graph)
    plain = en.read("nodes.csv", "edges.csv", label="team", weight="none")
    assert plain.weights is None
    assert plain.num_edges == 3


def test_a_split_column(write):
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
def test_a_missing_label_is_no_label(write, written):
    write(nodes_csv=f"id,x,label\n1,1,a\n2,2,b\n3,4,{written}\n", edges_csv="1,2\n2,3\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.labels.tolist() == [0, 1, -1]
    assert ("written" in notes(graph)) == bool(written.strip())


def test_what_else_is_missing_can_be_said(write):
    write(nodes_csv="id,x,label\n1,1,a\n2,2,b\n3,?,?\n4,5,b\n", edges_csv="1,2\n2,3\n")
    assert en.read("nodes.csv", "edges.csv").classes == ("?", "a", "b")
    graph = en.read("nodes.csv", "edges.csv", na=["?"])
    assert graph.classes == ("a", "b")
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    write(nodes_csv="id,x,label,split\n1,1,a,train\n2,2,b,val\n3,?,a,?\n4,5,b,test\n")
    assert [part.tolist() for part in en.read("nodes.csv", "edges.csv", na=["?"]).splits[0]] == [
        [0],
        [1],
        [3],
    ]


@pytest.mark.parametrize("kind", [int, float, str, "{}.0".format, "{},0".format])
def test_what_else_is_missing_is_compared_by_value_among_numbers(kind):
    nodes = {
        "id": ["n0", "n1", "n2", "n3"],
        "x": [kind(x) for x in (3, -999, 5, 8)],
        "label": [*map(str, (0, 1, 1, -1))],
    }
    edges = {"source": ["n0"], "target": ["n1"]}
    graph = en.read(nodes, edges, na=["-999", "?"])
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    assert graph.dense_features[:, 1].tolist() == [0, 1, 0, 0]
    assert "not a number" not in notes(graph)
    one = en.read(
        {"id": ["n0"], "x": [kind(-999)]},
        {"source": ["n0"], "target": ["n0"]},
        feature_encoder=graph.feature_encoder,
    )
    assert one.dense_features.tolist() == [[0, 1]]
    assert same(en.read(nodes, edges, na=["-999.0"]), graph)


@pytest.mark.parametrize(
    "labels", [[-1, 0, 1, 0], [-1.0, 0.0, 1.0, 0.0], ["-1.0", "0.0", "1.0", "0.0"]]
)
def test_labels_that_are_numbers_may_be_missing_too(labels):
    nodes = {"id": [0, 1, 2, 3], "x": [3, 4, 5, 8], "label": labels}
    graph = en.read(nodes, {"source": [0], "target": [1]}, na=["-1"])
    assert graph.labels.tolist() == [-1, 0, 1, 0]
    assert "1 label in column 'label' written '-1" in notes(graph)


def test_what_else_is_missing_leaves_codes_alone():
    """007 is a code, 1.10 a version, and 1,000 a thousand: none of them is 7, 1.1 or 1."""
    nodes = {
        "id": [0, 1, 2, 3],
        "code": ["007", "7", "008", "008"],
        "version": ["1.10", "2.b", "2.b", "3.c"],
        "x": ["1,000", "2,500", "7", "8"],
    }
    graph = en.read(
        nodes,
        {"source": [0], "target": [1]},
        na=["7", "1.1", "1"],
        features="code:category,version,x",
    )
    assert graph.feature_encoder.feature_names == [
        "code = 007", "code = 008", "code is missing", "version = 1.10", "version = 2.b", "version = 3.c", "x", "x is missing",
    ]  # fmt: skip
    assert graph.dense_features[:, -1].tolist() == [0, 0, 1, 0]


def test_a_day_may_stand_for_a_missing_one():
    days = pa.array(np.array(["1900-01-01", "2020-01-31", "2021-01-31"], "datetime64[D]"))
    graph = en.read(
        {"id": [0, 1, 2], "day": days}, {"source": [0], "target": [1]}, na=["1900-01-01"]
    )
    assert graph.feature_encoder.feature_names == ["day", "day is missing"]


# ---------------------------------------------------------------------- ids


def test_ids_that_look_like_numbers_are_text_in_one_file(write):
    write(
        nodes_csv="id,x,label\n007,1,a\n7,2,b\n08,3,b\n", edges_csv="source,target\n007,7\n7,08\n"
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.node_ids == ("007", "7", "08")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ("7,8,9", "7.0,8.0,9.0"),
        ("007,008,9", "7,8,9"),
        ("7.0,8.0,9.0", "7,8,9"),
        ("7,8,9", "07,8,+9"),
        ("-7,8,9", "-7.0,8.0,9.0"),
        ("100000,12000000,7", "1e+05,1.2e+07,7"),
    ],  # as R writes them
)
def test_ids_written_in_two_ways_match_by_value(write, nodes, edges):
    a, b, c = edges.split(",")
    rows = "\n".join(f"{i},{x},{x % 2}" for x, i in enumerate(nodes.split(",")))
    write(nodes_csv=f"id,x,label\n{rows}\n", edges_csv=f"source,target\n{a},{b}\n{b},{c}\n")
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert "matched by value" in notes(graph)


@pytest.mark.parametrize(
    ("node", "end"),
    [("1.1", "1.10"), ("10", "1e1"), ("0", "0e12"), ("5", "5e0"), ("1e1", "10"), ("2.50", "2.5")],
)
def test_ids_that_are_versions_or_codes_do_not_match_by_value(write, node, end):
    write(nodes_csv=f"id,x,label\n{node},1,a\nb,2,b\n", edges_csv=f"source,target\nb,{end}\n")
    refused(f"row 2: '{end}'")
    assert en.read("nodes.csv", "edges.csv", unknown="add").node_ids == (node, "b", end)


def test_an_id_that_could_be_two_nodes_is_refused(write):
    write(nodes_csv="id,x,label\n007,1,a\n7,2,b\n", edges_csv="source,target\n007,7.0\n")
    refused("'7.0'", "row 2", "'drop'")


def test_ids_from_pandas_that_a_missing_value_made_fractions():
    nodes = pandas.DataFrame({"id": [3.0, 5.0], "x": [1, 2], "label": ["a", "b"]})
    graph = en.read(nodes, {"source": [3], "target": ["5"]})
    assert graph.node_ids == (3, 5)
    assert graph.num_edges == 1
    with pytest.raises(DataError, match=r"record 2.*2\.5"):
        en.read(nodes.assign(id=[1.0, 2.5]), {"source": [3], "target": [5]})


@pytest.mark.parametrize(("kind", "digits"), [("float64", 53), ("float32", 24)])
def test_ids_that_lost_digits_as_fractions_are_refused(kind, digits):
    """Beyond 2^53 two whole numbers are one fraction: an edge would be given to the wrong node without a word."""
    ids = [2**digits - 1, 2**digits, 2**digits + 1]
    nodes = {"id": ids, "x": [1, 2, 5], "label": ["a", "b", "b"]}
    edges = pandas.DataFrame({"source": ids[:2], "target": ids[1:]})
    assert en.read(nodes, edges).edges.tolist() == [[0, 1], [1, 2]]
    refused(
        "record 2, column 'source'",
        "lost digits",
        "text",
        "whole numbers",
        nodes=nodes,
        edges=edges.astype(kind),
    )
    assert (
        en.read(nodes, edges.iloc[:1].assign(target=ids[0]).astype(kind), unknown="drop").num_edges
        == 0
    )
    refused(
        "record 1, column 'label' holds",
        "lost digits",
        nodes={**nodes, "label": [2.0**60, 1.0, 1.0]},
        edges=edges,
    )
    refused(
        "record 2, column 'target' holds inf. Ids are text or whole numbers",
        nodes=nodes,
        edges=edges.assign(target=[1, np.inf]),
    )


# ---------------------------------------------------------------------- repaired and counted


def test_loops_repeats_and_stray_spaces(write):
    write(
        nodes_csv=PEOPLE.replace("red", " red "),
        edges_csv=LINKS + "\nann,ann\nann,bob\n bob , cas\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.classes == ("blue", "red")
    assert graph.num_edges == 4
    said = notes(graph)
    assert "2 labels in column 'team' trimmed: surrounding spaces removed (rows 2, 4)." in said
    assert "1 self-loop of edges.csv dropped (row 7)." in said
    assert "2 repeated edges of edges.csv dropped (rows 8, 9)." in said
    assert "edges.csv: 1 blank row skipped." in said


def test_edges_to_unknown_nodes(write):
    write(nodes_csv=PEOPLE, edges_csv=LINKS + "ann,zoe\nyan,bob\nxi,wu\nvic,ann\n")
    refused(
        "4 edges",
        "row 6: 'zoe'; row 7: 'yan'; row 8: 'xi'",
        "unknown='add' or 'drop'",
        label="team",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert graph.num_edges == 4
    assert "4 edges of edges.csv to unknown nodes dropped" in notes(graph)
    more = en.read("nodes.csv", "edges.csv", label="team", unknown="add")
    assert more.node_ids == ("ann", "bob", "cas", "dan", "eve", "yan", "xi", "vic", "zoe", "wu")
    assert more.num_edges == 8
    assert more.labels[5:].tolist() == [-1] * 5
    assert "5 nodes added that only edges.csv has ('yan')." in notes(more)
    assert more.summary.files["nodes.csv"].startswith("5 rows, "), (
        "those of the file, without the nodes that were added"
    )
    assert (
        en.read(
            "nodes.csv", {"source": ["ann"], "target": ["bob"]}, label="team", unknown="add"
        ).num_nodes
        == 5
    )
    with pytest.raises(UsageError, match=r"'dorp'.*did you mean 'drop'"):
        en.read("nodes.csv", "edges.csv", unknown="dorp")


def test_what_becomes_of_edges_to_unknown_nodes_is_in_the_recipe(write):
    write(nodes_csv=PEOPLE, edges_csv=LINKS + "ann,zoe\n")
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(
            json.dumps(
                en.read(
                    "nodes.csv", "edges.csv", label="team", unknown="drop"
                ).feature_encoder.to_dict()
            )
        )
    )
    assert en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder).num_nodes == 5
    assert (
        en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder, unknown="add").num_nodes
        == 6
    )
    refused("1 edge", unknown="refuse", feature_encoder=feature_encoder)


@pytest.mark.parametrize(
    "edges", ["source,target\nann,ann\nbob,bob\n", "source,target,weight\nann,bob,0\ncas,cas,2\n"]
)
def test_edges_that_join_nothing_are_warned_of(write, edges):
    """Only a count of what was dropped told that a network was trained without any edge."""
    write(nodes_csv=PEOPLE, edges_csv=edges)
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.num_edges == 0
    assert any(
        "No edge of edges.csv joins two nodes" in warning.text for warning in graph.summary.warnings
    )


def test_dropping_edges_must_leave_some(write):
    """All were dropped and counted as repaired, and a network was trained without any."""
    write(nodes_csv=PEOPLE, edges_csv="source,target\nx1,x2\nx2,ann\n")
    refused(
        "No edge of edges.csv joins two of the 5 nodes in the node table (row 2: 'x1'; row 3: 'x2')",
        "Name the right columns",
        label="team",
        unknown="drop",
    )
    write(edges_csv="source,target\nx1,x2\nx2,ann\nann,bob\n")
    graph = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert [note.text for note in graph.summary.warnings] == [
        "2 edges of edges.csv to unknown nodes dropped (row 2: 'x1'; row 3: 'x2'), more than half of its 3."
    ]
    write(edges_csv="source,target\nx1,x2\ncas,bob\nann,bob\n")
    assert not en.read("nodes.csv", "edges.csv", label="team", unknown="drop").summary.warnings


def test_ids_that_differ_only_in_capitals_or_spaces_are_named(write):
    write(nodes_csv=PEOPLE, edges_csv="source,target\nx1,ann\nBob,ann\nCAS,Ann\n")
    alike = "; 'Bob' and 'bob' differ only in capitals or spaces"
    refused(
        f"row 3: 'Bob'; row 4: 'CAS'){alike}. Write the ids alike, name the right columns",
        label="team",
    )
    refused(
        f"row 4: 'CAS'){alike}. Write the ids alike", "unknown='add'", label="team", unknown="drop"
    )
    added = en.read("nodes.csv", "edges.csv", label="team", unknown="add")
    assert [note.text for note in added.summary.warnings] == [
        f"4 nodes added that only edges.csv has ('x1'){alike}."
    ]
    write(edges_csv="source,target\nann,bob\nbob,cas\nann, c a s\n")
    dropped = en.read("nodes.csv", "edges.csv", label="team", unknown="drop")
    assert (
        "1 edge of edges.csv to unknown nodes dropped (row 4: 'c a s'); 'c a s' and 'cas' differ only in capitals or spaces."
        in notes(dropped)
    )


def test_a_class_with_one_node_is_allowed_and_said(write):
    write(nodes_csv="id,x,label\n1,1,a\n2,2,b\n3,4,b\n", edges_csv="1,2\n2,3\n")
    assert "one node" in en.read("nodes.csv", "edges.csv").summary.warnings[0].text


@pytest.mark.parametrize("written", ["-1", "?", "Unknown", "-"])
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
        f"'{written}' is treated as a class. If it means unlabelled, declare it missing (na=['{written}'], or --na={written})."
    ]
    assert not en.read("nodes.csv", "edges.csv", na=[written]).summary.warnings


def test_edges_in_both_directions_are_counted_once_and_it_is_said(write):
    write(nodes_csv=PEOPLE, edges_csv="source,target,weight\nann,bob,1\nbob,ann,3\nbob,cas,2\n")
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == [1.5, 1.0]
    assert (
        "1 edge of edges.csv listed in both directions, counted once; the largest weight is kept."
        in notes(graph)
    )
    assert "directions" not in notes(en.read("nodes.csv", "edges.csv", label="team", directed=True))
    write(
        edges_csv="source,target\nann,bob\nbob,ann\n"
    )  # every one of them: that is how it is written
    assert "directions" not in notes(en.read("nodes.csv", "edges.csv", label="team"))


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


def test_a_column_that_gives_the_label_away_is_named(write):
    rows = [f"{i},{'ABC'[i % 3]},{'pq'[i % 2]},{'red' if i % 3 else 'blue'}" for i in range(30)]
    write(nodes_csv="id,code,other,label\n" + "\n".join(rows), edges_csv="1,2\n2,3\n")
    (warning,) = en.read("nodes.csv", "edges.csv").summary.warnings
    assert "Label leakage: column 'code' of nodes.csv determines the label" in warning.text
    assert not en.read("nodes.csv", "edges.csv", features="other").summary.warnings


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


COPIES = {
    "numbers": [10, 20, 30],
    "numbers as text": ["10", "20,5", "30"],
    "finer numbers": [1, 2, 3, 4, 5, 6],  # of which two stand for each class
    "days": ["2020-01-01", "2020-02-01", "2020-03-01"],
    "true or false": [True, False, False],
    "yes or no": ["yes", "no", "no"],
    "yes or nothing": ["yes", None, None],
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_the_label_is_named_whatever_it_is_written_in(copy):
    values = COPIES[copy]
    label = [i % len(values) % 3 for i in range(60)]
    label = label if len({repr(v) for v in values}) > 2 else [int(i == 0) for i in label]
    copied = [values[i % len(values)] for i in range(60)]
    nodes = {
        "id": [f"n{i}" for i in range(60)],
        "copy": copied,
        "x": [i // 2 for i in range(60)],
        "label": label,
    }
    (warning,) = en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings
    assert "Label leakage: column 'copy' of the table of nodes determines the label" in warning.text
    nodes["label"][30] = 1 - min(nodes["label"][30], 1)  # one node of which it tells the wrong one
    assert not en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings


@pytest.mark.parametrize("kind", [float, str])
def test_numbers_that_differ_nearly_everywhere_do_not_give_the_label_away(kind):
    nodes = {
        "id": [f"n{i}" for i in range(60)],
        "x": [kind(i // 2 / 4) for i in range(60)],
        "label": [i // 2 % 2 for i in range(60)],
    }
    assert not en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings


def test_one_of_many_columns_may_fit_the_labels_by_chance():
    """Of 500 rare words some are in the only paper of a class."""
    words = np.random.default_rng(0).random((500, 50)) < 0.02
    assert (words[:, 0] & ~words[:, 1:].any(1)).any()
    nodes = {
        "id": [f"n{i}" for i in range(50)],
        **{f"w{j}": word for j, word in enumerate(words)},
        "label": ["a"] + ["b"] * 49,
    }
    assert "leakage" not in notes(en.read(nodes, {"source": ["n0"], "target": ["n1"]}))


# ---------------------------------------------------------------------- refused

NODES, EDGES = "id,x,label\n1,1,a\n2,2,b\n3,5,b\n", "source,target\n1,2\n2,3\n"
BAD = {
    "duplicate id": ({"nodes_csv": NODES + "2,9,a\n3,8,b\n"}, ("nodes.csv, row 5", "'id'", "'2'", "row 3", "2 such rows")),
    "duplicate id with spaces": ({"nodes_csv": NODES + " 2 ,9,a\n"}, ("row 5", "'2'", "row 3")),
    "empty id": ({"nodes_csv": NODES + ",9,a\n"}, ("nodes.csv, row 5", "'id'")),
    "empty end": ({"edges_csv": EDGES + "1,\n"}, ("edges.csv, row 4", "'target'")),
    "one class": ({"nodes_csv": "id,x,label\n1,1,a\n2,2,a\n3,3,a\n"}, ("'label'", "'a'", "two classes")),
    "no label": ({"nodes_csv": "id,x,label\n1,1,\n2,2,\n3,3,\n"}, ("'label'", "no row has a label")),
    "all labels differ": ({"nodes_csv": "id,x,label\n1,1,a\n2,2,b\n3,3,c\n"}, ("'label'", "3 labels", "different")),
    "infinity": ({"nodes_csv": "id,x,label\n1,1,a\n2,-inf,b\n3,5,b\n"}, ("nodes.csv, row 3", "'x'", "-inf", "1 such cell")),
    "too large": ({"nodes_csv": "id,x,label\n1,1,a\n2,1e300,b\n3,5,b\n"}, ("nodes.csv, row 3", "'x'", "1e+300")),
    "ragged": ({"nodes_csv": NODES + "4,6,b,9\n5,6\n"}, ("nodes.csv, row 5", "4 cells", "has 3", "2 such rows", "double quotes")),
    "no name for the index": ({"nodes_csv": "x,label\n1,1,a\n2,2,b\n"}, ("nodes.csv, row 2", "3 cells", "lacks the name of a column")),
    "ragged with accents": ({"nodes_csv": (NODES + "4,é,b,9\n").encode("latin-1")}, ("nodes.csv, row 5", "4 cells")),
    "quote never closed": ({"nodes_csv": 'id,x,label\n1,1,a\n2,2,"b\n3,5,b\n'}, ("nodes.csv, row 3", "quote", "never closes")),
    "quote never closed earlier": ({"nodes_csv": 'id,x,label\n1,1,a\n2,"2,b\n3,5,b\n'}, ("nodes.csv, row 3", "quote")),
    "wrong delimiter": ({"nodes_csv": NODES.replace(",", "~")}, ("no column 'x'", "only column: id~x~label", "semicolons"), {"label": "x"}),
    "wrong delimiter of edges": ({"edges_csv": EDGES.replace(",", "~")}, ("edges.csv", "target", "Its only column")),
    "empty": ({"nodes_csv": ""}, ("nodes.csv is empty",)),
    "blank": ({"nodes_csv": "\n \n\n"}, ("nodes.csv is empty",)),
    "only a byte order mark": ({"nodes_csv": b"\xef\xbb\xbf"}, ("nodes.csv is empty",)),
    "heading only": ({"nodes_csv": "id,x,label\n"}, ("nodes.csv", "no rows")),
    "zero bytes": ({"nodes_csv": bytes(range(256))}, ("nodes.csv", "not text")),
    "excel": ({"nodes_csv": b"PK\x03\x04" + bytes(100)}, ("Excel", "CSV")),
    "not gzip": ({"nodes_csv": gzip.compress(NODES.encode())[:-9]}, ("nodes.csv", "damaged")),
    "two columns of one name": ({"nodes_csv": "id,x,x,label\n1,2,3,a\n"}, ("nodes.csv, row 1", "columns 2 and 3", "'x'")),
    "no heading": ({"nodes_csv": "1,0.5,3\n2,0.7,4\n"}, ("nodes.csv, row 1", "heading")),
    "negative weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,-4\n"}, ("edges.csv, row 3", "'weight'", "'-4'", "weight='none'")),
    "missing weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,\n"}, ("edges.csv, row 3", "'weight'", "nothing")),
    "a word as weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,heavy\n"}, ("edges.csv, row 3", "'heavy'")),
    "infinite weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,inf\n"}, ("edges.csv, row 3", "'inf'")),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_place(write, case):
    files, parts, *options = BAD[case]
    write(**{"nodes_csv": NODES, "edges_csv": EDGES, **files})
    refused(*parts, **(options[0] if options else {}))


def test_missing_files_and_folders(write, tmp_path):
    write(nodes_csv=NODES, edges_csv=EDGES)
    refused("There is no file people.csv", nodes="people.csv")
    refused("folder", nodes=str(tmp_path))
    refused("edges are missing", edges=None, kind=UsageError)
    refused("list", nodes=[1, 2])
    refused("different lengths", nodes={"id": [1, 2], "x": [1]})


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "nodes.xlsx",
            b"PK\x03\x04" + bytes(100),
            "nodes.xlsx is not text but a zip archive or an Excel workbook: save the sheet as CSV",
        ),
        (
            "nodes.xls",
            b"\xd0\xcf\x11\xe0" + bytes(100),
            "nodes.xls is not text but an old Excel workbook: save the sheet as CSV",
        ),
        (
            "nodes.csv.xz",
            lzma.compress(NODES.encode()),
            "nodes.csv.xz is not text but compressed by xz: decompress it, or use gzip",
        ),
        (
            "nodes.data",
            NODES.encode(),
            "nodes.data: the ending does not name a table format. Rename the file to one of .csv",
        ),
        (
            "nodes.json",
            b"[]",
            "nodes.json holds a whole graph, nodes and edges. Give it alone, or give a table",
        ),
        ("a" * 300 + ".csv", None, "Cannot read"),
    ],
    ids=["xlsx", "xls", "xz", "another ending", "a whole graph", "a long name"],
)
def test_other_files_are_named_for_what_they_are(write, name, content, says):
    write(edges_csv=EDGES)
    if content is not None:
        Path(name).write_bytes(content)
    refused(says, nodes=name, kind=EverynodeError)


def test_two_columns_of_one_name_in_a_frame():
    frame = pandas.DataFrame([[1, 2, 3], [2, 3, 4], [3, 4, 5]], columns=["id", "x", "x"])
    with pytest.raises(
        DataError, match="the table of nodes has two columns named 'x': rename one of them"
    ):
        en.read(frame, {"source": [1], "target": [2]})


def test_broken_json_lines_and_parquet(write):
    write(
        nodes_jsonl='{"id": 1, "label": "a"}\n\n{"id": 2,\n',
        other_jsonl='{"id": 1}\n[1]\n',
        nodes_parquet=b"PAR1 broken",
        edges_csv=EDGES,
    )
    refused("nodes.jsonl, line 3", "not JSON", nodes="nodes.jsonl")
    refused("other.jsonl, line 2", "object", nodes="other.jsonl")
    refused("nodes.parquet", "not a Parquet file", nodes="nodes.parquet")


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.large_string()),
        pa.large_list(pa.string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_lists_of_words_in_any_of_arrows_types(kind):
    tags = pa.array([["a", "b"], ["a", "c"], None, [None, "a"], ["a", "b"]], kind)
    graph = en.read(
        pa.table({"id": range(5), "tags": tags}),
        {"source": [0, 1, 2, 3], "target": [1, 2, 3, 4]},
        features="tags:category",
    )
    assert graph.feature_encoder.feature_names == [
        "tags = a",
        "tags = a b",
        "tags = a c",
        "tags is missing",
    ]
    assert graph.dense_features.argmax(1).tolist() == [1, 2, 3, 0, 1]


def test_json_lines_of_mixed_values(write):
    rows = [
        {"id": 1, "x": 1, "label": "a"},
        {"id": "b", "x": "many", "label": "b"},
        {"id": 3, "x": [1], "label": "b"},
        {"id": 4, "label": None},
    ]
    write(
        nodes_jsonl="\n".join(map(json.dumps, rows)),
        edges_jsonl='{"source": 1, "target": "b"}\n{"source": 3, "target": 4}',
    )
    graph = en.read("nodes.jsonl", "edges.jsonl")
    assert graph.node_ids == ("1", "b", "3", "4")
    assert graph.labels.tolist() == [0, 1, 1, -1]


# ---------------------------------------------------------------------- the feature encoder


def test_a_recipe_gives_other_files_the_same_columns(write):
    write(
        nodes_csv=PEOPLE,
        edges_csv=LINKS,
        new_csv="team,id,city,age,member\n,x,Rome,50,1\ngreen,y,Paris,,no\n",
        links_csv="x,y\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(graph.feature_encoder.to_dict()))
    )
    assert feature_encoder == graph.feature_encoder
    again = en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder)
    assert same(again, graph)
    new = en.read("new.csv", "links.csv", feature_encoder=feature_encoder)
    assert new.classes == graph.classes
    assert new.labels.tolist() == [-1, -1]
    age = (50 - 47.5) / np.std([30, 40, 50, 70])
    expected = torch.tensor([[age, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0]], dtype=torch.float32)
    torch.testing.assert_close(new.dense_features, expected)
    assert "1 value not seen in training ('Paris')" in notes(new)
    assert "1 label in column 'team' not among the model's classes ('green': row 3)" in notes(new)


def test_a_recipe_knows_how_a_missing_value_is_written(write):
    write(
        nodes_csv="id,x,colour,label\n1,1,red,a\n2,2,?,b\n3,?,blue,?\n4,5,blue,b\n",
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv", na=["?"])
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(graph.feature_encoder.to_dict()))
    )
    again = en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder)
    assert same(again, graph)
    assert again.summary.repairs == graph.summary.repairs
    write(new_csv="id,x,colour\n1,-,?\n2,?,red\n", links_csv="1,2\n")
    new = en.read("new.csv", "links.csv", feature_encoder=feature_encoder, na=["-"])
    assert new.feature_encoder.feature_names == [
        "x",
        "x is missing",
        "colour = blue",
        "colour = red",
        "colour is missing",
    ]
    assert new.dense_features.tolist() == [[0, 1, 0, 0, 1], [0, 1, 0, 1, 0]]


def test_a_recipe_keeps_the_unit_of_weights_that_are_all_one(write):
    """They are none only if the feature encoder's weights were one on average too."""
    write(
        nodes_csv=PEOPLE,
        edges_csv="source,target,weight\nann,bob,2\nbob,cas,6\n",
        new_csv="source,target,weight\nann,bob,1\nbob,cas,1\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    assert feature_encoder.weight_unit == 4
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.25,
        0.25,
    ]
    assert en.read("nodes.csv", "new.csv", label="team").weights is None


def test_a_recipe_reads_commas_in_weights_as_before(write):
    """1,250 alone may be a thousand or a fraction: whatever it was taken for, it is the same in the next file."""
    write(
        nodes_csv=PEOPLE,
        edges_csv="source;target;weight\nann;bob;1,250\nbob;cas;3,750\n",
        new_csv="source;target;weight\nann;bob;1,250\nbob;cas;3,75\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.weights.tolist() == [0.5, 1.5]
    refused(
        "new.csv, row 3, column 'weight' holds '3,75'",
        edges="new.csv",
        feature_encoder=graph.feature_encoder,
    )
    write(edges_csv="source;target;weight\nann;bob;0,250\nbob;cas;3,750\n")
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    assert feature_encoder.weight_unit == 2
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.625,
        1.875,
    ]


def test_commas_in_weights_that_may_be_either_are_refused_as_in_features(write):
    write(
        nodes_csv=PEOPLE,
        edges_csv="source;target;weight\nann;bob;1\nbob;cas;3\n",
        new_csv="source;target;weight\nann;bob;1,500\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    refused(
        "Column 'weight' of new.csv holds 1,500, which may mean 1.500 or 1500",
        edges="new.csv",
        feature_encoder=feature_encoder,
    )
    write(new_csv="source;target;weight\nann;bob;1,500\nbob;cas;2,5\n")
    assert en.read("nodes.csv", "new.csv", feature_encoder=feature_encoder).weights.tolist() == [
        0.75,
        1.25,
    ]
    write(new_csv="source;target;weight\nann;bob;12,5\nbob;cas;1.234\ncas;dan;1.5\n")
    refused(
        "Column 'weight' of new.csv holds 1.234 beside 12,5, which may mean 1.234 or 1234",
        edges="new.csv",
        label="team",
    )


def test_a_recipe_knows_a_category_of_long_numbers_in_every_format(write):
    people = {"id": [1, 2, 3, 4], "phone": [49123456789012, 49123456789013, None, 49123456789012]}
    write(
        nodes_csv="id,phone\n1,49123456789012\n2,49123456789013\n3,\n4,49123456789012\n",
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv", features="phone:category")
    assert graph.feature_encoder.feature_names == [
        "phone = 49123456789012",
        "phone = 49123456789013",
        "phone is missing",
    ]
    again = en.read(people, "edges.csv", feature_encoder=graph.feature_encoder)
    assert torch.equal(again.dense_features, graph.dense_features)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_long_whole_numbers_keep_all_their_digits(write, kind):
    """As fractions 2^60 and 2^60 + 1 are one."""
    code = [2**60 + i % 3 + (2**63 if kind == "uint64" else 0) for i in range(9)]
    nodes = {"id": list(range(9)), "code": pa.array(code, kind), "label": pa.array(code, kind)}
    edges = {"source": [0, 1], "target": [1, 2]}
    graph = en.read(nodes, edges, features="code:category")
    assert graph.feature_encoder.feature_names == [f"code = {value}" for value in code[:3]]
    assert graph.classes == tuple(map(str, code[:3]))
    write(nodes_csv="id,code,label\n" + "".join(f"{i},{c},{c}\n" for i, c in enumerate(code)))
    assert en.read("nodes.csv", edges, features="code:category").classes == graph.classes
    assert torch.equal(
        en.read("nodes.csv", edges, feature_encoder=graph.feature_encoder).dense_features,
        graph.dense_features,
    )
    assert en.read(nodes, edges, features="code:number").num_features  # rounded, as numbers are


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
def test_with_a_recipe_no_feature_is_taken_for_the_id(write, heading, found):
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


def test_a_recipe_needs_its_columns(write):
    write(
        nodes_csv=PEOPLE,
        edges_csv=LINKS,
        new_csv="id,city,member\nx,Rome,1\ny,Rome,no\n",
        links_csv="x,y\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    refused(
        "new.csv has no column 'age'",
        nodes="new.csv",
        edges="links.csv",
        feature_encoder=feature_encoder,
    )
    for broken in (
        {},
        {**feature_encoder.to_dict(), "columns": [{"name": "x", "kind": "magic"}]},
        {**feature_encoder.to_dict(), "columns": 3},
    ):
        with pytest.raises(DataError, match="not a feature encoder"):
            FeatureEncoder.from_dict(broken)


@pytest.mark.parametrize(
    ("cells", "parts"),
    [("train,holdout,,test", [[0], [], [3]]), ("1,2,3,1", None), ("a,b,c,d", None)],
)
def test_with_a_recipe_the_split_is_no_more_than_a_remark(write, cells, parts):
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
