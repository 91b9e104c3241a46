"""MLP."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.nn import MLP as Theirs

from everynode.models.mlp import MLP


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(MLP, "mlp")
    check_network(MLP, "mlp", num_layers=3)


def test_it_is_pygs(random_graph) -> None:
    graph, ours = random_graph(), MLP(5, 3, hidden_channels=6, num_layers=3).double().eval()
    theirs = Theirs([5, 6, 6, 3], norm=None).double().eval()
    with torch.no_grad():
        for mine, other in zip(ours.layers, theirs.lins, strict=True):
            other.weight.copy_(mine.weight.T)
            other.bias.copy_(mine.bias)
        torch.testing.assert_close(ours(graph), theirs(graph.features))
