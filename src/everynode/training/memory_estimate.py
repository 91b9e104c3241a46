"""The memory that training will need, compared with the free memory before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from everynode.graph import Graph
from everynode.machine import free_memory_mb
from everynode.settings import Settings

#: Python, PyTorch and the graph in preparation.
BASE_MB = 450.0
#: Copies of each layer's values for cross-entropy and for all terms, and of the logits. Measured on
#: a graph of the size of ogbn-arxiv (results/arxiv-size.json: 2.9 and 6.3 GB).
COPIES, COPIES_OF_ALL_TERMS, COPIES_OF_LOGITS = 5.0, 11.0, 20.0
#: Bytes of an edge in the operators of both directions, with their transposes.
BYTES_PER_EDGE = 4 * 12
#: Share of the free memory that an estimate may take.
SAFE_SHARE = 0.8
SMALLEST_BATCH, LARGEST_BATCH = 64, 8192


@dataclass(frozen=True)
class MemoryEstimate:
    """An estimate of peak memory and the memory that is free, in MB.

    Attributes
    ----------
    needed_mb : float
        All processes together.
    free_mb : float
        NaN where the system does not tell.
    """

    needed_mb: float
    free_mb: float

    @property
    def fits(self) -> bool:
        """Whether the estimate is below the free memory, or the free memory is unknown."""
        return not self.needed_mb > SAFE_SHARE * self.free_mb

    def __str__(self) -> str:
        needed = f"Training needs about {_shown(self.needed_mb)} of memory"
        return needed if math.isnan(self.free_mb) else f"{needed}; {_shown(self.free_mb)} are free"


def memory_estimate(
    graph: Graph, settings: Settings, *, workers: int = 1, batch_size: int | None = None
) -> MemoryEstimate:
    """Estimate the memory of training on the full graph, or in mini-batches."""
    features = graph.features
    # A sparse value comes with its place, and once more in the transpose.
    stored = features.numel() if isinstance(features, Tensor) else 4 * features.values.numel()
    graph_mb = (4 * stored + BYTES_PER_EDGE * graph.num_edges) / 1e6
    nodes = graph.num_nodes
    if batch_size is not None:
        # The sampled subgraph at the default fan-out of 10.
        nodes = min(nodes, batch_size * sum(10**hop for hop in range(settings.num_layers + 1)))
    labels_only = settings == settings.for_objective("ce")
    copies = COPIES if labels_only else COPIES_OF_ALL_TERMS
    layers = copies * settings.hidden_channels * settings.num_layers
    values = nodes * (layers + COPIES_OF_LOGITS * graph.num_classes)
    return MemoryEstimate(BASE_MB + graph_mb + workers * 4 * values / 1e6, free_memory_mb())


def batch_size_that_fits(graph: Graph, settings: Settings, *, workers: int = 1) -> int | None:
    """Return None if the full graph fits, else the largest batch size that does.

    The smallest batch size is returned even if its estimate does not fit.
    """
    if memory_estimate(graph, settings, workers=workers).fits:
        return None
    size = LARGEST_BATCH
    while size > SMALLEST_BATCH:
        if memory_estimate(graph, settings, workers=workers, batch_size=size).fits:
            break
        size //= 2
    return size


def _shown(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB"
