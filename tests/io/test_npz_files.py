"""Graphs in NumPy archives."""

from __future__ import annotations

import contextlib
import io
import zipfile

import numpy as np
import pytest
import scipy.sparse

import everynode as en
from everynode.errors import DataError


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def small():
    """Labels, features and a weighted adjacency matrix of five nodes."""
    random = np.random.default_rng(0)
    adjacency = scipy.sparse.csr_array(np.triu(random.integers(0, 3, (5, 5)), 1))
    features = scipy.sparse.csr_array((random.random((5, 40)) < 0.1).astype(np.float32))
    return adjacency, features, np.array([0, 1, -1, 1, 0])


def test_the_layout_of_gnn_benchmark(tmp_path):
    adjacency, features, labels = small()
    adjacency.data[:] = 1
    arrays = {}
    for prefix, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {
            f"{prefix}_{part}": getattr(matrix, part)
            for part in ("data", "indices", "indptr", "shape")
        }
    names = np.array(["a", "b"], dtype=object)
    graph = en.read(save(tmp_path / "g.npz", **arrays, labels=labels, class_names=names))
    expected = en.Graph.from_scipy(adjacency, features, labels, classes=[0, 1])
    assert graph.digest == expected.digest
    assert graph.feature_encoder.matrix == 40
    assert "class_names" in graph.summary.warnings[0].text
    narrow = save(tmp_path / "h.npz", edge_index=[[0], [1]], x=np.ones((2, 3)))
    with pytest.raises(DataError, match=r"must hold a matrix of 40 features. It has 3"):
        en.read(narrow, feature_encoder=graph.feature_encoder)


def test_edges_features_labels_and_folds(tmp_path):
    adjacency, features, labels = small()
    coo = adjacency.tocoo()
    masks = np.eye(5, dtype=bool)
    arrays = {
        "node_features": features.toarray(),
        "node_labels": labels,
        "edges": np.stack([coo.row, coo.col], axis=1),
    }
    path = save(
        tmp_path / "g.npz",
        **arrays,
        train_masks=masks[:2],
        val_masks=masks[2:4],
        test_masks=masks[[4, 4]],
    )
    graph = en.read(path)
    assert graph.edges.tolist() == [coo.row.tolist(), coo.col.tolist()]
    assert graph.labels.tolist() == labels.tolist()
    assert [[part.tolist() for part in split] for split in graph.splits] == [
        [[0], [2], [4]],
        [[1], [3], [4]],
    ]
    np.testing.assert_array_equal(graph.dense_features, features.toarray())
    assert not en.read(path, split="none").splits


@pytest.mark.parametrize("name", ["edge_weight", "edge_weights"])
def test_weights_of_an_archive(tmp_path, name):
    arrays = {"edge_index": np.array([[0, 1, 2], [1, 2, 3]]), "y": np.array([0, 1, 0, 1])}
    graph = en.read(save(tmp_path / "g.npz", **arrays, **{name: np.array([1.0, 2.0, 6.0])}))
    np.testing.assert_allclose(graph.weights, [1 / 3, 2 / 3, 2])
    assert en.read(tmp_path / "g.npz", weight="none").weights is None
    column = en.read(
        save(tmp_path / "h.npz", **arrays, **{name: np.ones((3, 1))}),
        feature_encoder=graph.feature_encoder,
    )  # all 1, but weights
    np.testing.assert_allclose(column.weights, [1 / 3] * 3)
    with pytest.raises(DataError, match=f"there are 3 edges but {name} is 2"):
        en.read(save(tmp_path / "g.npz", **arrays, **{name: np.ones(2)}))


def test_parts_as_the_numbers_of_their_nodes(tmp_path):
    arrays = {"edge_index": np.array([[0, 1, 2], [1, 2, 3]]), "y": np.array([0, 1, 0, 1])}
    parts = {"train_idx": np.array([3, 0]), "test_idx": np.array([2])}
    for val in ("val_idx", "valid_idx"):
        (split,) = en.read(
            save(tmp_path / "g.npz", **arrays, **parts, **{val: np.array([1])})
        ).splits
        assert [part.tolist() for part in split] == [[0, 3], [1], [2]]
    (split,) = en.read(save(tmp_path / "g.npz", **arrays, **parts)).splits
    assert [part.tolist() for part in split] == [[0, 3], [], [2]]
    for wrong in ([4], [-1], [0.5], [[0, 1]]):
        with pytest.raises(DataError, match="train_idx must hold whole numbers from 0 to 3"):
            en.read(save(tmp_path / "g.npz", **arrays, train_idx=np.array(wrong)))


def test_arrays_that_are_not_used_are_named(tmp_path):
    arrays = {
        "edge_index": np.array([[0, 1, 2], [1, 2, 3]]),
        "y": np.array([0, 1, 0, 1]),
        "train_mask": np.ones(4, bool),
    }
    assert not en.read(save(tmp_path / "g.npz", **arrays)).summary.warnings
    (warning,) = en.read(
        save(
            tmp_path / "g.npz",
            **arrays,
            labels=np.ones(4),
            edge_attr=np.ones((3, 2)),
            trian_idx=[1],
        )
    ).summary.warnings
    assert warning.text.endswith("g.npz were not used: edge_attr, labels, trian_idx.")
    scipy.sparse.save_npz(tmp_path / "a.npz", small()[0])
    assert not en.read(tmp_path / "a.npz").summary.warnings


def test_an_adjacency_matrix_alone(tmp_path):
    adjacency, _, _ = small()
    for convert in (scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_array):
        scipy.sparse.save_npz(tmp_path / "a.npz", convert(adjacency))
        graph = en.read(tmp_path / "a.npz")
        assert graph.feature_encoder.structural
        np.testing.assert_allclose(
            graph.weights / graph.weights[0], adjacency.data / adjacency.data[0]
        )
        bare = save(tmp_path / "b.npz", edge_index=[[0], [1]])
        with pytest.raises(DataError, match="has no column 'weight'"):
            en.read(bare, feature_encoder=graph.feature_encoder)
        assert en.read(bare, feature_encoder=graph.feature_encoder, weight="none").weights is None


ARRAYS = {
    "no edges": ({"x": np.ones((2, 2))}, "holds no edges"),
    "fractions": ({"edge_index": np.ones((2, 2))}, "whole numbers"),
    "negative": ({"edge_index": np.array([[0], [-1]])}, "negative"),
    "too few features": ({"edge_index": np.array([[0], [5]]), "x": np.ones((2, 2))}, "6 nodes but the features are 2 x 2"),
    "words": ({"edge_index": np.array([[0], [1]]), "x": np.array([["a"], ["b"]])}, "not numbers"),
    "infinite": ({"edge_index": np.array([[0], [1]]), "x": np.array([[np.inf], [1]])}, "inf"),
    "several labels": ({"edge_index": np.array([[0], [1]]), "y": np.ones((2, 3), int)}, "one label per node"),
    "half a matrix": ({"adj_indptr": np.arange(3), "adj_data": np.ones(2)}, "'adj_indices'"),
    "a broken matrix": (
        {"adj_indptr": np.array([0, 1, 9]), "adj_data": np.ones(2), "adj_indices": np.array([0, 7]), "adj_shape": np.array([2, 2])},
        "not a sparse matrix",
    ),
    "a broken scipy matrix": ({"format": np.array("csr"), "data": np.ones(2)}, "scipy.sparse.save_npz"),
    "an empty matrix": (
        {"adj_indptr": np.zeros(1, int), "adj_data": np.ones(0), "adj_indices": np.zeros(0, int), "adj_shape": np.array([0, 0])}, "is empty"
    ),
    "masks of another size": ({"edge_index": np.array([[0], [1]]), "train_mask": np.ones(7, bool)}, "masks"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_are_no_graph(tmp_path, case):
    arrays, message = ARRAYS[case]
    with pytest.raises(DataError, match=message):
        en.read(save(tmp_path / "g.npz", **arrays))


def test_no_pickle_is_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("a pickle was opened",)

    path = save(
        tmp_path / "g.npz", edge_index=np.array([[0], [1]]), x=np.array([Trap()], dtype=object)
    )
    graph = en.read(path)
    assert "skipped" in graph.summary.warnings[0].text
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match=r"g\.npz"):
        en.read(path)
    np.save(tmp_path / "one.npy", np.ones(3))
    path.write_bytes((tmp_path / "one.npy").read_bytes())
    with pytest.raises(DataError, match="one array"):
        en.read(path)


CHAIN = np.array([[0, 1, 2], [1, 2, 3]])
SPARSE = {
    "adj_data": np.ones(2),
    "adj_indices": np.array([1, 0]),
    "adj_indptr": np.array([0, 1, 2]),
    "adj_shape": np.array([2, 2]),
}
ODD = {
    "features without rows": ({"edge_index": CHAIN, "x": np.array(3.0)}, "the features are a single value"),
    "one label": ({"edge_index": CHAIN, "y": np.array(1)}, "the labels are a single value"),
    "one edge end": ({"edge_index": np.array(1)}, "Got a single value of int64"),
    "one weight": ({"edge_index": CHAIN, "edge_weight": np.array(1.0)}, "edge_weight is a single value"),
    "durations as labels": ({"edge_index": CHAIN, "y": np.array([1, 2, 1, 2], "m8[s]")}, r"the labels are timedelta64\[s\]"),
    "complex labels": ({"edge_index": CHAIN, "y": np.array([1j, 2, 1, 2])}, "the labels are complex128"),
    "raw bytes as labels": ({"edge_index": CHAIN, "y": np.zeros(4, "V3")}, r"the labels are \|V3"),
    "durations as features": ({"edge_index": CHAIN, "x": np.ones((4, 1)).astype("m8[s]")}, "not numbers"),
    "words in a matrix": ({**SPARSE, "adj_data": np.array(["a", "b"])}, "adj_data is <U1, not numbers"),
    "durations in a matrix": ({**SPARSE, "adj_data": np.array([1, 2], "m8[s]")}, "adj_data is timedelta64"),
    "words in a scipy matrix": (
        {"format": np.array("csr"), "data": np.array(["a"]), "indices": np.array([0]), "indptr": np.array([0, 1]), "shape": np.array([1, 1])},
        "scipy.sparse.save_npz",
    ),
    "a mask of words": ({"edge_index": CHAIN, "y": CHAIN[0][[0, 1, 0, 1]], "train_mask": np.array(list("abcd"))}, "train_mask is <U1"),
    "an id beyond 2^63": ({"edge_index": np.array([[0, 2**63], [1, 2]], np.uint64)}, "node 9,223,372,036,854,775,808"),
    "id 10^17": ({"edge_index": np.array([[0, 1], [1, 10**17]])}, "node 100,000,000,000,000,000"),
    "id 10^8 with two edges": ({"edge_index": np.array([[0, 1], [1, 10**8]])}, "node 100,000,000, with 2 edges"),
    "a matrix of 10^8 nodes": (
        {"format": np.array("dia"), "data": np.ones((1, 2)), "offsets": np.array([0]), "shape": np.array([10**8, 10**8])}, "node 99,999,999",
    ),
    "10^15 features": (
        {**SPARSE, "attr_data": np.ones(2), "attr_indices": np.array([0, 1]), "attr_indptr": np.array([0, 1, 2]), "attr_shape": np.array([2, 10**15])},
        "1,000,000,000,000,000 features",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_arrays_are_refused(tmp_path, case):
    arrays, message = ODD[case]
    with pytest.raises(DataError, match=message):
        en.read(save(tmp_path / "g.npz", **arrays))


def test_a_damaged_compressed_member_is_refused(tmp_path):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, edge_index=np.tile(CHAIN, 200))
    content = path.read_bytes()
    expected, num_refused = en.read(path).digest, 0
    for place in range(40, len(content) - 120, 3):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        with contextlib.suppress(DataError):
            assert en.read(path).digest == expected, "a byte that no reader looks at"
            continue
        num_refused += 1
    assert num_refused > 10


def test_sparse_numbering_within_reason_is_read(tmp_path):
    graph = en.read(save(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 50_000]])))
    assert graph.num_nodes == 50_001


@pytest.mark.parametrize("name", ["edge_index", "train_idx"])
def test_durations_are_not_whole_numbers(tmp_path, name):
    arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "train_idx": np.array([0])}
    arrays[name] = arrays[name].astype("m8[s]")
    np.savez(tmp_path / "g.npz", **arrays, y=np.array([0, 1, 0]))
    with pytest.raises(DataError, match="whole numbers"):
        en.read(tmp_path / "g.npz")


def test_a_member_that_is_no_array_is_skipped(tmp_path):
    path = save(tmp_path / "graph.npz", edge_index=np.array([[0, 1], [1, 2]]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", b"text")
        archive.writestr("y.npy", b"text")
    graph = en.read(path)
    assert graph.num_nodes == 3
    assert "The member 'y' of" in str(graph.summary)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edge_index.npy", b"text")
    with pytest.raises(DataError, match="edge"):
        en.read(path)


def test_node_numbers_are_no_mask(tmp_path):
    edges = np.array([[0, 1], [1, 2]])
    path = save(tmp_path / "g.npz", edge_index=edges, y=[0, 1, 0], train_mask=[0, 1, 2])
    with pytest.raises(DataError, match="train_mask holds other values than 0 and 1"):
        en.read(path)
