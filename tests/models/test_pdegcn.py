"""PDE-GCN against loops written from its equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.pdegcn import PDEGCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(PDEGCN, "pdegcn", layer_dropout=0.3)


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = PDEGCN(5, 3, num_layers=3, hidden_channels=4, pdegcn_step=0.3).double().eval()
    near = {i: {i} for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    with torch.no_grad():
        ours.opening.bias.normal_()
        for kernel in ours.kernels:
            kernel.add_(torch.randn_like(kernel))
        f = torch.relu(graph.features @ ours.opening.weight + ours.opening.bias)
        for kernel in ours.kernels:
            flow = torch.zeros_like(f)
            for i, others in near.items():
                for j in others:
                    w = 1 / math.sqrt(len(others) * len(near[j]))
                    g = torch.relu(w * (f[i] - f[j]) @ kernel) @ kernel.T
                    flow[i] += w * g
                    flow[j] -= w * g
            f = f - 0.3 * flow
        torch.testing.assert_close(ours(graph), f @ ours.closing.weight + ours.closing.bias)


def test_kernels_start_as_the_identity_and_are_a_group() -> None:
    model = PDEGCN(5, 3, num_layers=2, hidden_channels=4)
    assert all(torch.equal(kernel, torch.eye(4)) for kernel in model.kernels)
    assert [*map(id, model.parameter_groups()["gnn"])] == [*map(id, model.kernels)]


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="pdegcn_step"):
        PDEGCN(5, 3, pdegcn_step=0.0)
