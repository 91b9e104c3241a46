"""A fitted network in plain torch operations, without a graph of its own: what ``torch.export`` can carry elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from everynode.models.gat import GATLayer
from everynode.models.network import Network


class Portable(nn.Module):
    r"""From features and edges to probabilities, with the weights of some networks, whose probabilities are averaged, and a temperature.

    ``x``: n x c features, dense. ``arcs``: 2 x m, source and target of every way that messages travel: both ways along an undirected
    edge, no self-loops (``Graph.edge_index``, as in PyG). ``weight``: of each arc, ones if they have none. The operators
    (:math:`\tilde P`, or GAT's attention) are made of these in every call, so it works for a graph of any size; it materialises arcs x
    channels, which :class:`Network` does not.
    """

    def __init__(self, networks: Sequence[Network], temperature: float = 1.0):
        super().__init__()
        self.networks, self.temperature = nn.ModuleList(networks), temperature

    def forward(self, x: Tensor, arcs: Tensor, weight: Tensor) -> Tensor:
        """The n x k probabilities."""
        each = [
            torch.log_softmax(self._logits(network, x, arcs, weight), dim=1)  # type: ignore[arg-type]
            for network in self.networks
        ]
        return torch.softmax(torch.logsumexp(torch.stack(each), dim=0) / self.temperature, dim=1)

    def export(self, file: Path) -> None:
        """Write it for ``torch.export.load``: a program for graphs of any size."""
        weight: Tensor = self.networks[0].opening.weight  # type: ignore[union-attr, assignment]
        nodes, arcs = torch.export.Dim("nodes", min=2), torch.export.Dim("arcs", min=1)
        four = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]], device=weight.device)
        example = (weight.new_zeros(5, len(weight)), four, weight.new_ones(4))
        torch.export.save(
            torch.export.export(
                self.eval(), example, dynamic_shapes=({0: nodes}, {1: arcs}, {0: arcs})
            ),
            file,
        )

    def _logits(self, net: Network, x: Tensor, arcs: Tensor, weight: Tensor) -> Tensor:
        n = x.shape[0]
        loops = torch.arange(n, device=x.device)
        source, target = torch.cat([arcs[0], loops]), torch.cat([arcs[1], loops])
        weight = torch.cat([weight.to(x.dtype), x.new_ones(n)])
        degree = x.new_zeros(n).index_add(0, target, weight)
        if net.normalize_features:
            total = x.abs().sum(1, keepdim=True)
            x = x / torch.where(total > 0, total, 1.0)
        f = f_0 = torch.relu(x @ net.opening.weight + net.opening.bias)
        for layer in net.stack:
            if isinstance(layer, GATLayer):
                at_target, at_source = (f @ (layer.attention_weight @ layer.a.T)).unbind(1)
                scores = (
                    nn.functional.leaky_relu(
                        at_target[target] + at_source[source], layer.negative_slope
                    )
                    + weight.log()
                )
                top = scores.new_full((n,), -torch.inf).scatter_reduce(0, target, scores, "amax")
                values = (scores - top[target]).exp()
                values = values / values.new_zeros(n).index_add(0, target, values)[target]
            else:
                values = weight * (degree[target] * degree[source]).rsqrt()
            mixed = torch.zeros_like(f).index_add(0, target, values[:, None] * f[source])
            mixed = (1.0 - layer.alpha) * mixed + layer.alpha * f_0
            f = torch.relu(mixed @ layer.matrix())
        return f @ net.closing.weight + net.closing.bias
