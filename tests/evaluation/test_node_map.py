"""The positions of nodes in the plane."""

from __future__ import annotations

import numpy as np
import torch

from everynode.evaluation import node_map as module
from everynode.evaluation.node_map import node_map


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
