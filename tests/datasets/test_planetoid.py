import os
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import scipy.sparse
import torch

from everynode.datasets import files, load, planetoid
from everynode.errors import DataError


def parts(**changes):
    """Seven nodes, two classes: 0-3 known, 6 and 4 tested (in this order), 5 a gap."""
    content = {
        "x": scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)[:2]),
        "allx": scipy.sparse.csr_matrix(np.arange(12, dtype=np.float32).reshape(4, 3)),
        "tx": scipy.sparse.csr_matrix(np.array([[60, 0, 61], [40, 41, 0]], dtype=np.float32)),
        "y": np.array([[1, 0], [0, 1]]),
        "ally": np.array([[1, 0], [0, 1], [1, 0], [0, 0]]),
        "ty": np.array([[0, 1], [1, 0]]),
        "graph": defaultdict(list, {0: [1, 1, 0], 1: [0], 2: [6], 6: [2]}),
    } | changes
    return {key: pickle.dumps(value, protocol=3) for key, value in content.items()} | {
        "test.index": changes.get("test.index", b"6\n4\n")
    }


def test_order_gaps_and_labels():
    raw = planetoid.read(parts(), "ind.toy")
    dense = raw.features.toarray()
    assert dense[6].tolist() == [60, 0, 61]
    assert dense[4].tolist() == [40, 41, 0]
    assert dense[5].tolist() == [0, 0, 0]
    assert raw.labels.tolist() == [
        0,
        1,
        0,
        -1,
        0,
        -1,
        1,
    ]  # neither the gap nor an empty row becomes class 0
    assert raw.arcs.T.tolist() == [[0, 1], [0, 1], [0, 0], [1, 0], [2, 6], [6, 2]]
    assert [part.tolist() for part in raw.split] == [[0, 1], [2, 3], [4, 6]]
    assert raw.num_classes == 2


def test_citeseer_keeps_its_unlabeled_nodes(tmp_path):
    graph = load("citeseer", data_dir=tmp_path)
    gap = graph.labels < 0
    assert int(gap.sum()) == 15
    assert not bool(graph.dense_features[gap].any())
    assert int((graph.degree == 0).sum()) == 48
    assert not torch.isin(gap.nonzero()[:, 0], torch.cat(graph.splits[0])).any()


class Hostile:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("function", [os.system, eval, exec])
def test_no_code_runs(function, protocol, tmp_path):
    marker = tmp_path / "marker"
    text = f"touch {marker}" if function is os.system else f"open({str(marker)!r}, 'w').close()"
    content = pickle.dumps(Hostile(function, text), protocol=protocol)
    with pytest.raises(
        DataError,
        match=r"ind.cora.x is not a Planetoid file, and nothing in it was run: it holds the name",
    ):
        planetoid.unpickle(content, "ind.cora.x")
    inside = pickle.dumps({0: [Hostile(function, text)]}, protocol=protocol)
    with pytest.raises(DataError, match="nothing in it was run"):
        planetoid.read(parts() | {"graph": inside}, "ind.cora")
    assert not marker.exists()


def test_hostile_file_is_stopped_by_its_digest_before_it_is_parsed(
    data_root, tmp_path, monkeypatch
):
    for part in planetoid.PLANETOID_PARTS:
        target = tmp_path / "Cora" / "raw" / f"ind.cora.{part}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((data_root / "Cora" / "raw" / target.name).read_bytes())
    marker = tmp_path / "marker"
    (tmp_path / "Cora/raw/ind.cora.allx").write_bytes(
        pickle.dumps(Hostile(os.system, f"touch {marker}"))
    )
    with pytest.raises(DataError, match=r"ind\.cora\.allx is not the public file"):
        load("cora", data_dir=tmp_path)
    monkeypatch.setattr(files, "digests", dict)  # and without the digest, by the unpickler
    with pytest.raises(
        DataError, match=r"ind\.cora\.allx is not a Planetoid file, and nothing in it was run"
    ):
        load("cora", data_dir=tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "value",
    [
        np.array([Hostile(os.system, "true")], dtype=object),
        np.array([1, "a", None], dtype=object),
        np.array(["text"]),
        np.zeros(2, dtype=[("a", "i4")]),
        OrderedDict(),
        scipy.sparse.coo_matrix(np.eye(2)),
        [1, 2],
        "text",
        42,
        None,
    ],
    ids=lambda v: type(v).__name__ + str(getattr(v, "dtype", "")),
)
def test_only_plain_arrays_are_admitted(value):
    with pytest.raises(DataError, match="is not a Planetoid file"):
        planetoid.unpickle(pickle.dumps(value, protocol=3), "file")


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", ">i2", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(dtype, order):
    array = np.array([[0, 1, 1], [1, 0, 0]], dtype=dtype, order=order)
    assert np.array_equal(planetoid.unpickle(pickle.dumps(array, protocol=3), "file"), array)


def test_every_cut_of_a_file_is_refused():
    content = pickle.dumps(scipy.sparse.csr_matrix(np.eye(3)), protocol=3)
    for length in range(len(content)):
        with pytest.raises(DataError):
            planetoid.unpickle(content[:length], "file")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"test.index": b"6\nsix\n"}, r"test\.index, line 2: 'six'"),
        ({"test.index": b"6\n"}, r"test\.index does not hold 2 node numbers"),
        ({"test.index": b"6\n6\n"}, r"test\.index does not hold distinct numbers from 4"),
        ({"test.index": b"6\n1\n"}, r"test\.index does not hold distinct numbers from 4"),
        ({"ally": np.zeros((3, 2))}, r"ally does not hold 4 rows"),
        ({"y": np.zeros(3)}, r"\.y does not hold a table"),
        ({"allx": np.zeros((4, 3))}, r"allx does not hold a csr_array"),
        ({"graph": {0: 5}}, r"graph does not map"),
        ({"graph": {0: [[1]]}}, r"graph does not map"),
    ],
)
def test_files_that_do_not_fit(changes, words):
    with pytest.raises(DataError, match=words):
        planetoid.read(parts(**changes), "ind.toy")
