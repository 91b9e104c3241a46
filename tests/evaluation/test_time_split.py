"""The check of a split by time: drift flatters, no drift does not."""

from __future__ import annotations

import numpy as np
import pytest

from everynode.evaluation.time_split import check_time_split
from everynode.graph import Graph


@pytest.mark.parametrize("drift", [True, False])
def test_only_drift_flatters(drift):
    random = np.random.default_rng(0)
    n = 400
    labels = np.arange(n) % 2
    sign = np.where((np.arange(n) >= 300) & drift, -1, 1) * (2 * labels - 1)
    features = random.normal(size=(n, 3)) + 2 * sign[:, None]
    edges = random.integers(0, n, (2, 50))
    parts = [(np.arange(300), [], np.arange(300, n))]
    graph = Graph.from_arrays(features, edges, labels, splits=parts)
    found = check_time_split(graph)
    assert found.flatters is drift
    assert found == check_time_split(graph)
    assert (found.future < 0.2) is drift
    assert found.sentence.startswith(
        f"A random split would {'flatter' if drift else 'give about the same'}: a quick classifier"
    )
