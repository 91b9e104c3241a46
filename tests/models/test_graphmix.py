"""GraphMix's network: the GCN's logits, and the MLP with the same weights on mixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from everynode.models.graphmix import GraphMix
from everynode.models.plain_gcn import PlainGCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GraphMix, "graphmix")


def test_its_logits_are_those_of_the_gcn(random_graph) -> None:
    graph = random_graph(4)
    ours = GraphMix(5, 3, hidden_channels=4, seed=2).double().eval()
    gcn = PlainGCN(5, 3, hidden_channels=4, seed=2).double().eval()
    torch.testing.assert_close(ours(graph), gcn(graph))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("layers", [2, 3])
def test_the_mixture_is_the_equation(random_graph, sparse, normalize, layers) -> None:
    graph = random_graph(4, sparse=sparse)
    options = {"num_layers": layers, "hidden_channels": 4, "normalize_features": normalize}
    ours = GraphMix(5, 3, **options).double().eval()
    nodes, order, share = [7, 2, 11], [2, 0, 1], 0.3
    x = graph.dense_features
    if normalize:
        x = x / x.abs().sum(1, keepdim=True).clamp_min(1e-12)
    with torch.no_grad():
        for layer in ours.layers:
            layer.bias.normal_()
        first, *others = ours.layers
        hidden = [torch.relu(x[i] @ first.weight + first.bias) for i in nodes]
        rows = []
        for place, other in enumerate(order):
            h = share * hidden[place] + (1 - share) * hidden[other]
            for depth, layer in enumerate(others):
                h = h @ layer.weight + layer.bias
                h = torch.relu(h) if depth < len(others) - 1 else h
            rows.append(h)
        mixed = ours.mixed(graph, torch.tensor(nodes), torch.tensor(order), share)
    torch.testing.assert_close(mixed, torch.stack(rows))
