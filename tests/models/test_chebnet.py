"""ChebNet against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import ChebConv

from everynode.errors import UsageError
from everynode.models.chebnet import ChebNet


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(ChebNet, "chebnet")


@pytest.mark.parametrize("filters", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_pygs(random_graph, filters: int, weighted: bool) -> None:
    graph = random_graph(3, weighted=weighted)
    ours = ChebNet(5, 3, hidden_channels=6, chebnet_filters=filters).double().eval()
    with torch.no_grad():
        x = graph.features
        for place, layer in enumerate(ours.layers):
            layer.bias.normal_()
            theirs = ChebConv(*layer.weight.shape[1:], K=filters).double()
            for linear, weight in zip(theirs.lins, layer.weight, strict=True):
                linear.weight.copy_(weight.T)
            theirs.bias.copy_(layer.bias)
            largest = torch.tensor(2.0, dtype=torch.float64)
            x = theirs(
                x.relu() if place else x, graph.edge_index, graph.edge_weight, lambda_max=largest
            )
        torch.testing.assert_close(ours(graph), x)


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="chebnet_filters"):
        ChebNet(5, 3, chebnet_filters=0)
