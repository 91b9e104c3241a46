"""GATv2 against loops written from its equation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, leaky_relu

from everynode.errors import UsageError
from everynode.models.gatv2 import GATv2


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GATv2, "gatv2", attention_heads=2)


def slow_layer(layer: GATv2, f: Tensor, near: dict[int, list[int]]) -> Tensor:
    """Return the output of one layer, node by node and head by head."""
    source, target = layer.lin_l(f), layer.lin_r(f)
    out = torch.zeros(20, layer.heads, layer.out_channels, dtype=f.dtype)
    for i, others in near.items():
        for h in range(layer.heads):
            part = slice(h * layer.out_channels, (h + 1) * layer.out_channels)
            scores = [
                layer.att[0, h] @ leaky_relu(target[i, part] + source[j, part], 0.2) for j in others
            ]
            shares = torch.stack(scores).softmax(0)
            out[i, h] = sum(a * source[j, part] for a, j in zip(shares, others, strict=True))
    return (out.flatten(1) if layer.concat else out.mean(1)) + layer.bias


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = GATv2(5, 3, hidden_channels=6, attention_heads=2).double().eval()
    near = {i: [i] for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].append(b)
        near[b].append(a)
    with torch.no_grad():
        hidden = elu(slow_layer(ours.layers[0], graph.features, near))
        expected = slow_layer(ours.layers[1], hidden, near)
        torch.testing.assert_close(ours(graph), expected)


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="a divisor of hidden_channels=6"):
        GATv2(5, 3, hidden_channels=6, attention_heads=4)
    with pytest.raises(UsageError, match="cannot be exported: its layers are PyG's"):
        GATv2(5, 3).check_export()
