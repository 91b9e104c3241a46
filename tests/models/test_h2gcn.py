"""H2GCN against loops written from its equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from everynode.models.h2gcn import H2GCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(H2GCN, "h2gcn")


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = H2GCN(5, 3, num_layers=2, hidden_channels=4).double().eval()
    one: dict[int, set[int]] = {i: set() for i in range(20)}
    for a, b in graph.edges.T.tolist():
        one[a].add(b)
        one[b].add(a)
    two = {i: {k for j in one[i] for k in one[j]} - one[i] - {i} for i in one}

    def mean(r: torch.Tensor, near: dict[int, set[int]]) -> torch.Tensor:
        out = torch.zeros_like(r)
        for i, others in near.items():
            for j in others:
                out[i] += r[j] / math.sqrt(len(others) * len(near[j]))
        return out

    with torch.no_grad():
        first = torch.relu(graph.features @ ours.opening.weight + ours.opening.bias)
        second = torch.cat([mean(first, one), mean(first, two)], 1)
        third = torch.cat([mean(second, one), mean(second, two)], 1)
        expected = torch.cat([first, second, third], 1) @ ours.closing.weight + ours.closing.bias
        assert any(two.values())
        torch.testing.assert_close(ours(graph), expected)


def test_the_width_doubles_in_each_round() -> None:
    assert H2GCN(5, 3, num_layers=3, hidden_channels=4).closing.weight.shape == (15 * 4, 3)
