"""Batches for anybody's own PyG model: PyG's loader, with a sampler that needs nothing compiled."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.training.mini_batch.part import draw_part
from everynode.training.mini_batch.plan import ORDER, SURROUNDINGS, Plan, Seeds, generator, plan_for

#: What PyTorch's and PyG's loaders take and this one decides by itself.
REFUSED = {
    "input_nodes",
    "input_id",
    "input_time",
    "shuffle",
    "sampler",
    "drop_last",
    "custom_cls",
    "transform_sampler_output",
}


class NeighborLoader(NodeLoader):  # type: ignore[misc]  # PyG has no types here
    """Training batches of a graph, for :class:`BatchENC` and a model of one's own: a PyG ``NodeLoader`` that needs nothing compiled.

    An epoch goes through the training nodes once, in steps of ``batch_size`` seeds, at most half of them training nodes, since every node
    counts; which they are is not for the caller to say. ``num_neighbors``: how many neighbours of a node are drawn, hop by hop from the
    seeds (-1: all). ``tv_edges``: how many edges of each seed TV looks at (-1: all). ``clusters``: whole METIS clusters as seeds, of so
    many that the graph is cut into.
    Whatever else PyTorch's ``DataLoader`` takes may be given too, such as ``num_workers``.

    A batch is a PyG ``Data`` with ``x``, ``y`` (-1: no label), ``edge_index``, ``n_id``, and ``batch_size``, the number of seeds. The
    seeds come first, then the other ends of TV's edges, then what the neighbours are. ``edge_weight`` is such that a sum over drawn
    neighbours is on average that over all of them. The graph stays on the CPU; ``batch.to(device)`` is for a GPU, as usual.

    >>> from torch_geometric.nn import GraphSAGE
    >>> from everynode import BatchENC, load
    >>> graph = load("citeseer")
    >>> loader, objective = NeighborLoader(graph, [5, 5], batch_size=256), BatchENC(graph)
    >>> model = GraphSAGE(graph.num_features, 16, num_layers=2, out_channels=graph.num_classes)
    >>> for batch in loader:
    ...     loss = objective(model(batch.x, batch.edge_index), batch, model)
    ...     loss.backward()
    """

    def __init__(
        self,
        graph: Graph | DiskGraph,
        num_neighbors: Sequence[int],
        batch_size: int = 1024,
        *,
        clusters: int | None = None,
        tv_edges: int = 1,
        fold: int = 0,
        seed: int = 0,
        **options: Any,
    ):
        if not isinstance(graph, Graph | DiskGraph):
            kind = type(graph).__name__
            raise UsageError(
                f"NeighborLoader takes an everynode Graph, not a {kind}: for PyG's Data, NeighborLoader(Graph.from_pyg(data))."
            )
        if refused := sorted(set(options) & REFUSED):
            raise UsageError(
                f"NeighborLoader chooses the seeds of a step itself: leave out {', '.join(refused)}."
            )
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise UsageError(
                "NeighborLoader would give every process the same batches: use `torchrun -m everynode train --batch-size`."
            )
        require(batch_size >= 2, "batch_size", "NeighborLoader", ">= 2", batch_size)
        require(
            len(num_neighbors) > 0,
            "num_neighbors",
            "NeighborLoader",
            "a number for each hop",
            num_neighbors,
        )
        for number in (*num_neighbors, tv_edges):
            require(number >= -1, "num_neighbors", "NeighborLoader", "-1 (all) or more", number)
        require(clusters is None or clusters >= 1, "clusters", "NeighborLoader", ">= 1", clusters)
        self.graph = graph
        plan = plan_for(
            graph, batch_size, fold=fold, clusters=clusters, with_others=True, seed=seed
        )
        super().__init__(
            Data(num_nodes=graph.num_nodes),
            _Sampler(graph, plan, num_neighbors, tv_edges),
            batch_sampler=_Steps(plan),
            **options,
        )

    def filter_fn(self, out: SamplerOutput) -> Data:
        """From what was drawn to a batch: here features and labels are looked up."""
        input_id, _, part, weight = out.metadata
        x = self.graph.rows(out.node.numpy())
        batch = Data(
            x=x if isinstance(x, torch.Tensor) else x.to_dense(),
            y=self.graph.labels[out.node],
            edge_index=torch.stack([out.row, out.col]),
            edge_weight=weight.to(self.graph.dtype),
        )
        batch.n_id, batch.input_id, batch.batch_size = out.node, input_id, len(input_id)
        batch.num_sampled_nodes, batch.num_sampled_edges = (
            out.num_sampled_nodes,
            out.num_sampled_edges,
        )
        batch.part = part
        return batch if self.transform is None else self.transform(batch)

    def set_epoch(self, epoch: int) -> None:
        """Go on with the batches of this epoch (from 0), as a training that is resumed does."""
        self.batch_sampler.epoch = epoch


class _Steps(torch.utils.data.Sampler[list[int]]):
    """The seeds of every step of an epoch; each time it is gone through, the next epoch's."""

    def __init__(self, plan: Plan):
        self.plan, self.epoch = plan, 0

    def __len__(self) -> int:
        return self.plan.steps

    def __iter__(self) -> Iterator[list[int]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        for step in range(self.plan.steps):
            # In another order in each epoch, even if they are the same: what the sampler draws depends on it.
            order = generator(ORDER, self.plan.seed, epoch, step)
            yield order.permutation(np.concatenate(self.plan.seeds(epoch, step))).tolist()


class _Sampler(BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """Draws the surroundings of seeds as PyG does: the neighbours of each node once, when it is first met."""

    def __init__(self, graph: Graph | DiskGraph, plan: Plan, fan_out: Sequence[int], tv_edges: int):
        self.graph, self.plan, self.fan_out, self.tv_edges = graph, plan, fan_out, tv_edges
        self.is_train = np.zeros(graph.num_nodes, dtype=bool)
        self.is_train[plan.train] = True
        self.number = np.full(
            graph.num_nodes, -1, dtype=np.int64
        )  # each node's number in the batch in hand

    @property
    def edge_permutation(self) -> None:
        """The edges have no numbers of their own."""
        return

    def sample_from_edges(self, *_: Any, **__: Any) -> SamplerOutput:
        """PyG's samplers must have it; a loader of nodes never asks."""
        raise NotImplementedError

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """What depends on the seeds and on nothing else: so that it is the same with any number of workers."""
        seeds = index.node.numpy()
        rng = generator(SURROUNDINGS, self.plan.seed, zlib.crc32(seeds.tobytes()))
        labelled = self.is_train[seeds]
        part = draw_part(
            self.graph, self.plan, Seeds(seeds[labelled], seeds[~labelled]), self.tv_edges, rng
        )
        nodes, fresh = [part.roots], part.roots
        self.number[fresh] = np.arange(len(fresh))
        rows, columns, weights = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for at_most in self.fan_out:
            drawn = self.graph.neighbours.draw(fresh, at_most, rng)
            columns.append(np.repeat(self.number[fresh], np.diff(drawn.crow)))
            fresh = np.unique(drawn.nodes[self.number[drawn.nodes] < 0])
            self.number[fresh] = sum(map(len, nodes)) + np.arange(len(fresh))
            rows.append(self.number[drawn.nodes])
            weights.append(drawn.weight)
            nodes.append(fresh)
        found = np.concatenate(nodes)
        self.number[found] = -1
        order = np.argsort(~labelled, kind="stable")
        return SamplerOutput(
            node=torch.from_numpy(found.astype(np.int64)),
            row=torch.from_numpy(np.concatenate(rows)),
            col=torch.from_numpy(np.concatenate(columns)),
            edge=None,
            num_sampled_nodes=[len(part) for part in nodes],
            num_sampled_edges=[len(part) for part in rows],
            metadata=(
                index.input_id[torch.from_numpy(order)],
                None,
                part,
                torch.from_numpy(np.concatenate(weights)),
            ),
        )
