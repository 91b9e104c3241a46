"""An epoch in steps, each on a sampled subgraph."""

from __future__ import annotations

import math
from typing import Any, cast

import torch

from everynode.batches import Batches
from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.models.receptive_field import Batch
from everynode.objectives import ENC
from everynode.objectives.cross_entropy import class_weights
from everynode.settings import Settings
from everynode.training.distributed import Ranks
from everynode.training.full_batch import (
    build_network,
    judge,
    require_dropout,
    validation_nodes,
)
from everynode.training.mini_batch.inference import infer
from everynode.training.mini_batch.plan import SURROUNDINGS, generator, plan_for
from everynode.training.mini_batch.sampler import Sampler, draw_sample
from everynode.training.random_state import seed_random


class Batched:
    """The mini-batch :class:`~everynode.training.step_runner.StepRunner`, shared by all processes.

    Everything random depends on the seed, the epoch, the step and the process alone, so a
    checkpoint holds no other state of the random numbers.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph, on the CPU; only batches move to the device.
    settings : Settings
        The choices of the run.
    batches : Batches
        The mini-batches. ``batches.size`` counts the seeds of one process: R processes take
        steps of R times as many.
    fold, seed : int
        The fold, and the seed of all random numbers.
    ranks : Ranks
        The rank of this process among the processes that train together.

    Attributes
    ----------
    device : torch.device
        The device of the batches.
    val : Tensor
        The validation nodes.
    monitor : str
        The validation metric that selects.
    class_weight : Tensor or None
        Weight of each class in the validation loss.
    fan_out : tuple of int
        Neighbors to sample in each layer.
    tv_edges : int
        Edges to draw for the terms that look at edges.
    sampler : Sampler
        Draws the batches.
    plan : Plan
        Draws the seeds.
    network, objective, optimizer, steps, step, sums, layer_bytes
        See :class:`~everynode.training.step_runner.StepRunner`.
    """

    most_epochs = math.inf

    def __init__(
        self,
        graph: Graph | DiskGraph,
        settings: Settings,
        batches: Batches,
        *,
        fold: int,
        seed: int,
        ranks: Ranks,
    ):
        self.graph, self.seed, self.ranks, self.device = graph, seed, ranks, ranks.device
        self.network, self.optimizer = build_network(graph, settings, seed=seed, device=self.device)
        self.val, self.monitor = validation_nodes(graph, fold, settings.monitor), settings.monitor
        self.class_weight = class_weights(graph, fold, cast(Any, settings.class_weight))
        if self.network.num_hops is None:
            raise UsageError(
                f"Model {settings.backbone!r} trains on the full graph only: "
                "leave out --batch-size."
            )
        for name, system in (("drop_edge", "DropEdge"), ("replace_edges", "NASA")):
            if getattr(settings, name):
                raise UsageError(
                    f"{system} trains on the full graph: set {name}=0. Mini-batches sample edges "
                    "themselves."
                )
        self.fan_out = batches.for_layers(self.network.num_hops)
        objective = ENC.from_settings(graph, settings, fold=fold, seed=seed, ranks=ranks)
        objective.check_mini_batches()
        require_dropout(objective, settings)
        self.objective = objective.to(self.device)
        self.tv_edges = batches.tv_edges if "edges" in objective.needs else 0
        self.sampler = Sampler(graph)
        self.plan = plan_for(
            graph, batches.size * ranks.size, fold=fold, clusters=batches.clusters,
            with_others=objective.looks_beyond_labels, seed=seed,
        )  # fmt: skip
        self.layer_bytes = 0  # the values of a batch are small
        self.steps, self.step, self.sums = self.plan.steps, 0, dict[str, float]()

    def draw(self, epoch: int, step: int) -> tuple[Sample, Batch]:
        """Draw this process's sample of a step, and the batch that gives the logits of its rows."""
        rng = generator(SURROUNDINGS, self.seed, epoch, step, self.ranks.rank)
        seed_random(int(rng.integers(2**63)), self.device)  # for dropout
        seeds = self.plan.seeds(epoch, step)
        sample = draw_sample(
            self.graph, self.plan, seeds, self.tv_edges, rng, self.ranks.rank, self.ranks.size
        )
        batch = self.sampler.batch(sample.nodes.numpy(), self.fan_out, rng)
        return sample.with_features(batch.features), batch

    def advance(self, epoch: int) -> None:
        """Take one step of the optimizer."""
        self.network.train()
        self.objective.epoch = epoch
        sample, batch = self.draw(epoch, self.step)
        on_device = batch.to(self.device)
        passes = [self.network(on_device) for _ in range(self.objective.passes)]
        terms = self.objective.breakdown(passes, self.network, sample)
        self.optimizer.zero_grad()
        terms.pop("total").backward()
        # Every process has the whole value of a term that is not additive.
        values = {
            name: value.item() / (1 if self.objective.terms[name].additive else self.ranks.size)
            for name, value in terms.items()
        }
        sums = self.ranks.add_up_gradients(list(self.network.parameters()), list(values.values()))
        self.optimizer.step()
        values = dict(zip(values, sums, strict=True))
        weights = self.objective.current_weights()
        values["total"] = sum(weights[name] * value for name, value in values.items())
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in values.items()}
        self.step += 1

    def validate(self) -> dict[str, float]:
        """Return ``val_loss``, ``val_accuracy`` and the metric that selects.

        Each process computes its part of the validation nodes.
        """
        own = slice(self.ranks.rank, None, self.ranks.size)
        logits = torch.zeros(len(self.val), self.graph.num_classes, dtype=self.graph.dtype)
        logits[own] = infer(self.network, self.graph, self.val[own], sampler=self.sampler)
        labels = self.graph.labels[self.val]
        return judge(self.ranks.add_up(logits), labels, self.monitor, self.class_weight)
