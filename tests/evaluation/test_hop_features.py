"""Features of zero to two hops, by dense algebra, and the cheap classifier on them."""

from __future__ import annotations

import numpy as np
import pytest

from everynode.datasets import generate
from everynode.evaluation.hop_features import (
    COMPONENTS,
    graph_operator,
    held_out_probabilities,
    hop_features,
    reduced_features,
)
from everynode.graph import Graph


def test_hops_are_products_with_the_operator():
    graph = generate(50, 150, 4, 2, seed=0)
    points, rows = reduced_features(graph), np.arange(0, 50, 3)
    p = graph.gcn_operator.to_dense().numpy()
    expected = np.hstack([points, p @ points, p @ p @ points])[rows]
    expected = (expected - expected.mean(0)) / expected.std(0)
    assert np.allclose(hop_features(points, graph_operator(graph), rows), expected, atol=1e-3)


def test_wide_features_are_reduced_without_changing_angles_much():
    random = np.random.default_rng(0)
    low = random.normal(size=(100, 5)) @ random.normal(size=(5, 200))
    points = reduced_features(Graph.from_arrays(low, np.zeros((2, 0), dtype=int)))
    unit = low / np.linalg.norm(low, axis=1, keepdims=True)
    assert points.shape == (100, COMPONENTS)
    assert np.allclose(points @ points.T, unit @ unit.T, atol=1e-3)


def test_the_classifier_knows_its_classes():
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = (np.eye(3)[labels] * 4 + random.normal(size=(90, 3))).astype(np.float32)
    p = held_out_probabilities(features, labels, np.arange(60), np.arange(60, 90))
    assert p.shape == (30, 3)
    assert (p.argmax(1) == labels[60:]).mean() > 0.9
    only = held_out_probabilities(features, labels, np.arange(0, 90, 3), np.array([1, 3]))
    assert only[:, 0] == pytest.approx([1.0, 1.0])
    assert only[:, 1:].max() == pytest.approx(0.001)
