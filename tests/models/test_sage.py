"""SAGE against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.nn import SAGEConv

from everynode.models.sage import SAGE


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(SAGE, "sage")


def test_its_layer_is_pygs(random_graph) -> None:
    graph = random_graph(2)
    ours = SAGE(5, 3, num_layers=1, hidden_channels=6).double().eval()
    theirs = SAGEConv(6, 6).double()
    own, neighbors = ours.layers[0].weight.split(6)
    with torch.no_grad():
        theirs.lin_r.weight.copy_(own.T)
        theirs.lin_l.weight.copy_(neighbors.T)
        theirs.lin_l.bias.copy_(ours.layers[0].bias)
        h = torch.relu(ours.opening(graph.features))
        h = h + torch.relu(theirs(ours.norms[0](h), graph.edge_index))
        torch.testing.assert_close(ours(graph), ours.closing(ours.last_norm(h)))
