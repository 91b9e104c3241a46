"""Full-batch training: one step per epoch, on all nodes."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from everynode.errors import DataError, UsageError
from everynode.evaluation.calibrated_loss import calibrated_loss
from everynode.evaluation.metrics import METRICS, accuracy
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.drop_edge import drop_edges
from everynode.graph.replace_edges import replace_edges
from everynode.models.build import build_model
from everynode.models.model import Model
from everynode.objectives import ENC, Term
from everynode.objectives.cross_entropy import class_weights
from everynode.settings import Settings
from everynode.training.adam import Adam


class WholeGraph:
    """The :class:`~everynode.training.step_runner.StepRunner` of full-batch training.

    Parameters
    ----------
    graph : Graph
        The graph.
    settings : Settings
        Model, objective and optimization.
    fold, seed : int
        The split, and the seed of all random draws.
    watch : Tensor, optional
        Test nodes to report in every epoch. They select nothing.

    Attributes
    ----------
    labels : Tensor
        The classes of the validation nodes.
    looked_at : Tensor
        The validation nodes, followed by the test nodes of ``watch``.
    class_weight : Tensor or None
        Weight of each class in the validation loss.
    monitor : str
        The validation metric that selects.
    drop_edge, replace_edges : float
        Shares of the edges that each pass leaves out, and of those that it replaces.
    network, objective, optimizer, layer_bytes, step, sums
        See :class:`~everynode.training.step_runner.StepRunner`.
    """

    steps = 1
    most_epochs = math.inf

    def __init__(
        self, graph: Graph, settings: Settings, *, fold: int, seed: int, watch: Tensor | None
    ):
        self.graph, self.watch = graph, watch
        val = validation_nodes(graph, fold, settings.monitor)
        self.monitor, self.labels = settings.monitor, graph.labels[val]
        self.looked_at = val if watch is None else torch.cat([val, watch])
        self.network, self.objective, self.optimizer = build(graph, settings, fold=fold, seed=seed)
        self.class_weight = class_weights(graph, fold, cast(Any, settings.class_weight))
        self.layer_bytes = layer_bytes(graph, settings)
        self.drop_edge, self.replace_edges = settings.drop_edge, settings.replace_edges
        self.step, self.sums = 0, dict[str, float]()

    def advance(self, epoch: int) -> None:
        """Take the step of this epoch."""
        self.objective.epoch = epoch
        self.sums = step(
            self.network, self.objective, self.optimizer, self.graph,
            drop_edge=self.drop_edge, replace=self.replace_edges,
        )  # fmt: skip
        self.step = 1

    def validate(self) -> dict[str, float]:
        """Return the validation metrics, and ``test_accuracy`` of the nodes to watch."""
        return validate(
            self.network, self.graph, self.looked_at, self.labels, self.watch, self.monitor,
            self.class_weight,
        )  # fmt: skip


def layer_bytes(graph: Graph, settings: Settings) -> int:
    """Return the size of one layer's output; 0 on a GPU, where torch reuses memory itself."""
    if graph.labels.device.type != "cpu":
        return 0
    return graph.num_nodes * settings.hidden_channels * graph.dtype.itemsize


def build(graph: Graph, settings: Settings, *, fold: int, seed: int) -> tuple[Model, ENC, Adam]:
    """Return the model, the objective and the optimizer of a run.

    All start from one seed, but each draws from its own random generator.
    """
    network, optimizer = build_network(graph, settings, seed=seed)
    objective = ENC.from_settings(graph, settings, fold=fold, seed=seed)
    require_dropout(objective, settings)
    return network, objective.to(graph.labels.device), optimizer


def require_dropout(objective: ENC, settings: Settings) -> None:
    """Refuse a term that compares passes if nothing makes the passes differ."""
    if settings.dropout or settings.layer_dropout or settings.drop_edge or settings.replace_edges:
        return
    for name, term in objective.terms.items():
        if isinstance(term, Term) and "passes" in term.needs:
            raise UsageError(
                f"The term {name!r} compares passes with different dropout, but dropout and "
                f"layer_dropout are 0. Set one of them, or set {name} to 0."
            )


def build_network(
    graph: Graph | DiskGraph, settings: Settings, *, seed: int, device: torch.device | None = None
) -> tuple[Model, Adam]:
    """Return a model for the graph and its optimizer; ``device``: None is the graph's."""
    if graph.num_classes < 2:
        raise DataError(
            f"Graph {graph.name!r} has {graph.num_classes} class(es), nothing to tell apart: "
            "label nodes of at least two classes."
        )
    model = build_model(graph.num_features, graph.num_classes, settings, seed=seed)
    if isinstance(graph, Graph):
        model.prepare(graph)
    model.to(device=device or graph.labels.device, dtype=graph.dtype)
    gnn = {"lr": settings.lr_gnn, "weight_decay": settings.weight_decay_gnn}
    others = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    groups = [
        {"params": parameters, **(gnn if name == "gnn" else others)}
        for name, parameters in model.parameter_groups().items()
    ]
    return model, Adam(groups, amsgrad=settings.amsgrad)


def validation_nodes(graph: Graph | DiskGraph, fold: int, monitor: str) -> Tensor:
    """Return the labeled validation nodes; refuse too few for the metric ``monitor``."""
    val = graph.nodes("val", fold)
    if not len(val):
        raise DataError(
            f"Fold {fold} of graph {graph.name!r} has no labeled validation node, so no epoch "
            "can be selected: set some labeled nodes apart."
        )
    if monitor == "auc" and len(graph.labels[val].unique()) < 2:
        raise DataError(
            f"The validation nodes of graph {graph.name!r} are of one class, which has no AUC: "
            "select by another metric."
        )
    return val


def step(
    network: Model,
    objective: ENC,
    optimizer: Adam,
    graph: Graph,
    *,
    drop_edge: float = Settings.drop_edge,
    replace: float = Settings.replace_edges,
) -> dict[str, float]:
    """Take one training step; return each term before weighting, and ``total``.

    Each pass sees the graph with a share of its edges replaced (``replace``), and without a share
    of them (``drop_edge``). The terms see all edges, but ``neighbor_consistency`` those of the
    pass.
    """
    network.train()
    graphs = [seen_graph(graph, drop_edge, replace) for _ in range(objective.passes)]
    objective.graphs = graphs if drop_edge or replace else ()
    terms = objective.breakdown([network(one) for one in graphs], network)
    objective.graphs = ()
    optimizer.zero_grad()
    terms["total"].backward()
    optimizer.step()
    return {name: value.item() for name, value in terms.items()}


def seen_graph(graph: Graph, drop_edge: float, replace: float) -> Graph:
    """Return the graph that a training pass sees."""
    graph = replace_edges(graph, replace) if replace else graph
    return drop_edges(graph, drop_edge) if drop_edge else graph


def history_name(monitor: str) -> str:
    """Return the name of a validation metric in the history.

    >>> history_name("macro_f1")
    'val_macro_f1'
    """
    return f"val_{monitor.replace('-', '_')}"


def judge(
    logits: Tensor, labels: Tensor, monitor: str, class_weight: Tensor | None = None
) -> dict[str, float]:
    """Return ``val_loss``, ``val_accuracy`` and the metric ``monitor``.

    The loss weighs the classes as the objective does.
    """
    weight = None if class_weight is None else class_weight.to(logits)
    row = {
        "val_loss": nn.functional.cross_entropy(logits, labels, weight).item(),
        "val_accuracy": accuracy(logits, labels),
    }
    if monitor == "calibrated_loss":
        row[history_name(monitor)] = calibrated_loss(logits, labels, weight)
    elif monitor not in ("loss", "accuracy"):
        row[history_name(monitor)] = METRICS[monitor](logits, labels)
    return row


def validate(
    network: Model,
    graph: Graph,
    looked_at: Tensor,
    labels: Tensor,
    watch: Tensor | None = None,
    monitor: str = Settings.monitor,
    class_weight: Tensor | None = None,
) -> dict[str, float]:
    """Return the validation metrics, and ``test_accuracy`` of the nodes to ``watch``.

    ``looked_at``: the validation nodes, with these ``labels``, followed by the nodes to watch. One
    pass computes both.
    """
    network.eval()
    with torch.no_grad():
        logits, watched = network(graph, looked_at).tensor_split([len(labels)])
        row = judge(logits, labels, monitor, class_weight)
        if watch is not None and len(watch):
            row["test_accuracy"] = accuracy(watched, graph.labels[watch])
    return row
