"""EGNN against loops written from its equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from everynode import ENC
from everynode.errors import UsageError
from everynode.models.egnn import EGNN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(EGNN, "egnn")


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = EGNN(5, 3, hidden_channels=4, egnn_residual=0.5, egnn_initial=0.2).double().eval()
    near = {i: {i} for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    with torch.no_grad():
        for weight in ours.weights:
            weight.normal_()
        ours.floors.normal_()
        first = f = torch.relu(graph.features @ ours.opening.weight + ours.opening.bias)
        for weight, floor in zip(ours.weights, ours.floors, strict=True):
            mixed = torch.zeros_like(f)
            for i, others in near.items():
                for j in others:
                    mixed[i] += 0.5 * f[j] / math.sqrt(len(others) * len(near[j]))
                mixed[i] += 0.3 * f[i] + 0.2 * first[i]
            f = torch.relu(mixed @ weight - floor) + floor
        torch.testing.assert_close(ours(graph), f @ ours.closing.weight + ours.closing.bias)


def test_its_loss_is_the_distance_from_the_identity(random_graph) -> None:
    graph, ours = random_graph(4), EGNN(5, 3, num_layers=2, hidden_channels=2).double()
    objective = ENC(graph, ce=0.0, mi=0, tv=0, cvg=0, model_loss=10.0)
    assert objective(ours(graph), ours).item() == pytest.approx(0.0, abs=1e-4)
    ours.own_loss().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in ours.parameters())
    with torch.no_grad():
        ours.weights[0].copy_(torch.tensor([[4.0, 4.0], [0.0, 1.0]]))
    assert objective(ours(graph), ours).item() == pytest.approx(50.0, rel=1e-5)


def test_its_limits() -> None:
    with pytest.raises(UsageError, match=r"between 0 and egnn_residual=0\.1"):
        EGNN(5, 3, egnn_residual=0.1, egnn_initial=0.2)
