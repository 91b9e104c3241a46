import dataclasses
import json

import numpy as np
import pytest
import torch

from everynode import graph as graph_module
from everynode.datasets import check, load
from everynode.graph import Graph

Split = graph_module.Split


def split(train=(), val=(), test=()):
    return Split(*(torch.tensor(part, dtype=torch.int64) for part in (train, val, test)))


def make(edges, labels, splits=(), features=None, **options):
    features = np.eye(len(labels)) if features is None else np.asarray(features, float)
    return Graph.from_arrays(
        features, np.array(edges).reshape(-1, 2).T, labels, splits=splits, **options
    )


def texts(report, level=None):
    return [finding.text for finding in report.findings if level in (None, finding.level)]


# -------------------------------------------------------------- small graphs made for one finding each


def test_a_sound_graph_has_no_warning():
    n = 400
    edges = [(i, (i + k) % n) for i in range(n) for k in (2, 4)]
    labels = [i % 2 for i in range(n)]
    report = check(make(edges, labels, [split(range(100), range(100, 200), range(200, 400))]))
    assert report.warnings == ()
    assert report.facts["edge_homophily"] == report.facts["node_homophily"] == 1
    assert report.facts["components"] == 2
    assert report.facts["split_sizes"] == {"train": 100, "val": 100, "test": 200}
    assert report.facts["class_counts"] == {"0": 200, "1": 200}


def test_rare_classes_are_named():
    report = check(make([(0, 1)], ["cat"] * 9 + ["dog"]))
    assert "Class dog has only 1 node: it cannot be learned and tested." in report.warnings
    assert report.facts["largest_class_share"] == 0.9


def test_nodes_without_label_or_features():
    features = np.eye(6)
    features[4:] = 0
    report = check(make([(0, 1)], [0, 0, 1, 1, 1, -1], [split([0, 5], [1], [2])], features))
    assert "1 node of 6 without a label." in texts(report)
    assert "2 nodes without any feature, 1 of them without a label either." in texts(report)
    assert any(text.startswith("1 node in the split without a label") for text in report.warnings)


def test_isolated_nodes_and_components():
    folds = [split([0], [1], [2]), split([0], [3], [4]), split([1], [0], [2])]
    report = check(make([(0, 1), (1, 2), (3, 4)], [0] * 6, folds))
    assert "1 node without any edge, classified by features alone." in texts(report)
    expected = "Folds 0, 2 cover only the largest component (3 of 6 nodes): the 3 others are never used for training or testing."
    assert expected in report.warnings
    assert report.facts["components"] == 3
    assert report.facts["split_share_in_largest_component"] == pytest.approx([1, 1 / 3, 1])
    one = check(make([(0, 1), (1, 2), (3, 4)], [0] * 6, folds[:1]))
    assert any(
        text.startswith("The split covers only the largest component") for text in one.warnings
    )
    drawn = check(make([(0, 1), (1, 2), (3, 4)], [0] * 6, folds[:1]), drawn=True)
    assert not any("largest component" in text for text in texts(drawn)), (
        "whoever drew it knows what it covers"
    )


def test_cross_validated_labels_are_no_missing_validation_nodes():
    graph = make([(0, 1)], [0, 1] * 5, [split([*range(6)], [], [6, 7])])
    assert any(
        text.startswith("Train / validation / test: 6 / 0 / 2 nodes (75 / 0 / 25")
        for text in texts(check(graph))
    )
    expected = (
        "Train / test: 6 / 2 nodes (75 / 25 percent of the split, which covers 80.0 % of the graph); for validation each of 6 training "
        "nodes was held out once, in 3 folds."
    )
    assert expected in texts(check(graph, held_out=6, folds=3))


def test_repairs():
    report = check(make([(0, 1), (0, 1), (1, 0), (1, 1), (1, 2), (2, 3)], [0] * 4))
    assert texts(report)[-3:] == [
        "1 self-loop in the input was dropped.",
        "1 repeated edge in the input was dropped.",
        "2 one-way edges in the input were given their reverse.",
    ]


def test_direction():
    edges, labels = [(0, 1), (2, 1), (3, 1)], [0] * 5
    undirected, directed = (make(edges, labels, directed=flag) for flag in (False, True))
    assert "nodes_without_in_edges" not in check(undirected).facts
    assert (
        "In a directed graph, 4 of 5 nodes would have no in-edge and receive no message."
        in texts(check(undirected, directed), "info")
    )
    assert "4 of 5 nodes have no in-edge and receive no message (the graph is directed)." in texts(
        check(directed), "warning"
    )


def test_twins_across_the_split():
    # 2 to 7 all hang on both 0 and 1
    edges = [(i, hub) for i in range(2, 8) for hub in (0, 1)]
    report = check(make(edges, [0, 1, 0, 0, 1, 1, 0, 1], [split([2, 4, 0], [1], [3, 5, 6, 7])]))
    assert report.facts["twins_across_split"] == [1.0]
    assert any("100.0 % of the test nodes have a training twin" in text for text in report.warnings)
    other_class = check(make(edges, [0, 1, 0, 0, 1, 1, 0, 1], [split([2, 0], [1], [5, 7])]))
    assert other_class.facts["twins_across_split"] == [0.0]


def test_leaves_of_one_hub_are_no_warning():
    report = check(make([(i, 0) for i in range(1, 6)], [0] * 6, [split([1, 2], [3], [4, 5])]))
    assert report.facts["twins_across_split"] == [1.0]
    assert not any("twin" in text for text in report.warnings)
    assert any("most are leaves of the same node" in text for text in texts(report, "info"))


def test_isolated_nodes_have_no_twins():
    report = check(make([(0, 1)], [0] * 6, [split([2, 3], [1], [4, 5])]))
    assert report.facts["twins_across_split"] == [0.0]


def test_duplicates():
    features = [[1, 0], [1, 0], [1, 0], [0, 1], [1, 1]]
    report = check(make([(0, 3), (1, 3), (2, 3), (3, 4)], [0] * 5, features=features))
    assert "2 nodes with the same features and neighbors as another node." in texts(report)


def test_small_test_set_and_untrained_class():
    report = check(make([(0, 1)], [0, 0, 1, 1], [split([0], [1], [2, 3])]))
    assert "The test set has 2 labeled nodes: one node is worth 50.0 points." in report.warnings
    assert "Class 1 is tested but never trained on in the split." in report.warnings


def test_overlap_between_folds():
    folds = [split([0], [1], [2, 3]), split([0], [1], [3, 4])]
    report = check(make([(0, 1)], [0] * 6, folds))
    assert report.facts["test_overlap_between_folds"] == 0.5
    assert report.facts["nodes_never_tested"] == 3
    assert any(
        text.startswith("Any two folds share 50.0 % of their test nodes") for text in texts(report)
    )


def test_copies_of_another_graph():
    labels = [0, 0, 1, 1]
    first = make([(0, 1)], labels, name="first")
    same = make([(2, 3)], labels, name="second")
    dense = make([(2, 3)], labels, features=np.ones((4, 2)), name="third")
    report = check(first, others=[same, dense, make([], [0, 1], name="fourth")])
    assert report.facts["copies_of"] == {"second": ["features", "labels"], "third": ["labels"]}
    assert (
        report.warnings[-1]
        == "It has the same labels as third: one of the two files has the wrong name."
    )


def test_edge_cases_and_json():
    for graph in (
        make([], [0]),
        make([], [-1, -1], [split([0], [], [1])]),
        make([(0, 1)], [-1, -1], classes=["a"]),
        Graph.from_arrays(np.zeros((0, 2)), np.zeros((2, 0))),
        make([(0, 1)], [0, 1], [split()]),
    ):
        report = check(graph)
        assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["name"] == "graph"
        assert all(text.endswith(".") for text in texts(report))
    assert "There is no labeled test node." in report.warnings
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.name = "other"


# -------------------------------------------------------------- the public graphs


def test_cora_folds_cover_the_largest_component(data_root):
    report = check(load("cora", "geom-gcn", data_dir=data_root))
    expected = "Every fold covers only the largest component (2485 of 2708 nodes): the 223 others are never used for training or testing."
    assert expected in report.warnings
    assert [round(100 * share) for share in report.facts["split_shares"].values()] == [48, 32, 20]


def test_citeseer(data_root):
    report = check(load("citeseer", "geom-gcn", data_dir=data_root))
    facts = report.facts
    assert (
        facts["isolated_nodes"],
        facts["nodes_without_label"],
        facts["nodes_without_features"],
    ) == (48, 15, 15)
    assert any(
        text.startswith("Folds 4, 5 cover only the largest component (2120 of 3327 nodes)")
        for text in report.warnings
    )
    assert any(
        text.startswith("10 to 15 nodes in every fold without a label") for text in report.warnings
    )


@pytest.mark.parametrize(
    ("name", "lonely", "n", "twins"),
    [("chameleon", 1413, 2277, 49.7), ("squirrel", 2996, 5201, 39.8)],
)
def test_wikipedia(name, lonely, n, twins, data_root):
    report = check(load(name, data_dir=data_root), load(name, data_dir=data_root, directed=True))
    assert report.facts["nodes_without_in_edges"] == lonely
    assert (
        f"In a directed graph, {lonely} of {n} nodes would have no in-edge and receive no message."
        in texts(report)
    )
    assert any(
        text.startswith(f"{twins} % of the test nodes have a training twin")
        for text in report.warnings
    )


@pytest.mark.parametrize(
    ("name", "tested", "worth"), [("cornell", 37, 2.7), ("texas", 37, 2.7), ("wisconsin", 51, 2.0)]
)
def test_webkb(name, tested, worth, data_root):
    report = check(load(name, data_dir=data_root))
    assert (
        f"The test set has {tested} labeled nodes: one node is worth {worth} points."
        in report.warnings
    )
    assert ("Class 1 has only 1 node: it cannot be learned and tested." in report.warnings) == (
        name == "texas"
    )


def test_the_two_cornells(data_root):
    new, old, texas = (
        load(name, data_dir=data_root) for name in ("cornell", "cornell-legacy", "texas")
    )
    assert check(old, others=[new, texas]).facts["copies_of"] == {"texas": ["features", "labels"]}
    assert check(new, others=[old, texas]).facts["copies_of"] == {}
    assert old.edge_homophily == pytest.approx(0.30, abs=0.01)


def test_many_small_classes_are_counted():
    graph = Graph.from_arrays(None, [[0], [1]], np.arange(30))
    warnings = check(graph).warnings
    assert sum("it cannot be learned and tested" in warning for warning in warnings) == 5
    assert "25 more classes are as small." in warnings
