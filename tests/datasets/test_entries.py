"""The catalog: names, splits and sizes."""

from __future__ import annotations

import pytest

from everynode.datasets import CATALOG, load
from everynode.errors import UsageError

SIZES = {
    "cora": (2708, 5278, 1433, 7, 1),
    "citeseer": (3327, 4552, 3703, 6, 1),
    "pubmed": (19717, 44324, 500, 3, 1),
    "chameleon": (2277, 31371, 2325, 5, 10),
    "squirrel": (5201, 198353, 2089, 5, 10),
    "actor": (7600, 26659, 932, 5, 10),
    "cornell": (183, 277, 1703, 5, 10),
    "cornell-legacy": (183, 277, 1703, 5, 10),
    "texas": (183, 279, 1703, 5, 10),
    "wisconsin": (251, 450, 1703, 5, 10),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name, data_root):
    graph = load(name, data_dir=data_root)
    assert (
        graph.num_nodes,
        graph.num_edges,
        graph.num_features,
        graph.num_classes,
        len(graph.splits),
    ) == SIZES[name]
    assert graph.name == name
    assert graph.classes == tuple(range(graph.num_classes))
    if CATALOG[name].splits[0] == "public":
        assert [len(part) for part in graph.splits[0]] == [20 * graph.num_classes, 500, 1000]


def test_unknown_names_and_impossible_splits():
    with pytest.raises(UsageError, match=r"Unknown graph 'coar' .*did you mean 'cora'"):
        load("coar")
    with pytest.raises(
        UsageError, match=r"'texas' has no split 'public'. Choose from: geom-gcn, random"
    ):
        load("texas", "public")
    with pytest.raises(
        UsageError, match=r"'ogbn-arxiv' has no split 'geom-gcn'. Choose from: official, random"
    ):
        load("ogbn-arxiv", "geom-gcn")
    assert tuple(CATALOG) == (*SIZES, "ogbn-arxiv", "generated")
