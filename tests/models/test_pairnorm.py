"""PairNorm against loops written from its equation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.pairnorm import PairNorm


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(PairNorm, "pairnorm")


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = PairNorm(5, 3, num_layers=3, hidden_channels=4, pairnorm_scale=2.5).double().eval()
    near = {i: {i} for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    with torch.no_grad():
        f = graph.features
        for place, layer in enumerate(ours.layers):
            layer.bias.normal_()
            if place:
                centered = f - sum(f) / 20
                f = torch.stack([2.5 * row / row.square().sum().sqrt() for row in centered]).relu()
            f = torch.stack([sum(f[j] for j in near[i]) / len(near[i]) for i in range(20)])
            f = f @ layer.weight + layer.bias
        torch.testing.assert_close(ours(graph), f, rtol=1e-4, atol=1e-4)  # PyG adds 1e-5


def test_rows_keep_their_length_in_a_deep_network(random_graph) -> None:
    model = PairNorm(5, 3, num_layers=30, hidden_channels=4).double().eval()
    assert model(random_graph(4)).std(0).max() > 0.05


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="pairnorm_scale"):
        PairNorm(5, 3, pairnorm_scale=0.0)
