"""The positions of nodes in the plane."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.evaluation import node_map as module
from everynode.evaluation.node_map import all_positions, node_map


def test_neighbors_in_the_embedding_are_neighbors_on_the_map():
    noise = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    groups = torch.arange(40) % 2
    nodes, positions = node_map(noise + 20 * groups[:, None], seed=0)
    assert nodes.tolist() == list(range(40))
    one, other = (positions[groups == group] for group in (0, 1))
    assert np.linalg.norm(one - one.mean(0), axis=1).max() < np.linalg.norm(
        one.mean(0) - other.mean(0)
    )
    assert np.array_equal(positions, node_map(noise + 20 * groups[:, None], seed=0)[1])


def test_a_large_graph_is_sampled(monkeypatch):
    monkeypatch.setattr(module, "MAP_NODES", 4)
    nodes, positions = node_map(torch.eye(9), seed=3)
    assert len(set(nodes.tolist())) == 4
    assert positions.shape == (4, 2)


def test_all_nodes_have_places_between_their_landmarks():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 700)
    x = torch.from_numpy(rng.normal(size=(2100, 6)) + 12 * np.eye(3, 6)[groups])
    positions = all_positions(x, seed=0)
    assert positions.shape == (2100, 2)
    assert np.abs(positions).max() == pytest.approx(1)
    np.testing.assert_array_equal(positions, all_positions(x, seed=0))
    centers = np.stack([positions[groups == g].mean(0) for g in range(3)])
    nearest = np.linalg.norm(positions[:, None] - centers, axis=2).argmin(1)
    assert (nearest == groups).mean() > 0.99
    # The next map of nearly the same embedding starts from this one, so it looks like this one.
    again = all_positions(x + 0.01 * torch.from_numpy(rng.normal(size=x.shape)), 0, positions)
    moved = np.stack([again[groups == g].mean(0) for g in range(3)])
    assert np.linalg.norm(moved - centers, axis=1).max() < 0.5
