"""SGC against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import SGConv

from everynode.models.sgc import SGC


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(SGC, "sgc")


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_pygs(random_graph, weighted: bool) -> None:
    graph, ours = random_graph(2, weighted=weighted), SGC(5, 3, num_layers=3).double().eval()
    theirs = SGConv(5, 3, K=3).double()
    with torch.no_grad():
        ours.layers[0].bias.fill_(0.3)
        theirs.lin.weight.copy_(ours.layers[0].weight.T)
        theirs.lin.bias.copy_(ours.layers[0].bias)
        expected = theirs(graph.features, graph.edge_index, graph.edge_weight)
        torch.testing.assert_close(ours(graph), expected)
