"""ResGCN against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.nn import GCNConv

from everynode.models.resgcn import ResGCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(ResGCN, "resgcn")


def test_its_layer_is_pygs(random_graph) -> None:
    graph = random_graph(2, weighted=True)
    ours = ResGCN(5, 3, num_layers=1, hidden_channels=6).double().eval()
    theirs = GCNConv(6, 6).double()
    with torch.no_grad():
        ours.layers[0].bias.fill_(0.2)
        theirs.lin.weight.copy_(ours.layers[0].weight.T)
        theirs.bias.copy_(ours.layers[0].bias)
        h = torch.relu(ours.opening(graph.features))
        h = h + torch.relu(theirs(ours.norms[0](h), graph.edge_index, graph.edge_weight))
        torch.testing.assert_close(ours(graph), ours.closing(ours.last_norm(h)))
