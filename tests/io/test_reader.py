"""User files from end to end: two tables become a graph, and a bad file is refused with its place."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import everynode as en
from everynode.errors import UsageError
from everynode.sparse import SparseMatrix

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""


LINKS = "source,target\nann,bob\nbob,cas\ncas,dan\ndan,eve\n"


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


def test_the_same_table_in_every_format_is_the_same_graph(write, refused, same):
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
    Path("comments.csv").write_text("# written manually\n#\n" + PEOPLE)
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


def test_edges_alone(write, refused):
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
    "excel": ({"nodes_csv": b"PK\x03\x04" + bytes(100)}, ("Excel", ".xlsx")),
    "not gzip": ({"nodes_csv": gzip.compress(NODES.encode())[:-9]}, ("nodes.csv", "damaged")),
    "two columns of one name": ({"nodes_csv": "id,x,x,label\n1,2,3,a\n"}, ("nodes.csv, row 1", "columns 2 and 3", "'x'")),
    "no heading": ({"nodes_csv": "1,0.5,3\n2,0.7,4\n"}, ("nodes.csv, row 1", "heading")),
    "negative weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,-4\n"}, ("edges.csv, row 3", "'weight'", "'-4'", "weight='none'")),
    "missing weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,\n"}, ("edges.csv, row 3", "'weight'", "nothing")),
    "a word as weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,heavy\n"}, ("edges.csv, row 3", "'heavy'")),
    "infinite weight": ({"edges_csv": "source,target,weight\n1,2,1\n2,3,inf\n"}, ("edges.csv, row 3", "'inf'")),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_place(write, case, refused):
    files, parts, *options = BAD[case]
    write(**{"nodes_csv": NODES, "edges_csv": EDGES, **files})
    refused(*parts, **(options[0] if options else {}))
