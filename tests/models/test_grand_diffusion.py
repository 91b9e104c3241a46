"""GRAND's diffusion against loops written from its equations."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.grand_diffusion import GRANDDiffusion


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GRANDDiffusion, "grand_diffusion", attention_heads=2, diffusion_time=2.5)


@pytest.mark.parametrize("time", [0.6, 2.4])
def test_it_is_the_equation(random_graph, time: float) -> None:
    graph = random_graph(4)
    options = {"hidden_channels": 6, "attention_heads": 2, "diffusion_time": time}
    ours = GRANDDiffusion(5, 3, **options).double().eval()
    near = {i: [i] for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].append(b)
        near[b].append(a)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
        first = f = graph.features @ ours.opening.weight + ours.opening.bias
        keys, queries = (
            (first @ layer.weight + layer.bias).view(20, 2, 3)
            for layer in (ours.keys, ours.queries)
        )
        matrix = torch.zeros(20, 20).double()
        for i, others in near.items():
            for h in range(2):
                score = [float(keys[i, h] @ queries[j, h]) / math.sqrt(3) for j in others]
                total = sum(map(math.exp, score))
                for j, s in zip(others, score, strict=True):
                    matrix[i, j] += math.exp(s) / total / 2
        speed = 1 / (1 + math.exp(-float(ours.alpha)))
        steps = math.ceil(time)
        for _ in range(steps):
            rate = speed * (matrix @ f - f) + float(ours.beta) * first
            f = f + time / steps * rate
        expected = torch.relu(f) @ ours.closing.weight + ours.closing.bias
        torch.testing.assert_close(ours(graph), expected)


def test_the_attention_starts_uniform(random_graph) -> None:
    graph = random_graph(4)
    ours = GRANDDiffusion(5, 3, hidden_channels=8).double()
    hops = ours.hops_of(graph)
    attention = ours.attention(torch.randn(20, 8).double(), hops)
    degree = torch.bincount(hops.target, minlength=20)
    torch.testing.assert_close(attention, 1 / degree[hops.target].double(), rtol=1e-4, atol=1e-6)


def test_its_limits() -> None:
    for wrong in ({"diffusion_time": 0.0}, {"attention_heads": 3}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            GRANDDiffusion(5, 3, **wrong)
