"""GraphCON against loops written from its equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.graphcon import GraphCON


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GraphCON, "graphcon", graphcon_damping=0.3, graphcon_pull=0.2)


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    options = {"graphcon_damping": 0.3, "graphcon_pull": 0.2}
    ours = GraphCON(5, 3, num_layers=3, hidden_channels=4, **options).double().eval()
    near = {i: {i} for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    with torch.no_grad():
        for layer in (ours.opening, ours.convolution, ours.own, ours.closing):
            layer.bias.normal_()
        x = y = torch.relu(graph.features @ ours.opening.weight + ours.opening.bias)
        for _ in range(3):
            mapped, force = x @ ours.convolution.weight, torch.zeros_like(x)
            for i, others in near.items():
                for j in others:
                    force[i] += mapped[j] / math.sqrt(len(others) * len(near[j]))
                own = mapped[i] @ ours.own.weight + ours.own.bias
                force[i] = torch.relu(force[i] + ours.convolution.bias - own)
            y = y + force - 0.3 * y - 0.2 * x
            x = x + y
        torch.testing.assert_close(ours(graph), x @ ours.closing.weight + ours.closing.bias)


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="graphcon_pull"):
        GraphCON(5, 3, graphcon_pull=-0.1)
