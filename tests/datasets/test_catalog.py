"""Loading graphs by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from everynode.datasets import check_named, load


def copy(data_root: Path, target: Path, *folders: str) -> Path:
    for folder in folders:
        shutil.copytree(data_root / folder, target / folder, copy_function=shutil.copyfile)
    return target


def pyg(name, split, root):
    from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork

    if split == "public" or name == "cora":
        return Planetoid(root, {"cora": "Cora", "citeseer": "CiteSeer"}[name], split=split)[0]
    if name == "chameleon":
        return WikipediaNetwork(root, name, geom_gcn_preprocess=True)[0]
    return Actor(f"{root}/actor")[0] if name == "actor" else WebKB(root, name)[0]


@pytest.mark.parametrize(
    ("name", "folder", "split"),
    [
        ("cora", "Cora", "public"),
        ("cora", "Cora", "geom-gcn"),
        ("citeseer", "CiteSeer", "public"),
        ("texas", "texas", "geom-gcn"),
        ("chameleon", "chameleon", "geom-gcn"),
        ("actor", "actor", "geom-gcn"),
    ],
)
def test_equals_pyg_node_by_node_and_arc_by_arc(name, folder, split, data_root, tmp_path):
    from torch_geometric.utils import remove_self_loops

    theirs = pyg(name, split, str(copy(data_root, tmp_path, folder)))
    ours = load(name, split, data_dir=data_root, directed=True)
    assert torch.equal(ours.dense_features, theirs.x)
    arcs = remove_self_loops(theirs.edge_index)[0]
    n = ours.num_nodes
    assert torch.equal(ours.edges[0] * n + ours.edges[1], (arcs[0] * n + arcs[1]).sort().values)
    labeled = ours.labels >= 0
    assert int((~labeled).sum()) == (15 if name == "citeseer" else 0)
    assert torch.equal(ours.labels[labeled], theirs.y[labeled])
    assert bool((theirs.y[~labeled] == 0).all())  # what PyG makes of them
    for part in ("train", "val", "test"):
        masks = theirs[f"{part}_mask"].reshape(n, -1)
        assert masks.shape[1] == len(ours.splits)
        for fold, mine in enumerate(ours.splits):
            assert torch.equal(getattr(mine, part), masks[:, fold].nonzero()[:, 0])


def test_random_split_follows_its_arguments(tmp_path):
    first, again, other = (
        load("citeseer", "random", data_dir=tmp_path, per_class=5, seed=s) for s in (1, 1, 2)
    )
    assert [len(part) for part in first.splits[0]] == [30, 500, 1000]
    assert first.digest == again.digest != other.digest
    assert torch.bincount(first.labels[first.splits[0].train]).tolist() == [5] * 6


def test_check_named_compares_with_graphs_that_share_files(data_root):
    report = check_named("cornell-legacy", data_dir=data_root)
    assert report.facts["copies_of"] == {"texas": ["features", "labels"]}
    assert report.facts["nodes_without_in_edges"] == 34
    assert (
        "It has the same features and labels as texas: one of the two files has the wrong name."
        in report.warnings
    )
    json.dumps(report.to_dict(), allow_nan=False)
    assert check_named("cornell", data_dir=data_root).facts["copies_of"] == {}
