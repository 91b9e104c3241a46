import gzip

import pytest

from everynode.data import is_present, load, ogb
from everynode.errors import DataError

SMALL = {
    "raw/edge.csv.gz": "0,1\n2,1\n1,1\n0,1\n",
    "raw/node-feat.csv.gz": "0.5,-1.25\n0,3\n1e-3,2\n4,4\n",
    "raw/node-label.csv.gz": "0\n2\n1\nnan\n",
    "split/time/train.csv.gz": "2\n0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "3\n",
}


def write(root, **changes):
    for name, text in (SMALL | changes).items():
        path = root / "ogbn_arxiv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode()))
    return root


def test_a_small_graph_in_the_layout_of_arxiv(tmp_path):
    graph = load("ogbn-arxiv", data_dir=write(tmp_path), directed=True)
    assert graph.edge_index.T.tolist() == [[0, 1], [2, 1]]
    assert graph.repairs == {"self_loops": 1, "repeated_edges": 1, "one_way_edges": 0}
    assert graph.dense_features[0].tolist() == [0.5, -1.25]
    assert graph.labels.tolist() == [0, 2, 1, -1]
    assert [part.tolist() for part in graph.splits[0]] == [[0, 2], [1], [3]]
    assert load("ogbn-arxiv", data_dir=tmp_path).repairs["one_way_edges"] == 2
    assert len(load("ogbn-arxiv", "random", data_dir=tmp_path, per_class=1).splits[0].train) == 3
    assert is_present("ogbn-arxiv", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("raw/edge.csv.gz", "0,1\n0,x\n", "edge.csv.gz is not a table of numbers: .*row 1"),
        ("raw/edge.csv.gz", "0,1,2\n", "edge.csv.gz has 3 columns where 2"),
        ("raw/edge.csv.gz", "0,1.5\n", "edge.csv.gz: 1.5 is not a whole number"),
        ("raw/edge.csv.gz", "0,inf\n", "edge.csv.gz: inf is not a whole number"),
        ("raw/edge.csv.gz", "0,7\n", "nodes 0 and 7, but nodes are 0 to 3"),
        ("raw/node-feat.csv.gz", "1,2\n3\n", "node-feat.csv.gz is not a table of numbers"),
        ("raw/node-feat.csv.gz", "é\n", "node-feat.csv.gz is not a table of numbers"),
        ("raw/node-label.csv.gz", "0\n1\n", "node-label.csv.gz has 2 x 1 labels for 4 nodes"),
        ("split/time/test.csv.gz", "9\n", "test nodes of fold 0 reach outside"),
        ("split/time/test.csv.gz", b"not gzip", "test.csv.gz is damaged or cut short"),
        ("raw/edge.csv.gz", gzip.compress(b"0,1\n" * 999, mtime=0)[:-12], "edge.csv.gz is damaged or cut short"),
    ],
)
def test_bad_files(file, text, words, tmp_path):
    with pytest.raises(DataError, match=words):
        load("ogbn-arxiv", data_dir=write(tmp_path, **{file: text}))


def test_missing(tmp_path):
    (write(tmp_path) / "ogbn_arxiv" / "raw" / "edge.csv.gz").unlink()
    with pytest.raises(DataError, match=r"edge\.csv\.gz is missing and cannot be downloaded: unpack OGB's arxiv\.zip"):
        load("ogbn-arxiv", data_dir=tmp_path)


def test_empty_tables():
    none = {name: gzip.compress(b"") for name in ogb.OGB_FILES}
    filled = none | {name: gzip.compress(SMALL[name].encode()) for name in ("raw/node-feat.csv.gz", "raw/node-label.csv.gz")}
    raw = ogb.read(filled, "folder")
    assert raw.arcs.shape == (2, 0)
    assert [len(part) for part in raw.split] == [0, 0, 0]
