"""Linear propagation under changes, against a dense loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.datasets import generate
from everynode.explanations.changes import Change, Surroundings
from everynode.explanations.propagation import (
    coefficients,
    propagated_logits,
    propagated_rows,
)
from everynode.graph import Graph
from everynode.models.appnp import APPNP
from everynode.models.gprgnn import GPRGNN
from everynode.models.label_propagation import LabelPropagation

NODE = 3
CHANGES = (Change(), Change(removed=(1,)), Change(features=(0,)), Change(kept=(4, 7)))


def operator(graph: Graph, change: Change) -> np.ndarray:
    """The dense GCN operator of a changed graph, entry by entry."""
    n = graph.num_nodes
    a = np.eye(n)
    lonely = set(change.removed)
    if change.kept is not None:
        lonely |= set(range(n)) - {NODE, *change.kept}
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights.numpy()
    for (s, t), weight in zip(graph.edges.T.tolist(), weights, strict=True):
        if s not in lonely and t not in lonely:
            a[t, s] += weight
            if not graph.directed:
                a[s, t] += weight
    degree = a.sum(1)
    return a / np.sqrt(degree[:, None] * degree[None, :])


@pytest.mark.parametrize("directed", [False, True])
def test_rows_and_logits_are_those_of_the_dense_operator(directed):
    drawn, random = generate(12, 30, 4, 3, seed=0), np.random.default_rng(0)
    graph = Graph.from_arrays(
        drawn.dense_features, drawn.edges, drawn.labels, directed=directed,
        edge_weight=random.uniform(0.5, 2, drawn.num_edges),
    )  # fmt: skip
    surroundings = Surroundings(graph)
    rows = list(propagated_rows(surroundings, NODE, CHANGES, 3))
    start, changed = random.normal(size=(12, 3)), random.normal(size=(4, 3))
    changed[[0, 1, 3]] = start[NODE]
    weights = np.array([0.1, -0.4, 0.9, 0.2])
    (found,) = propagated_logits(surroundings, NODE, CHANGES, [weights], [start], [changed])
    for j, change in enumerate(CHANGES):
        p, power, h = operator(graph, change), np.eye(12), start.copy()
        h[NODE] = changed[j]
        expected = np.zeros(3)
        for t, weight in enumerate(weights):
            np.testing.assert_allclose(rows[t][:, j], power[NODE], atol=1e-6)
            expected += weight * (power @ h)[NODE]
            power = power @ p
        np.testing.assert_allclose(found[j], expected, atol=1e-6)


def test_coefficients_are_those_of_the_formulas():
    appnp = coefficients(APPNP(4, 2, appnp_steps=3, appnp_alpha=0.2))
    np.testing.assert_allclose(appnp, [0.2, 0.2 * 0.8, 0.2 * 0.64, 0.512], rtol=1e-6)
    gprgnn = GPRGNN(4, 2, gprgnn_steps=4)
    np.testing.assert_allclose(coefficients(gprgnn), gprgnn.coefficients.detach(), rtol=1e-6)


def test_label_propagation_spreads_as_its_logits_do():
    graph, model = generate(20, 40, 8, 3), LabelPropagation(8, 3)
    model.solve(graph, graph.nodes("train"), stage=1)
    scores = model.spread(model.start(graph.dtype), graph.gcn_operator.__matmul__)
    torch.testing.assert_close(model.finish(scores), model(graph))
    assert coefficients(model).sum() == pytest.approx(1.0)
