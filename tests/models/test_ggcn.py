"""GGCN against loops written from its equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, softplus

from everynode.errors import UsageError
from everynode.models.ggcn import GGCN, GGCNLayer


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GGCN, "ggcn")


def slow_layer(layer: GGCNLayer, f: Tensor, near: dict[int, set[int]]) -> Tensor:
    """Return the output of one layer, pair by pair."""
    g = f @ layer.linear.weight + layer.linear.bias
    c, out = layer.shares.softmax(0), torch.zeros_like(g)
    for i, others in near.items():
        out[i] = c[2] * g[i]
        for j in others:
            d_i, d_j = len(others) + 1, len(near[j]) + 1
            tau = softplus(layer.degree[0] * (math.sqrt(d_j / d_i) - 1) + layer.degree[1])
            cosine = g[i] @ g[j] / (g[i].norm() * g[j].norm())
            share = c[0] if cosine > 0 else c[1]
            out[i] += share * tau * cosine / math.sqrt(d_i * d_j) * g[j]
    return softplus(layer.scale) * out


@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_it_is_the_equation(random_graph, decay: float) -> None:
    graph = random_graph(4)
    ours = GGCN(5, 3, num_layers=4, hidden_channels=4, ggcn_decay=decay).double().eval()
    near: dict[int, set[int]] = {i: set() for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    with torch.no_grad():
        for layer in ours.layers:
            layer.shares.normal_()
            layer.degree.normal_()
        x = graph.features
        h = elu(x @ ours.opening.weight + ours.opening.bias)
        h = h + elu(slow_layer(ours.layers[0], x, near))
        for l in (2, 3):  # noqa: E741 (as in the paper)
            share = math.log(decay / l**3 + 1) if decay else 1.0
            h = h + share * elu(slow_layer(ours.layers[l - 1], h, near))
        torch.testing.assert_close(ours(graph), slow_layer(ours.layers[3], h, near))


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="ggcn_decay"):
        GGCN(5, 3, ggcn_decay=-1.0)
