"""The edges of a graph as plain tensors, for exported models."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeList:
    r"""The entries of :math:`\tilde A = A + I`, one for each edge and each self-loop.

    Every operation works on plain tensors, so that ``torch.export`` can follow it. Messages are
    materialized (edges x channels), which :class:`everynode.models.network.Network` avoids.

    Attributes
    ----------
    source, target : Tensor
        The ends of each entry.
    weight : Tensor
        The weight of each entry; 1 for self-loops.
    num_nodes : int
        Number of nodes.

    Examples
    --------
    >>> edges = EdgeList.of(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), num_nodes=2)
    >>> edges.propagate(edges.gcn_weight(), torch.tensor([[1.0], [3.0]]))
    tensor([[2.],
            [2.]])
    """

    source: Tensor
    target: Tensor
    weight: Tensor
    num_nodes: int

    @classmethod
    def of(cls, edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> EdgeList:
        """Add self-loops to PyG's ``edge_index``, which lists both directions of every edge."""
        loops = torch.arange(num_nodes, device=edge_index.device)
        return cls(
            torch.cat([edge_index[0], loops]),
            torch.cat([edge_index[1], loops]),
            torch.cat([edge_weight, edge_weight.new_ones(num_nodes)]),
            num_nodes,
        )

    def gcn_weight(self) -> Tensor:
        r"""Return the entries of :math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2}`."""
        degree = self.weight.new_zeros(self.num_nodes).index_add(0, self.target, self.weight)
        return self.weight * (degree[self.target] * degree[self.source]).rsqrt()

    def neighbor_weight(self) -> Tensor:
        r"""Return the entries of :math:`D^{-1} A`; self-loops get 0."""
        weight = torch.where(self.source == self.target, 0.0, self.weight)
        total = weight.new_zeros(self.num_nodes).index_add(0, self.target, weight)
        return weight / torch.where(total > 0, total, 1.0)[self.target]

    def loopless_weight(self) -> Tensor:
        r"""Return the entries of :math:`D^{-1/2} A D^{-1/2}`; self-loops get 0."""
        weight = torch.where(self.source == self.target, 0.0, self.weight)
        total = weight.new_zeros(self.num_nodes).index_add(0, self.target, weight)
        scale = torch.where(total > 0, total, 1.0).rsqrt()
        return weight * scale[self.target] * scale[self.source]

    def softmax(self, scores: Tensor) -> Tensor:
        """Return the softmax of the scores over the entries of each target."""
        top = scores.new_full((self.num_nodes,), -torch.inf)
        top = top.scatter_reduce(0, self.target, scores, "amax")
        values = (scores - top[self.target]).exp()
        total = values.new_zeros(self.num_nodes).index_add(0, self.target, values)
        return values / total[self.target]

    def propagate(self, values: Tensor, f: Tensor) -> Tensor:
        """Return the sum over the entries of each target: ``values`` times the source's row."""
        messages = values[:, None] * f[self.source]
        return torch.zeros_like(f).index_add(0, self.target, messages)
