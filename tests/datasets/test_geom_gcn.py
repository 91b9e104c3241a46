import io
import time

import numpy as np
import pytest

from everynode.datasets import geom_gcn, load
from everynode.errors import DataError

NODES = b"node_id\tfeature\tlabel\n1\t0,1,1\t0\n0\t1,0,0\t2\n"
EDGES = b"node_id\tnode_id\n0\t1\n1\t1\n0\t1\n"


def test_reads_by_node_number_and_keeps_arcs_as_they_are():
    raw = geom_gcn.read(NODES, EDGES, "nodes", "edges")
    assert raw.features.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert raw.labels.tolist() == [2, 0]
    assert raw.num_classes == 3
    assert raw.arcs.tolist() == [[0, 1, 0], [1, 1, 1]]


def test_features_by_number():
    features, labels = geom_gcn.read_nodes(b"head\n1\t2,0,2\t0\n0\t1\t1\n", "nodes", listed=True)
    assert features.toarray().tolist() == [[0, 1, 0], [1, 0, 1]]
    assert labels.tolist() == [1, 0]


def test_features_that_are_not_bits():
    features, _ = geom_gcn.read_nodes(b"head\n0\t0.5,1,-2\t0\n1\t0,10,0\t0\r\n", "nodes")
    assert features.toarray().tolist() == [[0.5, 1, -2], [0, 10, 0]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"head\n0\t1,0\t0\n1\t1,x\t0\n", "nodes, line 3: could not convert"),
        (b"head\n0\t1,0\t0\n1\t1\t0\n", "nodes, line 3: 1 features where the lines before have 2"),
        (b"head\n0\t1,0\n", "nodes, line 2: 2 fields between tabs where 3 are expected"),
        (b"head\n0\t1,0\tA\n", "nodes, line 2: invalid literal"),
        (b"head\n0\t1,0\t-3\n", "nodes, line 2: the class is -3"),
        (b"head\n0\t1,0\t0\n0\t1,0\t0\n", "nodes, line 3: node number 0 is repeated"),
        (b"head\n5\t1,0\t0\n", "nodes, line 2: node number 5"),
        (b"head\n0\t\t0\n", "nodes, line 2: could not convert"),
        (b"head\n", "nodes has no nodes"),
        (b"", "nodes has no nodes"),
    ],
)
def test_bad_node_lines(content, words):
    with pytest.raises(DataError, match=words):
        geom_gcn.read_nodes(content, "nodes")


def test_bad_feature_number():
    with pytest.raises(DataError, match="line 2: feature number -1"):
        geom_gcn.read_nodes(b"head\n0\t-1,3\t0\n", "nodes", listed=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"head\n0\t1\n0\tx\n", "edges, line 3: invalid literal"),
        (b"head\n0\t1\n0\n1\t1\t1\n", "edges, line 3: 1 fields between tabs where 2"),
        (b"head\n0\t2\n", "edges, line 2: nodes 0 and 2, but nodes are 0 to 1"),
        (b"head\n-1\t0\n", "edges, line 2: nodes -1 and 0"),
        (b"head\n0\t99999999999999999999\n", "edges, line 2"),
    ],
)
def test_bad_edge_lines(content, words):
    with pytest.raises(DataError, match=words):
        geom_gcn.read_edges(content, "edges", 2)


def test_no_edges():
    assert geom_gcn.read_edges(b"head\n", "edges", 2).shape == (2, 0)


def split_file(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_split():
    content = split_file(
        train_mask=np.array([1, 0, 0], np.uint8),
        val_mask=np.array([False, True, False]),
        test_mask=np.array([0, 0, 1]),
    )
    assert [part.tolist() for part in geom_gcn.read_split(content, "fold", 3)] == [[0], [1], [2]]
    with pytest.raises(
        DataError, match=r"fold is not a split: train_mask has shape \(3,\), but there are 4 nodes"
    ):
        geom_gcn.read_split(content, "fold", 4)
    for length in (0, 10, len(content) // 2, len(content) - 1):
        with pytest.raises(DataError, match="fold is not a split"):
            geom_gcn.read_split(content[:length], "fold", 3)


def test_split_without_a_part_or_with_pickles():
    mask = np.zeros(3)
    with pytest.raises(DataError, match="val_mask"):
        geom_gcn.read_split(split_file(train_mask=mask), "fold", 3)
    with pytest.raises(DataError, match="allow_pickle=False"):
        geom_gcn.read_split(
            split_file(train_mask=np.array([None] * 3), val_mask=mask, test_mask=mask), "fold", 3
        )


def test_the_largest_file_is_read_quickly(data_root):
    start = time.process_time()
    load("squirrel", data_dir=data_root)
    assert (
        time.process_time() - start < 2
    )  # 0.6 s on a slow core; parsing number by number takes several times as long
