"""Findings: what a report holds, and the arrays and words behind it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse

from everynode.datasets.findings import Finding, Report, Subject, group_rows, name_folds
from everynode.graph import Graph


def test_a_report_has_its_warnings_apart_and_is_json() -> None:
    report = Report("g", {"nodes": 2}, (Finding("info", "A."), Finding("warning", "B.")))
    assert report.warnings == ("B.",)
    assert json.loads(json.dumps(report.to_dict())) == {
        "name": "g",
        "facts": {"nodes": 2},
        "findings": [{"level": "info", "text": "A."}, {"level": "warning", "text": "B."}],
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.name = "other"  # type: ignore[misc]


def test_equal_rows_have_equal_numbers() -> None:
    rows = scipy.sparse.csr_array(np.array([[1, 0], [0, 1], [1, 0], [2, 0]]))
    assert group_rows(rows).tolist() == [0, 1, 0, 2]


def test_neighborhoods_are_equal_for_equal_neighbors_and_unique_for_isolated_nodes() -> None:
    graph = Graph.from_arrays(np.ones((5, 1)), [[0, 1], [2, 2]], [0, 1, 0, -1, 0])
    subject = Subject(graph, None, (), False, 0, 0)
    assert subject.degree.tolist() == [1, 1, 2, 0, 0]
    first, second, hub, *isolated = subject.neighborhood.tolist()
    assert first == second != hub
    assert len({hub, *isolated}) == 3


@pytest.mark.parametrize(
    ("folds", "total", "name"),
    [
        ([0], 1, "the split"),
        ([0, 1], 2, "every fold"),
        ([1], 2, "fold 1"),
        ([0, 2], 3, "folds 0, 2"),
    ],
)
def test_folds_are_named(folds: list[int], total: int, name: str) -> None:
    assert name_folds(folds, total) == name
