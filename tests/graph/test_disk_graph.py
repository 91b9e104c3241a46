"""A graph on disk: what is written is what is read, a part at a time, and half a folder is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from everynode.errors import DataError
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.matrix_rows import FileRows, room
from everynode.models.names import model_class
from everynode.training.mini_batch.inference import infer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6)).astype(np.float32)
EDGES = RNG.integers(0, 50, (2, 120))
LABELS = np.where(np.arange(50) % 9, np.arange(50) % 3, -1)
SPLIT = (np.arange(20), np.arange(20, 30), np.arange(30, 50))


def write(folder, features=X, edges=EDGES, labels=LABELS, split=SPLIT) -> DiskGraph:
    return DiskGraph.write(
        folder, features, edges, labels, split=split, classes=range(3), name="small"
    )


def test_what_is_written_is_what_is_read(tmp_path):
    graph, expected = (
        write(tmp_path),
        Graph.from_arrays(X, EDGES, LABELS, splits=[SPLIT], classes=range(3)),
    )
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (
        50,
        expected.num_edges,
        6,
        3,
    )
    nodes = np.array([7, 49, 0])
    np.testing.assert_array_equal(graph.rows(nodes).numpy(), X[nodes])
    np.testing.assert_array_equal(graph.neighbors.col, expected.neighbors.col)
    np.testing.assert_array_equal(graph.neighbors.looped_degree, expected.degree + 1)
    for part in ("train", "val", "test"):
        assert torch.equal(graph.nodes(part), expected.nodes(part))
    assert DiskGraph.open(tmp_path).digest == graph.digest
    assert write(tmp_path / "other", labels=np.roll(LABELS, 1)).digest != graph.digest


def test_features_may_come_in_blocks(tmp_path):
    graph = write(tmp_path, features=iter([X[:20], X[20:21], X[21:]]))
    np.testing.assert_array_equal(graph.rows(np.arange(50)).numpy(), X)
    assert graph.digest == write(tmp_path / "whole").digest


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"features": X[:40]}, "50 nodes have labels but 40 have features"),
        ({"features": iter([X[:20], X[20:, :3]])}, r"got shape \(30, 3\) at row 20"),
        ({"features": iter([X, X])}, r"got shape \(50, 6\) at row 50"),
        (
            {"features": np.where(np.arange(50)[:, None] == 33, np.nan, X)},
            "Feature 0 of node 33 is nan",
        ),
        ({"edges": EDGES + 10}, "nodes are 0 to 49"),
        ({"labels": LABELS + 1}, "has the label 3, but the classes are 0 to 2"),
        ({"split": (SPLIT[0], SPLIT[0], SPLIT[2])}, "in both train and val"),
    ],
)
def test_bad_arrays_are_refused_and_leave_no_graph(tmp_path, given, sentence):
    with pytest.raises(DataError, match=sentence):
        write(tmp_path, **given)
    with pytest.raises(
        DataError, match=r"is not a graph's folder: graph.json is missing; write it again"
    ):
        DiskGraph.open(tmp_path)


def test_half_a_folder_is_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "col.npy").unlink()
    with pytest.raises(DataError, match=r"col.npy is missing"):
        DiskGraph.open(tmp_path)
    write(tmp_path)
    np.save(tmp_path / "labels.npy", LABELS[:10])
    with pytest.raises(DataError, match="not of one graph"):
        DiskGraph.open(tmp_path)
    (tmp_path / "graph.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(DataError, match="is of format 99, not 1"):
        DiskGraph.open(tmp_path)
    (tmp_path / "graph.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as a graph"):
        DiskGraph.open(tmp_path)


def test_an_object_array_is_not_unpickled(tmp_path):
    write(tmp_path)
    np.save(tmp_path / "labels.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read as a graph"):
        DiskGraph.open(tmp_path)


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    graph, path = write(tmp_path), tmp_path / "features.npy"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match="ends before row 50"):
        graph.rows(np.arange(50))
    with pytest.raises(DataError, match=r"features.npy is cut short: it should hold 50 rows of 6"):
        DiskGraph.open(tmp_path)
    np.save(path, X[:30])
    with pytest.raises(DataError, match="not of one graph"):
        DiskGraph.open(tmp_path)
    np.save(path, np.asfortranarray(X))
    with pytest.raises(DataError, match="row after row"):
        DiskGraph.open(tmp_path)


def test_what_goes_from_layer_to_layer_may_be_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("everynode.graph.matrix_rows.IN_MEMORY", 100)
    graph = write(tmp_path)
    assert isinstance(room(50, 6, np.float32, tmp_path), FileRows)
    assert isinstance(room(50, 6, np.float32, tmp_path / "absent"), FileRows)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.npy" for name in DISK_FILES} | {
        "graph.json"
    }, "the file has a name"
    network = model_class("gcnii")(6, 3, num_layers=2, hidden_channels=5).eval()
    whole = Graph.from_arrays(X, EDGES, LABELS, splits=[SPLIT], classes=range(3))
    with torch.no_grad():
        torch.testing.assert_close(
            infer(network, graph, torch.arange(50), block=16), network(whole)
        )


DISK_FILES = ("features", "crow", "col", "labels", "train", "val", "test")
