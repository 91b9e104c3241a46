"""Quality by slice, against counts by loops."""

from __future__ import annotations

import numpy as np
import pytest

from everynode.evaluation.intervals import wilson
from everynode.evaluation.slices import (
    MISSING,
    class_groups,
    column_groups,
    graph_groups,
    slice_quality,
)
from everynode.graph import Graph


def test_a_slice_has_its_share_its_interval_and_a_mark_if_it_is_low():
    random = np.random.default_rng(0)
    groups = {"city": random.choice(["Oslo", "Rome", "Bern"], 300).tolist()}
    right = np.array([random.random() < (0.4 if c == "Rome" else 0.95) for c in groups["city"]])
    found = slice_quality(right, groups)
    assert [one.name for one in found] == ["Bern", "Oslo", "Rome"]
    for one in found:
        inside = [r for r, c in zip(right, groups["city"], strict=True) if c == one.name]
        assert (one.by, one.nodes) == ("city", len(inside))
        assert one.score == wilson(sum(inside), len(inside))
    assert [one.low for one in found] == [False, False, True]
    assert found[2].to_dict()["nodes"] == found[2].nodes


def test_ranges_are_in_the_order_of_their_numbers():
    names = ["16 or more", "4 to 7", "isolated", "1", "8 to 15", "2 to 3"]
    found = slice_quality(np.ones(6, dtype=bool), {"degree": names})
    order = ["1", "2 to 3", "4 to 7", "8 to 15", "16 or more", "isolated"]
    assert [one.name for one in found] == order


def test_degrees_and_components_are_those_of_the_edges():
    star = [[0] * 9, list(range(1, 10))]
    edges = np.concatenate([star, [[10], [11]]], axis=1)
    graph = Graph.from_arrays(np.eye(13), edges, [0] * 13, edge_weight=np.full(10, 7.0))
    found = graph_groups(graph, np.array([0, 1, 10, 12]))
    assert found["degree"] == ["8 to 15", "1", "1", "isolated"]
    assert found["component"] == ["largest", "largest", "smaller", "isolated"]


def test_classes_are_sorted_by_their_training_labels():
    trained = np.repeat([0, 1, 2], [3, 30, 200])
    found = class_groups(np.array([0, 1, 2, 3]), trained)
    assert found == ["1 to 4 labels", "20 to 99 labels", "100 or more labels", "0 labels"]


def test_columns_become_values_or_ranges():
    numbers = [str(i / 10) for i in range(100)] + [""]
    found = column_groups(numbers)
    assert found[-1] == MISSING
    names = list(dict.fromkeys(found[:-1]))
    assert len(names) == 4
    assert all(found.count(name) == pytest.approx(25, abs=1) for name in names)
    low, high = (float(x) for x in found[60].split(" to "))
    assert low <= 6.0 <= high
    assert column_groups(["1", "2", "1"]) == ["1", "2", "1"]
    many = [f"c{i}" for i in range(40)] + ["c0", ""]
    found = column_groups(many)
    assert (found[0], found[39], found[-1]) == ("c0", "all others", MISSING)
