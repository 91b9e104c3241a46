"""Tables from files and from memory, and files that are no table."""

from __future__ import annotations

import datetime
import importlib
import json
import lzma
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everynode as en
from everynode.errors import DataError, EverynodeError, UsageError

NODES, EDGES = "id,x,label\n1,1,a\n2,2,b\n3,5,b\n", "source,target\n1,2\n2,3\n"


def test_missing_files_and_folders(write, tmp_path, refused):
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
            "nodes.csv",
            b"PK\x03\x04" + bytes(100),
            "nodes.csv is not text but a zip archive or an Excel workbook: name a workbook .xlsx",
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
def test_other_files_are_named_for_what_they_are(write, name, content, says, refused):
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


def test_broken_json_lines_and_parquet(write, refused):
    write(
        nodes_jsonl='{"id": 1, "label": "a"}\n\n{"id": 2,\n',
        other_jsonl='{"id": 1}\n[1]\n',
        nodes_parquet=b"PAR1 broken",
        edges_csv=EDGES,
    )
    refused("nodes.jsonl, line 3", "not JSON", nodes="nodes.jsonl")
    refused("other.jsonl, line 2", "object", nodes="other.jsonl")
    refused("nodes.parquet", "not a Parquet file", nodes="nodes.parquet")


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


def test_long_whole_numbers_in_lists_and_raw_bytes_as_weights(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    edges = {"source": [0, 1, 2], "target": [1, 2, 3]}
    for value, kind in ((2**63 + 5, pa.uint64()), (2**53 + 1, pa.int64())):
        vectors = pa.array([[value, 1], [3, 4], [5, 6], [7, 8]], pa.list_(kind))
        pq.write_table(pa.table({"id": [0, 1, 2, 3], "v": vectors}), tmp_path / "nodes.parquet")
        assert en.read(tmp_path / "nodes.parquet", edges).num_features == 2
    weights = pa.array([b"abcd"] * 3, pa.binary(4))
    pq.write_table(pa.table({**edges, "weight": weights}), tmp_path / "edges.parquet")
    with pytest.raises(DataError, match=r"holds fixed_size_binary\[4\]. Weights are numbers"):
        en.read({"id": [0, 1, 2, 3]}, tmp_path / "edges.parquet")


def test_damaged_text_in_parquet_is_refused(tmp_path):
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xc8")]
    )
    pq.write_table(pa.table({"source": ["1", "2"], "target": bad}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="Invalid UTF8"):
        en.read(edges=tmp_path / "e.parquet")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_in_memory_are_read_alike(library):
    nodes = {
        "id": ["a", "b", "c", "d"],
        "age": [30, 40, None, 20],
        "since": [datetime.date(2020, 1, day) for day in (1, 5, 9, 30)],
        "tags": [["x", "y"], ["y"], ["x"], []],
        "label": ["u", "v", "u", None],
    }
    edges = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}
    make = {
        "pandas": lambda table: importlib.import_module("pandas").DataFrame(table),
        "polars": lambda table: importlib.import_module("polars").DataFrame(table),
        "pyarrow": lambda table: importlib.import_module("pyarrow").table(table),
    }[library]
    graph, plain = en.read(make(nodes), make(edges)), en.read(nodes, edges)
    assert graph.feature_encoder.feature_names == plain.feature_encoder.feature_names
    assert graph.digest == plain.digest
    assert graph.node_ids == plain.node_ids


@pytest.mark.parametrize(
    "labels", [[0.0, 1.0, None, 1.0], ["0.0", "1.0", "", "1.0"], [0, 1, None, 1]]
)
def test_whole_numbers_stay_whole_as_classes(labels):
    import pandas as pd

    nodes = pd.DataFrame({"id": list("abcd"), "label": labels})
    assert en.read(nodes, {"source": list("abc"), "target": list("bcd")}).classes == (0, 1)


def test_equal_numbers_among_texts_are_one_id(write, refused):
    """A column with a text has the numbers as text: 0 and 0.0 were two nodes."""
    write(
        nodes_jsonl='{"id": 0, "y": "a"}\n{"id": "13", "y": "b"}\n{"id": 0.0, "y": "b"}\n',
        edges_csv="source,target\n0,13\n",
    )
    refused("line 3", "id '0' appears twice", nodes="nodes.jsonl")
