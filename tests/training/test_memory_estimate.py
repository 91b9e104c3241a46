"""The estimate of memory before training."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.models.names import MODELS
from everynode.settings import Settings
from everynode.training.memory_estimate import graph_mb, training_mb

#: The size of ogbn-arxiv, without its memory.
ARXIV = SimpleNamespace(
    features=torch.empty(169_343, 128, device="meta"), dtype=torch.float32, num_features=128,
    num_nodes=169_343, num_edges=1_157_799, num_classes=40, labels=torch.zeros(169_343), splits=(),
)  # fmt: skip
#: Python, PyTorch and the graph, before training.
START_MB = 450


@pytest.mark.parametrize(("objective", "measured"), [("ce", 2.9), ("enc", 6.3)])
def test_the_estimate_is_near_what_was_measured(objective, measured):
    """results/arxiv-size.json: GCN with 3 layers of 256 channels."""
    settings = Settings(num_layers=3, hidden_channels=256).for_objective(objective)
    total = START_MB + graph_mb(ARXIV) + training_mb(ARXIV, settings)
    assert 0.8 < total / 1000 / measured < 1.3


@pytest.mark.parametrize("backbone", MODELS)
def test_every_model_needs_more_for_a_larger_graph(backbone):
    small, large = generate(400, 900, 8, 3), generate(4000, 9000, 8, 3)
    settings = Settings(backbone=backbone)
    assert 0 < training_mb(small, settings) < training_mb(large, settings) < 300


def test_batches_and_consistency_change_the_estimate():
    settings = Settings(hidden_channels=256, layer_dropout=0.5).for_objective("ce")
    full = training_mb(ARXIV, settings)
    sampled = [training_mb(ARXIV, settings, Batches(size)) for size in (64, 256, 1024)]
    assert sampled == sorted(sampled)
    assert sampled[0] < full / 2
    twice = settings.replace(consistency=1.0)
    assert training_mb(ARXIV, twice) > 1.4 * full


#: The memory that a portfolio takes beside the graph, as estimated and as measured, in MB.
MEASURE = """
import sys
from everynode.datasets import generate
from everynode.selection.candidate import Effort, portfolio
from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio
from everynode.training.memory import forget_peak, peak_mb
from everynode.training.memory_plan import plan_memory

nodes, edges = int(sys.argv[1]), int(sys.argv[2])
graph = generate(nodes, edges, 64, 5)
candidates = portfolio(Effort.named("quick"), graph, changes={"epochs": 2})
names = {candidate.preparation for candidate in candidates}
plan = plan_memory(
    graph, [c.settings for c in candidates], batch_size=eval(sys.argv[3]), workers=1,
    preparations=len(names),
)
forget_peak()
before = peak_mb()
options = PortfolioOptions("quick", 1e6, workers=1, plan=plan)
fit_portfolio(graph, options, changes={"epochs": 2}, verbose=False)
print(plan.needed_mb, peak_mb() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of a process")
@pytest.mark.parametrize("batch_size", ["None", "256"])
@pytest.mark.parametrize(("nodes", "edges"), [(30_000, 150_000), (150_000, 1_000_000)])
def test_the_peak_of_a_fit_is_within_a_factor_of_two_of_its_estimate(nodes, edges, batch_size):
    words = [sys.executable, "-c", MEASURE, str(nodes), str(edges), batch_size]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    estimated, measured = map(float, done.stdout.split())
    assert 0.5 < estimated / measured < 2
