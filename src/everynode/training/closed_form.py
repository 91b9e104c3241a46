"""Training of closed-form models: one epoch is one solution."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.closed_form import ClosedFormModel
from everynode.models.model import Model
from everynode.objectives.cross_entropy import class_weights
from everynode.settings import Settings
from everynode.training.full_batch import build_network, validate, validation_nodes


class Solved:
    """The :class:`~everynode.training.step_runner.StepRunner` of closed-form models.

    Each epoch solves the model at one of its stages. Validation then keeps the best one, as it
    keeps the best epoch of a network. Of the objective, only the class weights count.

    Parameters
    ----------
    graph : Graph
        The graph.
    settings : Settings
        Model, class weights and metric.
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
    train_nodes : Tensor
        The nodes to learn from.
    class_weight : Tensor or None
        Weight of each class.
    monitor : str
        The validation metric that selects.
    network, objective, optimizer, most_epochs, step, sums
        See :class:`~everynode.training.step_runner.StepRunner`.
    """

    steps = 1
    layer_bytes = 0

    def __init__(
        self, graph: Graph, settings: Settings, *, fold: int, seed: int, watch: Tensor | None
    ):
        self.graph, self.watch, self.seed = graph, watch, seed
        val = validation_nodes(graph, fold, settings.monitor)
        self.monitor, self.labels = settings.monitor, graph.labels[val]
        self.looked_at = val if watch is None else torch.cat([val, watch])
        self.train_nodes = graph.nodes("train", fold)
        self.class_weight = class_weights(graph, fold, cast(Any, settings.class_weight))
        network, self.optimizer = build_network(graph, settings, seed=seed)
        assert isinstance(network, ClosedFormModel)
        self.network: Model = network
        self.objective: nn.Module = nn.Module()
        self.most_epochs: float = network.num_stages
        self.step, self.sums = 0, dict[str, float]()

    def advance(self, epoch: int) -> None:
        """Solve the model at the stage of this epoch."""
        nodes = self.train_nodes
        assert isinstance(self.network, ClosedFormModel)
        self.network.solve(
            self.graph, nodes, seed=self.seed, class_weight=self.class_weight, stage=epoch
        )
        with torch.no_grad():
            logits = self.network.eval()(self.graph, nodes)
        weight = None if self.class_weight is None else self.class_weight.to(logits)
        loss = nn.functional.cross_entropy(logits, self.graph.labels[nodes], weight).item()
        self.sums = {"ce": loss, "total": loss}
        self.step = 1

    def validate(self) -> dict[str, float]:
        """Return the validation metrics, and ``test_accuracy`` of the nodes to watch."""
        return validate(
            self.network, self.graph, self.looked_at, self.labels, self.watch, self.monitor,
            self.class_weight,
        )  # fmt: skip


def is_closed_form(settings: Settings) -> bool:
    """Whether the model of some settings is solved, not trained by gradient steps."""
    from everynode.models.names import model_class

    return issubclass(model_class(settings.backbone), ClosedFormModel)
