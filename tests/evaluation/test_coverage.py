"""Coverage of the propagated features: the loss by nested loops, and the choice on known shapes."""

from __future__ import annotations

import numpy as np
import pytest

from everynode import read
from everynode.datasets import generate
from everynode.evaluation import coverage
from everynode.evaluation.coverage import (
    choose,
    coverage_points,
    greedy,
    linked_nodes_are_alike,
    nearest_of,
)
from everynode.graph import Graph


def cost(points, chosen, weights):
    """The loss of the docstring, node by node."""
    total = 0.0
    for point, weight in zip(points, weights, strict=True):
        total += weight * min(float(np.linalg.norm(point - points[j])) for j in chosen)
    return total


@pytest.mark.parametrize("seed", range(4))
def test_each_step_lowers_the_loss_most(seed):
    random = np.random.default_rng(seed)
    points = random.normal(size=(25, 3)).astype(np.float32)
    weights = random.random(25)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2).astype(np.float32)
    start = [int(random.integers(25))]
    picked = greedy(distances, 5, distances[start[0]], weights)
    chosen = list(start)
    for row in picked:
        losses = {j: cost(points, [*chosen, j], weights) for j in range(25) if j not in chosen}
        assert losses[row] == pytest.approx(min(losses.values()), rel=1e-5)
        chosen.append(row)


def test_medoids_move_to_the_middle_of_what_they_stand_for():
    random = np.random.default_rng(0)
    centers = np.array([[0, 0], [10, 0], [0, 10]])
    points = np.concatenate([center + random.normal(size=(30, 2)) for center in centers])
    points = points.astype(np.float32)
    picked, useful = choose(points, np.arange(90), 3)
    assert useful == 3
    assert sorted(picked // 30) == [0, 1, 2]
    alone = np.array([[i, 30 + i, 60 + i] for i in range(30)])
    best = min(cost(points, row, np.ones(90)) for row in alone)
    assert cost(points, picked, np.ones(90)) < best


def test_labeled_nodes_cover_their_surroundings():
    points = np.repeat(np.eye(3, dtype=np.float32), 10, axis=0)
    picked, useful = choose(points, np.arange(1, 30), 2, labeled=np.array([0]))
    assert (sorted(picked // 10), useful) == ([1, 2], 2)
    # a third pick would be a double
    picked, useful = choose(points, np.arange(1, 30), 3, labeled=np.array([0]))
    assert (len(set(picked)), useful) == (3, 2)


def test_weights_decide_between_groups():
    points = np.repeat(np.eye(2, dtype=np.float32), [20, 5], axis=0)
    labeled, everyone = np.array([0]), np.arange(25)
    points[10:20] += 0.5
    weights = np.ones(25)
    picked, _ = choose(points, everyone, 1, labeled=labeled, weights=weights)
    assert picked[0] < 20
    weights[20:] = 10
    picked, _ = choose(points, everyone, 1, labeled=labeled, weights=weights)
    assert picked[0] >= 20


def test_large_graphs_are_sampled_and_the_choice_is_repeatable(monkeypatch):
    monkeypatch.setattr(coverage, "MOST_TARGETS", 50)
    monkeypatch.setattr(coverage, "MOST_CANDIDATES", 40)
    monkeypatch.setattr(coverage, "BLOCK", 7)
    points = np.repeat(np.eye(4, dtype=np.float32), 100, axis=0)
    first, second = (choose(points, np.arange(400), 4)[0] for _ in range(2))
    assert (first == second).all()
    assert sorted(first // 100) == [0, 1, 2, 3]
    owner, far = nearest_of(points, points[first])
    assert (first[owner] // 100 == np.arange(400) // 100).all()
    assert far.max() < 1e-3


@pytest.mark.parametrize("dense", [True, False])
def test_points_are_the_propagated_features(dense):
    graph = generate(60, 200, 6, 3, noise=0.5, seed=1)
    x = graph.dense_features.numpy()
    if dense:
        x = (x - x.mean(0)) / x.std(0)
    else:
        x = np.where(np.arange(6) % 3 == (np.arange(60) % 6)[:, None] % 3, x, 0)
        x = np.hstack([x, np.zeros((60, 30))])
        graph = Graph.from_arrays(x, graph.edges)
        graph = graph.with_features(x)
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    points, hops = coverage_points(graph)
    operator = graph.gcn_operator.to_dense().numpy()
    expected = x
    for _ in range(hops):
        expected = operator @ expected
    if not dense:
        expected = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    assert hops == 2 or not dense
    assert np.allclose(points, expected, atol=1e-4)


def test_links_that_say_nothing_are_left_out():
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 8))
    graph = Graph.from_arrays(features, random.integers(0, 300, (2, 900)))
    points, hops = coverage_points(graph)
    assert hops == 0
    expected = (features - features.mean(0)) / features.std(0)
    assert np.allclose(points, expected, atol=1e-4)
    assert not linked_nodes_are_alike(features.astype(np.float32), np.zeros((2, 0), dtype=int))


def test_edges_alone_cover_the_communities():
    random = np.random.default_rng(0)
    groups = np.arange(150) // 50
    pairs = [(a, b) for a in range(150) for b in random.choice(np.flatnonzero(groups == groups[a]), 4)]  # fmt: skip
    edges = {"source": [f"n{a:03}" for a, _ in pairs], "target": [f"n{b:03}" for _, b in pairs]}
    graph = read(edges=edges, few_labels=True)
    points, _ = coverage_points(graph)
    picked, _ = choose(points, np.arange(graph.num_nodes), 3)
    assert sorted(int(graph.node_ids[i][1:]) // 50 for i in picked) == [0, 1, 2]
