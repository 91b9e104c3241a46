"""How a fit stays within the memory: the full graph, fewer workers, or sampled subgraphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from everynode.batches import Batches
from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.machine import cores, free_memory_mb
from everynode.models.build import build_model
from everynode.objectives import ENC
from everynode.settings import Settings
from everynode.training.memory_estimate import graph_mb, training_mb

#: What ``batch_size`` may be: seed nodes of a step, all options, by memory, or never.
BatchSize = int | Batches | Literal["auto"] | None
#: Share of the free memory that an estimate may take.
SAFE_SHARE = 0.8
SMALLEST_BATCH, LARGEST_BATCH = 64, 1024


@dataclass(frozen=True)
class MemoryPlan:
    """The choice between the full graph and sampled subgraphs, with its estimate.

    Attributes
    ----------
    batches : Batches or None
        The mini-batches of the networks that can be trained on them; None: the full graph.
    workers : int or None
        Parallel trainings; None: one per core.
    automatic : bool
        Whether the memory decided.
    shared_mb, worker_mb, full_mb, free_mb : float
        The estimates for the operators of the graph, for each worker, and for one training on the
        full graph; the free memory, NaN if the system hides it.
    """

    batches: Batches | None = None
    workers: int | None = None
    automatic: bool = False
    shared_mb: float = 0.0
    worker_mb: float = 0.0
    full_mb: float = 0.0
    free_mb: float = math.nan

    @property
    def needed_mb(self) -> float:
        """The estimate for all workers together."""
        return self.shared_mb + (self.workers or cores()) * self.worker_mb

    @property
    def fits(self) -> bool:
        """Whether the estimate is below the free memory, or the free memory is unknown."""
        return not self.needed_mb > SAFE_SHARE * self.free_mb

    def batches_for(self, graph: Graph, settings: Settings) -> Batches | None:
        """Return the mini-batches of a training; None: it takes the full graph."""
        hops = None if self.batches is None else sampled_hops(graph, settings)
        return None if self.batches is None or hops is None else self.batches.reaching(hops)

    def obstacle(self, graph: Graph, settings: Settings) -> str:
        """Return why a model cannot be trained within the memory; empty if it can."""
        if self.batches is None or self.batches_for(graph, settings):
            return ""
        needed = self.shared_mb + training_mb(graph, settings)
        if not needed > SAFE_SHARE * self.free_mb:
            return ""
        return (
            f"needs the full graph and about {size_text(needed)} of memory; "
            f"{size_text(self.free_mb)} are free"
        )

    def __str__(self) -> str:
        workers = self.workers or cores()
        free = "" if math.isnan(self.free_mb) else f", {size_text(self.free_mb)} free"
        parts = (
            f"About {size_text(self.shared_mb)} for the graph and {size_text(self.worker_mb)} per "
            f"worker, {workers} worker{'s' * (workers > 1)}{free}"
        )
        if self.batches is None:
            return f"{parts}: full batch."
        sampled = f"trained on sampled subgraphs of {self.batches.size:,} seed nodes"
        if self.automatic:
            sampled = f"the full graph would need {size_text(self.full_mb)}: {sampled}"
        return f"{parts}; {sampled}."


#: The plan without any estimate.
FULL = MemoryPlan()


def plan_memory(
    graph: Graph,
    candidates: Sequence[Settings],
    *,
    batch_size: BatchSize = "auto",
    workers: int | None = None,
    preparations: int = 1,
) -> MemoryPlan:
    """Choose the full graph, fewer workers, or sampled subgraphs.

    Parameters
    ----------
    graph : Graph
        The graph.
    candidates : sequence of Settings
        The models to train.
    batch_size : int, Batches, "auto" or None
        The mini-batches; ``auto``: by memory, the full graph with all workers if that fits, else
        with fewer workers, else sampled subgraphs; None: the full graph.
    workers : int, optional
        The largest number of parallel trainings; None: one per core.
    preparations : int
        The number of scalings of the features.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> plan = plan_memory(generate(100, 300, 8, 3), [Settings()], workers=1)
    >>> print(plan)  # doctest: +ELLIPSIS
    About 0.1 GB for the graph and 0.1 GB per worker, 1 worker, ... GB free: full batch.
    """
    chosen, automatic = batches_of(batch_size), batch_size == "auto"
    each = [training_mb(graph, one) for one in candidates]
    shared, free = graph_mb(graph, preparations), free_memory_mb()
    room, full = SAFE_SHARE * free - shared, max(each, default=0.0)
    hops: list[int | None] = []

    def plan(batches: Batches | None) -> MemoryPlan:
        """Return the plan; if the memory decides, with as many workers as fit, at least one."""
        needed = full
        if batches is not None:
            hops.extend(sampled_hops(graph, one) for one in candidates[len(hops) :])
            kept = (
                whole if depth is None else training_mb(graph, one, batches.reaching(depth))
                for one, depth, whole in zip(candidates, hops, each, strict=True)
                if depth is not None or not whole > room
            )
            needed = max(kept, default=0.0)
        count = workers
        if automatic and (workers or cores()) * needed > room:
            count = max(1, int(room / needed))
        return MemoryPlan(batches, count, automatic, shared, needed, shared + full, free)

    best, size = plan(chosen), LARGEST_BATCH
    on_cpu = graph.labels.device.type == "cpu"
    while automatic and on_cpu and not best.fits and size >= SMALLEST_BATCH:
        sampled = plan(Batches(size))
        if all(depth is None for depth in hops):
            break  # nothing to sample
        best, size = sampled, size // 2
    return best


def batches_of(batch_size: BatchSize) -> Batches | None:
    """Return the mini-batches of a ``batch_size``; None for the full graph and for ``auto``.

    >>> batches_of(256)
    Batches(size=256, fan_out=(10,), tv_edges=1, clusters=None)
    """
    if isinstance(batch_size, Batches):
        return batch_size
    if batch_size is None or batch_size == "auto":
        return None
    whole = isinstance(batch_size, int) and not isinstance(batch_size, bool) and batch_size >= 2
    expected = "'auto', None (the full graph), a whole number >= 2, or Batches"
    require(whole, "batch_size", "NodeClassifier", expected, batch_size)
    return Batches(int(batch_size))


def sampled_hops(graph: Graph, settings: Settings) -> int | None:
    """Return the number of hops of a model's sampled subgraphs.

    None: the model or its objective needs the full graph.

    >>> from everynode.datasets import generate
    >>> graph = generate(20, 40, 8, 3)
    >>> [sampled_hops(graph, Settings(backbone=name)) for name in ("gcn", "mlp", "appnp")]
    [2, 0, None]
    """
    if graph.directed or not _terms_can_sample(settings):
        return None
    return build_model(graph.num_features, max(graph.num_classes, 2), settings).num_hops


@cache
def _terms_can_sample(settings: Settings) -> bool:
    """Whether no term needs every node at once."""
    if not settings.active_terms():
        return True
    splits: list[tuple[list[int], ...]] = [([0], [1], [])]
    tiny = Graph.from_arrays([[0.0], [1.0]], [[0], [1]], [0, 1], splits=splits)
    try:
        ENC.from_settings(tiny, settings.replace(class_weight=None)).check_mini_batches()
    except UsageError:
        return False
    return True


def size_text(megabytes: float) -> str:
    """Return a size for people, of at least 0.1 GB.

    >>> size_text(3140), size_text(3)
    ('3.1 GB', '0.1 GB')
    """
    return f"{max(megabytes / 1000, 0.1):.1f} GB"
