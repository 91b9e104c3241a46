"""Mini-batches for any PyG model: PyG's loader, with a sampler that needs nothing compiled."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from everynode.batches import Batches, check_batch_option
from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.training.mini_batch.plan import ORDER, SURROUNDINGS, Plan, Seeds, generator, plan_for
from everynode.training.mini_batch.sampler import draw_sample

#: Options of PyTorch's and PyG's loaders that this loader sets.
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
    """Mini-batches of a graph for :class:`everynode.ENC` and any PyG model.

    It is a PyG ``NodeLoader`` that needs nothing compiled. An epoch visits the training nodes
    once, in steps of ``batch_size`` seeds. At most half of the seeds are training nodes, since
    every node counts.

    A batch is a PyG ``Data`` with ``x``, ``y`` (-1: no label), ``edge_index``, ``edge_weight``,
    ``n_id``, ``batch_size`` (the number of seeds), and ``sample``, the
    :class:`~everynode.graph.sample.Sample` that ENC reads. The seeds come first, then the other
    ends of TV's edges, then the sampled neighbors. With ``edge_weight``, a sum over the sampled
    neighbors is on average the sum over all of them. The graph stays on the CPU; move a batch
    with ``batch.to(device)``.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph.
    num_neighbors : sequence of int
        The neighbors to draw for each node, hop by hop from the seeds (-1: all).
    batch_size : int
        The number of seeds of a step.
    clusters : int, optional
        Cut the graph into this many METIS clusters, and take whole clusters as seeds.
    tv_edges : int
        The edges of each seed in total variation (-1: all; 0: none, for other objectives).
    fold, seed : int
        The fold, and the seed of all random numbers.
    **options
        Other options of PyTorch's ``DataLoader``, such as ``num_workers``.

    Examples
    --------
    >>> from torch_geometric.nn import GraphSAGE
    >>> from everynode import ENC, load
    >>> graph = load("citeseer")
    >>> loader, objective = NeighborLoader(graph, [5, 5], batch_size=256), ENC(graph)
    >>> model = GraphSAGE(graph.num_features, 16, num_layers=2, out_channels=graph.num_classes)
    >>> for batch in loader:
    ...     loss = objective(model(batch.x, batch.edge_index), model, batch)
    ...     loss.backward()
    """

    def __init__(
        self,
        graph: Graph | DiskGraph,
        num_neighbors: Sequence[int],
        batch_size: int = 1024,
        *,
        clusters: int | None = Batches.clusters,
        tv_edges: int = Batches.tv_edges,
        fold: int = 0,
        seed: int = 0,
        **options: Any,
    ):
        if not isinstance(graph, Graph | DiskGraph):
            raise UsageError(
                f"NeighborLoader takes an everynode Graph, not a {type(graph).__name__}: "
                "for PyG's Data, NeighborLoader(Graph.from_pyg(data))."
            )
        if refused := sorted(set(options) & REFUSED):
            names = ", ".join(refused)
            raise UsageError(
                f"NeighborLoader chooses the seeds of a step itself: leave out {names}."
            )
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise UsageError(
                "NeighborLoader would give every process the same batches: "
                "use `torchrun -m everynode train --batch-size`."
            )
        check = partial(check_batch_option, owner="NeighborLoader")
        check("size", batch_size, parameter="batch_size")
        check("fan_out", tuple(num_neighbors), parameter="num_neighbors")
        check("clusters", clusters)
        if tv_edges != 0:  # an objective without total variation needs no edges
            check("tv_edges", tv_edges)
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
        """Look up the features and labels of the sampled nodes, and return the batch."""
        input_id, _, sample, weight = out.metadata
        x = self.graph.rows(out.node.numpy())
        x = x if isinstance(x, torch.Tensor) else x.to_dense()
        batch = Data(
            x=x,
            y=self.graph.labels[out.node],
            edge_index=torch.stack([out.row, out.col]),
            edge_weight=weight.to(self.graph.dtype),
        )
        batch.n_id, batch.input_id, batch.batch_size = out.node, input_id, len(input_id)
        batch.num_sampled_nodes, batch.num_sampled_edges = (
            out.num_sampled_nodes,
            out.num_sampled_edges,
        )
        batch.sample = sample.with_features(x)
        return batch if self.transform is None else self.transform(batch)

    def set_epoch(self, epoch: int) -> None:
        """Continue with the batches of this epoch (from 0), as a resumed training does."""
        self.batch_sampler.epoch = epoch


class _Steps(torch.utils.data.Sampler[list[int]]):
    """The seeds of every step of an epoch; each iteration is the next epoch."""

    def __init__(self, plan: Plan):
        self.plan, self.epoch = plan, 0

    def __len__(self) -> int:
        return self.plan.steps

    def __iter__(self) -> Iterator[list[int]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        for step in range(self.plan.steps):
            # Every epoch has its own order, even of the same seeds: the sampler's draws follow it.
            order = generator(ORDER, self.plan.seed, epoch, step)
            yield order.permutation(np.concatenate(self.plan.seeds(epoch, step))).tolist()


class _Sampler(BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """Draws neighborhoods as PyG does: the neighbors of each node once, at its first visit."""

    def __init__(self, graph: Graph | DiskGraph, plan: Plan, fan_out: Sequence[int], tv_edges: int):
        self.graph, self.plan, self.fan_out, self.tv_edges = graph, plan, fan_out, tv_edges
        self.is_train = np.zeros(graph.num_nodes, dtype=bool)
        self.is_train[plan.train] = True
        # Each node's row in the current batch, or -1.
        self.row = np.full(graph.num_nodes, -1, dtype=np.int64)

    @property
    def edge_permutation(self) -> None:
        """Return None: the edges have no numbers."""
        return

    def sample_from_edges(self, *_: Any, **__: Any) -> SamplerOutput:
        """Refuse: PyG's samplers must have it, but a loader of nodes never calls it."""
        raise NotImplementedError

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """Draw the batch of some seeds; it depends on them alone, with any number of workers."""
        seeds = index.node.numpy()
        rng = generator(SURROUNDINGS, self.plan.seed, zlib.crc32(seeds.tobytes()))
        is_labeled = self.is_train[seeds]
        both = Seeds(seeds[is_labeled], seeds[~is_labeled])
        sample = draw_sample(self.graph, self.plan, both, self.tv_edges, rng)
        fresh = sample.nodes.numpy()
        hops = [fresh]
        self.row[fresh] = np.arange(len(fresh))
        rows, columns, weights = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for at_most in self.fan_out:
            drawn = self.graph.neighbors.draw(fresh, at_most, rng)
            columns.append(np.repeat(self.row[fresh], np.diff(drawn.crow)))
            fresh = np.unique(drawn.nodes[self.row[drawn.nodes] < 0])
            self.row[fresh] = sum(map(len, hops)) + np.arange(len(fresh))
            rows.append(self.row[drawn.nodes])
            weights.append(drawn.weight)
            hops.append(fresh)
        nodes = np.concatenate(hops)
        self.row[nodes] = -1
        order = torch.from_numpy(np.argsort(~is_labeled, kind="stable"))
        edge_weight = torch.from_numpy(np.concatenate(weights))
        return SamplerOutput(
            node=torch.from_numpy(nodes.astype(np.int64)),
            row=torch.from_numpy(np.concatenate(rows)),
            col=torch.from_numpy(np.concatenate(columns)),
            edge=None,
            num_sampled_nodes=[len(hop) for hop in hops],
            num_sampled_edges=[len(hop) for hop in rows],
            metadata=(index.input_id[order], None, sample, edge_weight),
        )
