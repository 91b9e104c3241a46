"""The estimate of memory before training, and the batch size that fits."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from everynode.datasets import generate, load
from everynode.settings import Settings
from everynode.training import memory_estimate as module
from everynode.training.memory_estimate import (
    MemoryEstimate,
    batch_size_that_fits,
    memory_estimate,
)

#: The size of ogbn-arxiv, without its memory.
ARXIV = SimpleNamespace(
    features=torch.empty(169_343, 128, device="meta"),
    num_nodes=169_343, num_edges=1_157_799, num_classes=40,
)  # fmt: skip


@pytest.mark.parametrize(("objective", "measured"), [("ce", 2.9), ("enc", 6.3)])
def test_the_estimate_is_near_what_was_measured(objective, measured):
    """results/arxiv-size.json: GCN with 3 layers of 256 channels."""
    settings = Settings(num_layers=3, hidden_channels=256).for_objective(objective)
    assert 0.9 < memory_estimate(ARXIV, settings).needed_mb / 1000 / measured < 1.4


def test_a_small_graph_fits_without_batches():
    graph = generate(40, 80, 4, 2)
    estimate = memory_estimate(graph, Settings())
    assert estimate.needed_mb < 1000
    assert "Training needs about 0." in str(estimate)
    assert batch_size_that_fits(graph, Settings()) is None
    citeseer = memory_estimate(load("citeseer"), Settings(), workers=2)
    assert estimate.needed_mb < citeseer.needed_mb < 1000


def test_a_graph_beyond_the_free_memory_gets_the_largest_batch_that_fits(monkeypatch):
    settings = Settings(num_layers=2, hidden_channels=256)
    sizes = []
    for free in (10_000, 3_000, 2_000, 500):
        monkeypatch.setattr(module, "free_memory_mb", lambda free=free: float(free))
        size = batch_size_that_fits(ARXIV, settings)
        sizes.append(size)
        if size and size > module.SMALLEST_BATCH:
            assert memory_estimate(ARXIV, settings, batch_size=size).fits
            assert not memory_estimate(ARXIV, settings, batch_size=2 * size).fits
    assert sizes[0] is None
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert sizes[-1] == module.SMALLEST_BATCH


def test_unknown_free_memory_never_refuses():
    estimate = MemoryEstimate(1e6, math.nan)
    assert estimate.fits
    assert str(estimate) == "Training needs about 1000.0 GB of memory"
