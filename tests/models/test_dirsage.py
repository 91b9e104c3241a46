"""DirSAGE against PyG's layers for the two directions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.nn import SAGEConv

from everynode.models.dirsage import DirSAGE


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(DirSAGE, "dirsage")


def test_its_layer_is_two_of_pygs(random_graph) -> None:
    graph = random_graph(2, directed=True)
    ours = DirSAGE(5, 3, num_layers=1, hidden_channels=6).double().eval()
    own, incoming, outgoing = ours.layers[0].weight.split(6)
    forwards, backwards = (SAGEConv(6, 6, root_weight=False, bias=False).double() for _ in "ab")
    with torch.no_grad():
        forwards.lin_l.weight.copy_(incoming.T)
        backwards.lin_l.weight.copy_(outgoing.T)
        h = torch.relu(ours.opening(graph.features))
        u = ours.norms[0](h)
        both = forwards(u, graph.edge_index) + backwards(u, graph.edge_index.flip(0))
        h = h + torch.relu(u @ own + both)
        torch.testing.assert_close(ours(graph), ours.closing(ours.last_norm(h)))
        weight = torch.ones(graph.num_edges, dtype=torch.float64)
        exported = ours.export(graph.features, graph.edge_index, weight)
        torch.testing.assert_close(exported, ours(graph))
