"""The choice between the full graph, fewer workers and sampled subgraphs."""

from __future__ import annotations

import math

import pytest

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.settings import Settings
from everynode.training import memory_plan as module
from everynode.training.memory_plan import MemoryPlan, batches_of, plan_memory, sampled_hops

GRAPH = generate(20_000, 60_000, 32, 4)
WIDE = Settings(hidden_channels=256).for_objective("ce")
ONLY_FULL = Settings(backbone="jknet", hidden_channels=512).for_objective("ce")


@pytest.fixture
def free(monkeypatch):
    """Set the free memory."""

    def limit(megabytes: float) -> None:
        monkeypatch.setattr(module, "free_memory_mb", lambda: float(megabytes))

    return limit


def test_less_memory_means_fewer_workers_then_smaller_batches(free):
    free(100_000)
    roomy = plan_memory(GRAPH, [WIDE], workers=3)
    assert (roomy.batches, roomy.workers, roomy.fits) == (None, 3, True)
    each = roomy.worker_mb
    free((roomy.shared_mb + 2.5 * each) / module.SAFE_SHARE)
    fewer = plan_memory(GRAPH, [WIDE], workers=3)
    assert (fewer.batches, fewer.workers, fewer.fits) == (None, 2, True)
    sizes = []
    for share in (0.95, 0.85):
        free((roomy.shared_mb + share * each) / module.SAFE_SHARE)
        plan = plan_memory(GRAPH, [WIDE], workers=3)
        assert plan.fits
        assert plan.batches is not None
        sizes.append(plan.batches.size)
    assert module.LARGEST_BATCH >= sizes[0] >= sizes[1] >= module.SMALLEST_BATCH
    free(10)
    tight = plan_memory(GRAPH, [WIDE], workers=3)
    assert not tight.fits
    assert (tight.batches, tight.workers) == (Batches(module.SMALLEST_BATCH), 1)


def test_the_sentence_names_the_choice(free):
    free(9800)
    assert str(plan_memory(GRAPH, [WIDE], workers=2)) == (
        "About 0.1 GB for the graph and 0.3 GB per worker, 2 workers, 9.8 GB free: full batch."
    )
    plan = MemoryPlan(Batches(1024), 1, True, 800, 1500, 41_000, 4000)
    assert str(plan) == (
        "About 0.8 GB for the graph and 1.5 GB per worker, 1 worker, 4.0 GB free; the full graph "
        "would need 41.0 GB: trained on sampled subgraphs of 1,024 seed nodes."
    )
    free(math.nan)
    assert "free" not in str(plan_memory(GRAPH, [WIDE], workers=2))


def test_unknown_free_memory_means_the_full_graph(free):
    free(math.nan)
    plan = plan_memory(GRAPH, [WIDE], workers=4)
    assert plan.fits
    assert (plan.batches, plan.workers) == (None, 4)


@pytest.mark.parametrize("batch_size", [None, 128, Batches(128, (3,))])
def test_a_choice_is_kept(free, batch_size):
    free(10)
    plan = plan_memory(GRAPH, [WIDE], batch_size=batch_size, workers=3)
    assert plan.batches == batches_of(batch_size)
    assert (plan.workers, plan.automatic, plan.fits) == (3, False, False)


def test_a_model_without_batches_trains_on_the_full_graph_if_that_fits(free):
    free(100_000)
    plan = plan_memory(GRAPH, [WIDE, ONLY_FULL], batch_size=64)
    assert plan.batches_for(GRAPH, WIDE) == Batches(64)
    assert plan.batches_for(GRAPH, ONLY_FULL) is None
    assert plan.obstacle(GRAPH, ONLY_FULL) == plan.obstacle(GRAPH, WIDE) == ""
    free(300)
    plan = plan_memory(GRAPH, [WIDE, ONLY_FULL], batch_size=64)
    assert plan.obstacle(GRAPH, ONLY_FULL).startswith("needs the full graph and about 0.")
    assert plan.obstacle(GRAPH, WIDE) == ""
    assert plan_memory(GRAPH, [ONLY_FULL], batch_size=None).obstacle(GRAPH, ONLY_FULL) == ""


def test_what_cannot_be_sampled():
    assert sampled_hops(GRAPH, Settings(backbone="sage", num_layers=3)) == 3
    assert sampled_hops(GRAPH, Settings(backbone="logistic")) is None
    assert sampled_hops(GRAPH, Settings(prior=1.0)) is None  # needs every node at once
    directed = generate(30, 60, 4, 2)
    object.__setattr__(directed, "directed", True)
    assert sampled_hops(directed, Settings()) is None


def test_models_of_another_depth_repeat_the_last_fan_out():
    plan = MemoryPlan(Batches(64, (8, 4)), free_mb=1e6)
    deep, flat = WIDE.replace(num_layers=3), WIDE.replace(backbone="mlp")
    assert plan.batches_for(GRAPH, deep) == Batches(64, (8, 4, 4))
    assert plan.batches_for(GRAPH, flat) == Batches(64, (8,))


@pytest.mark.parametrize("batch_size", [1, True, 2.5, "full"])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(UsageError, match="The 'batch_size' of NodeClassifier must be 'auto', None"):
        batches_of(batch_size)
