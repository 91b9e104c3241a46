"""PlainGCN against PyG's layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import GCNConv

from everynode.models.plain_gcn import PlainGCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(PlainGCN, "plain_gcn")


@pytest.mark.parametrize("num_layers", [1, 3])
def test_it_is_pygs(random_graph, num_layers: int) -> None:
    graph = random_graph(3, weighted=True)
    ours = PlainGCN(5, 3, num_layers=num_layers, hidden_channels=6).double().eval()
    f = graph.dense_features
    with torch.no_grad():
        for i, layer in enumerate(ours.layers):
            layer.bias.copy_(torch.randn(layer.bias.shape))
            theirs = GCNConv(*layer.weight.shape).double()
            theirs.lin.weight.copy_(layer.weight.T)
            theirs.bias.copy_(layer.bias)
            f = theirs(torch.relu(f) if i else f, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(ours(graph), f)
