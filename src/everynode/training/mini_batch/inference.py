"""Logits of any nodes of a graph of any size: layer by layer, a block of nodes at a time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.matrix_rows import room
from everynode.graph.neighbors import Integers, Neighbors
from everynode.models.model import Layered, Model, node_indices
from everynode.models.receptive_field import Batch
from everynode.training.mini_batch.sampler import Sampler

#: The number of nodes that a layer computes at once.
BLOCK = 16384
#: Larger values of a layer (in bytes) are computed in blocks.
LARGE_LAYER = 64 * 1024**2
#: A generator for calls that take all neighbors and draw nothing.
ALL = np.random.Generator(np.random.SFC64(0))


@torch.no_grad()
def logits(network: nn.Module, graph: Graph, nodes: Tensor | None = None) -> Tensor:
    """Return the logits of some nodes or all, as ``network(graph, nodes)`` does.

    On a large graph, a block of nodes at a time; see :attr:`everynode.models.model.Model.block`.
    """
    block = _block(network, graph)
    if not block:
        whole: Tensor = network(graph, nodes)
        return whole
    assert isinstance(network, Model)
    network.check_graph(graph)
    chosen = torch.arange(graph.num_nodes) if nodes is None else node_indices(nodes, graph)
    return infer(network, graph, chosen, block=block)


@torch.no_grad()
def embedding(network: Model, graph: Graph) -> Tensor:
    """Return one vector per node: ``network.embed``; on a large graph, the logits."""
    return logits(network, graph) if _block(network, graph) else network.embed(graph)


def _block(network: nn.Module, graph: Graph) -> int:
    """Return the nodes to compute at once; 0: all, in one pass."""
    if not isinstance(network, Model) or network.num_hops is None or graph.directed:
        return 0
    if graph.labels.device.type != "cpu":
        return 0
    if network.block is not None:
        return network.block
    width = max((p.shape[-1] for p in network.parameters() if p.ndim == 2), default=0)
    layer_bytes = graph.num_nodes * width * graph.dtype.itemsize
    return BLOCK if layer_bytes > LARGE_LAYER else 0


@torch.no_grad()
def infer(
    network: Model,
    graph: Graph | DiskGraph,
    nodes: Tensor,
    *,
    sampler: Sampler | None = None,
    block: int = BLOCK,
) -> Tensor:
    """Return the logits of ``nodes`` as on the full graph: every layer sees all neighbors.

    Only the receptive field of the nodes is computed, each of its nodes once per layer. Between two
    layers the features of all its nodes are kept, in memory or, if they are large, in a file beside
    the graph.
    """
    network.eval()
    sampler = sampler or Sampler(graph)
    device = network.device
    if network.num_hops is None and isinstance(graph, Graph):
        return network(graph.to(device), nodes.to(device)).cpu()
    if not isinstance(network, Layered):
        return _infer_by_batch(network, sampler, nodes, device, block)
    num_layers = network.num_hops or 0
    folder: Path | None = getattr(graph, "folder", None)
    dtype = torch.empty(0, dtype=graph.dtype).numpy().dtype
    asked = np.unique(nodes.numpy(force=True))
    levels = _levels(graph.neighbors, asked, num_layers, graph.num_nodes)
    hidden_channels, k = network.closing.weight.shape

    f = f_0 = room(len(levels[0]), hidden_channels, dtype, folder)
    for at in _blocks(len(levels[0]), block):
        batch = Batch(graph.rows(levels[0][at]), (), graph.name).to(device)
        f.write(at.start, network.open(batch).numpy(force=True))
    for place, (sources, targets) in enumerate(pairwise(levels)):
        last = targets is levels[-1]
        out = room(len(targets), k if last else hidden_channels, dtype, folder)
        for at in _blocks(len(targets), block):
            seen, (hop,) = sampler.surroundings(targets[at], [-1], ALL)
            opened = torch.from_numpy(f_0.read(np.searchsorted(levels[0], targets[at]))).to(device)
            known = torch.from_numpy(f.read(np.searchsorted(sources, seen))).to(device)
            result = network.step(place, known, opened, hop.to(device))
            out.write(at.start, (network.close(result) if last else result).numpy(force=True))
        f = out
    return torch.from_numpy(f.read(np.searchsorted(asked, nodes.numpy(force=True))))


def _infer_by_batch(
    model: Model, sampler: Sampler, nodes: Tensor, device: torch.device, block: int
) -> Tensor:
    """Return the logits from sampled batches that contain all neighbors."""
    asked, inverse = np.unique(nodes.numpy(force=True), return_inverse=True)
    fan_out = [-1] * (model.num_hops or 0)
    parts = [
        model(sampler.batch(asked[at], fan_out, ALL).to(device)).cpu()
        for at in _blocks(len(asked), block)
    ]
    return torch.cat(parts)[torch.from_numpy(inverse)]


def _levels(neighbors: Neighbors, nodes: Integers, num_layers: int, n: int) -> list[Integers]:
    """Return the nodes between the layers, from the opening layer to ``nodes``; each sorted."""
    levels = [nodes]
    seen = np.zeros(n, dtype=bool)
    seen[nodes] = True
    for _ in range(num_layers):
        for at in _blocks(len(levels[-1]), BLOCK):
            seen[neighbors.draw(levels[-1][at], -1, ALL).nodes] = True
        levels.append(np.flatnonzero(seen))
    return levels[::-1]


def _blocks(total: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]
