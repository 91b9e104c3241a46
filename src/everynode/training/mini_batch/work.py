"""An epoch in steps, each on a part of the graph."""

from __future__ import annotations

import torch

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.models.receptive_field import Batch
from everynode.settings import Batches, Settings
from everynode.training.distributed import Ranks
from everynode.training.full_batch import build_network, judge, objective_options, validation_nodes
from everynode.training.mini_batch.inference import infer
from everynode.training.mini_batch.objective import BatchENC
from everynode.training.mini_batch.part import Part, draw_part
from everynode.training.mini_batch.plan import SURROUNDINGS, generator, plan_for
from everynode.training.mini_batch.sampler import Sampler
from everynode.training.random_state import seed_random


class Batched:
    """The :class:`~everynode.training.loop.Work` of an epoch in steps, which several processes may share.

    ``batches.size`` is the number of seeds of one process: R processes take steps of R times as many. Everything that is drawn depends
    on the seed, the epoch, the step and the process alone, so that there is no other state to keep.
    """

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
        # Drawing is the CPU's business, where the graph stays; only batches go to the device.
        self.graph, self.seed, self.ranks, self.device = graph, seed, ranks, ranks.device
        self.network, self.optimiser = build_network(graph, settings, seed=seed, device=self.device)
        self.val, self.monitor = validation_nodes(graph, fold, settings.monitor), settings.monitor
        if self.network.num_hops is None:
            raise UsageError(
                f"Model {settings.backbone!r} trains on the full graph only: leave out --batch-size."
            )
        self.fan_out = batches.for_layers(self.network.num_hops)
        self.tv_edges = batches.tv_edges if settings.tv else 0
        self.objective = BatchENC(
            graph, fold=fold, seed=seed, ranks=ranks, **objective_options(settings)
        ).to(self.device)
        self.sampler = Sampler(graph)
        size, with_others = (
            batches.size * ranks.size,
            bool(settings.mi or settings.tv or settings.consistency),
        )
        self.plan = plan_for(
            graph, size, fold=fold, clusters=batches.clusters, with_others=with_others, seed=seed
        )
        self.layer_bytes = 0  # a batch's values are small
        self.steps, self.step, self.sums = self.plan.steps, 0, dict[str, float]()

    def part(self, epoch: int, step: int) -> tuple[Part, Batch]:
        """This process's part of a step, and what the logits of its nodes are made of."""
        rng = generator(SURROUNDINGS, self.seed, epoch, step, self.ranks.rank)
        seed_random(int(rng.integers(2**63)), self.device)  # for dropout
        seeds = self.plan.seeds(epoch, step)
        part = draw_part(
            self.graph, self.plan, seeds, self.tv_edges, rng, self.ranks.rank, self.ranks.size
        )
        return part, self.sampler.batch(part.roots, self.fan_out, rng)

    def advance(self, epoch: int) -> None:
        """One step of the optimiser."""
        self.network.train()
        part, batch = self.part(epoch, self.step)
        there = batch.to(self.device)
        views = [self.network(there) for _ in range(self.objective.passes)]
        terms = self.objective.breakdown(views, part, batch.features, self.network)
        self.optimiser.zero_grad()
        terms.pop("total").backward()
        values = {
            name: value.item() / (self.ranks.size if name == "cvg" else 1)
            for name, value in terms.items()
        }
        added = self.ranks.add_up_gradients(list(self.network.parameters()), list(values.values()))
        self.optimiser.step()
        values = dict(zip(values, added, strict=True))
        values["total"] = sum(
            self.objective.weights[name] * value for name, value in values.items()
        )
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in values.items()}
        self.step += 1

    def validate(self) -> dict[str, float]:
        """``val_loss``, ``val_accuracy`` and what else selects: each process looks at its share of the validation nodes."""
        mine = slice(self.ranks.rank, None, self.ranks.size)
        logits = torch.zeros(len(self.val), self.graph.num_classes, dtype=self.graph.dtype)
        logits[mine] = infer(self.network, self.graph, self.val[mine], sampler=self.sampler)
        return judge(self.ranks.add_up(logits), self.graph.labels[self.val], self.monitor)
