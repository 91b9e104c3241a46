"""The memory that training will need, estimated from the sizes of the graph and of the model."""

from __future__ import annotations

import math

from torch import Tensor

from everynode.batches import Batches
from everynode.graph import Graph
from everynode.models.boosting import MAX_COLUMNS, Boosting
from everynode.models.build import build_model
from everynode.models.closed_form import COLUMNS, ClosedFormModel
from everynode.models.logistic import Logistic
from everynode.models.model import Model
from everynode.models.propagated_mlp import ROWS, PropagatedMLP
from everynode.settings import Settings

#: Modules that a training imports, solvers and their buffers.
BASE_MB = 120.0
#: Copies of the values of a layer that a step keeps at once: values, noise, gradients. Measured on
#: a graph of the size of ogbn-arxiv for cross-entropy and for all terms (results/arxiv-size.json:
#: 2.9 and 6.3 GB).
COPIES, COPIES_OF_ALL_TERMS = 3.0, 7.5
#: Bytes of an entry of the adjacency in the operators: rows, columns and values.
BYTES_PER_ENTRY = 44
#: Bytes of an entry in the transposes that gradients need, and in copies of an operator.
BYTES_PER_COPY = 28
MB = 1e6


def graph_mb(graph: Graph, preparations: int = 1) -> float:
    """Return the memory of the operators and of prepared features, which all trainings share.

    Parameters
    ----------
    graph : Graph
        The graph, which is in memory already.
    preparations : int
        The number of scalings of the features, each a copy.
    """
    entries = 2 * graph.num_edges + graph.num_nodes
    return (preparations * _feature_bytes(graph) + BYTES_PER_ENTRY * entries) / MB


def training_mb(graph: Graph, settings: Settings, batches: Batches | None = None) -> float:
    """Return the memory that a training takes beside the graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    settings : Settings
        Model and objective.
    batches : Batches, optional
        Mini-batches; None: the full graph.
    """
    model = build_model(graph.num_features, max(graph.num_classes, 2), settings)
    n, c, k = graph.num_nodes, graph.num_features, graph.num_classes
    if isinstance(model, ClosedFormModel):
        return BASE_MB + _closed_form_bytes(graph, model) / MB
    terms = settings.active_terms()
    copies = COPIES_OF_ALL_TERMS if terms.keys() - {"consistency"} else COPIES
    copies *= 2 if "consistency" in terms else 1
    width = max([k, *(p.shape[-1] for p in model.parameters() if p.ndim == 2)])
    levels = level_sizes(graph, model, batches, tv_edges="tv" in terms)
    if isinstance(model, PropagatedMLP):
        in_blocks = type(model).compute is PropagatedMLP.compute  # SGC has no hidden values
        rows = min(n, ROWS) if in_blocks else n
        values = rows * (2 * c + 2 * copies * width) + 5 * copies * n * k
    else:
        values = 2 * c * levels[0] + copies * (width * sum(levels) + k * levels[-1])
    if batches is not None:  # validation keeps the values between two layers
        values += 3 * n * width
    entries = (2 * graph.num_edges + n) * levels[0] / max(n, 1)
    return BASE_MB + (graph.dtype.itemsize * values + BYTES_PER_COPY * entries) / MB


def level_sizes(
    graph: Graph, model: Model, batches: Batches | None, *, tv_edges: bool = False
) -> list[float]:
    """Return the expected number of nodes that each layer computes, the opening layer first.

    >>> from everynode.datasets import generate
    >>> from everynode.models import GCN
    >>> graph, model = generate(1000, 5000, 8, 3), GCN(8, 3, num_layers=2)
    >>> level_sizes(graph, model, None)
    [1000, 1000, 1000]
    >>> [round(size) for size in level_sizes(graph, model, Batches(10, (2,)))]
    [85, 30, 10]
    """
    n, num_hops = graph.num_nodes, model.num_hops
    if batches is None or num_hops is None:
        return [n] * (1 + (num_hops if num_hops is not None else 2))
    degree = 2 * graph.num_edges / max(n, 1)
    edges = degree if batches.tv_edges < 0 else min(degree, batches.tv_edges)
    sizes = [min(n, batches.size * (1 + edges * tv_edges))]
    for fan_out in batches.for_layers(num_hops):
        drawn = sizes[-1] * (degree if fan_out < 0 else min(degree, fan_out))
        others = n - sizes[-1]  # that are drawn at least once
        sizes.append(sizes[-1] + others * -math.expm1(-drawn / max(n, 1)))
    return sizes[::-1]


def _closed_form_bytes(graph: Graph, model: ClosedFormModel) -> float:
    """Return the peak of a model that is solved."""
    n, c, k = graph.num_nodes, graph.num_features, graph.num_classes
    labeled, hops = _labeled(graph), getattr(model, "hops", 0)
    entries = 2 * graph.num_edges + n
    logits = 8 * n * k
    if isinstance(model, Boosting):
        c = min(c, MAX_COLUMNS)
        columns = 4 * (hops + 1) * c
        projected = 4 * n * c * (graph.num_features > c)
        return logits + projected + n * (columns + 12 * COLUMNS) + 3 * labeled * columns
    if not isinstance(model, Logistic):
        return 4 * logits
    rows = 8 * (hops + 1) * c * labeled
    return 2 * logits + 1.5 * rows + 24 * COLUMNS * n + 16 * entries * bool(hops)


def _labeled(graph: Graph) -> int:
    """Return the number of training nodes; without a split, of all labeled nodes."""
    return len(graph.nodes("train")) if graph.splits else int((graph.labels >= 0).sum())


def _feature_bytes(graph: Graph) -> float:
    """Return the size of one copy of the features."""
    features = graph.features
    if isinstance(features, Tensor):
        return features.numel() * features.dtype.itemsize
    # A sparse value comes with its place, and once more in the transpose.
    return 4 * features.values.numel() * features.dtype.itemsize
