"""MagNet against dense complex matrices written from its equations."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.magnet import MagNet


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(MagNet, "magnet", chebnet_filters=3)


def laplacian(graph, charge: float) -> torch.Tensor:
    n = graph.num_nodes
    a = torch.zeros(n, n, dtype=torch.float64)
    weight = graph.edge_weight
    for e, (source, target) in enumerate(graph.edge_index.T.tolist()):
        a[source, target] = 1.0 if weight is None else weight[e]
    out = torch.zeros(n, n, dtype=torch.complex128)
    degree = [(float(a[i].sum()) + float(a[:, i].sum())) / 2 for i in range(n)]
    for i in range(n):
        for j in range(n):
            if size := (float(a[i, j]) + float(a[j, i])) / 2:
                phase = 2 * math.pi * charge * (float(a[i, j]) - float(a[j, i]))
                out[i, j] = -size / math.sqrt(degree[i] * degree[j]) * cmath.exp(1j * phase)
    return out


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("filters", [1, 2, 4])
def test_it_is_the_equation(random_graph, directed, weighted, filters) -> None:
    graph = random_graph(4, directed=directed, weighted=weighted)
    options = {"hidden_channels": 4, "chebnet_filters": filters, "magnet_charge": 0.2}
    ours = MagNet(5, 3, **options).double().eval()
    matrix = laplacian(graph, 0.2)
    with torch.no_grad():
        for layer in ours.layers:
            layer.bias.normal_()
        f = graph.features.to(torch.complex128)
        for layer in ours.layers:
            terms = [f, matrix @ f]
            while len(terms) < filters:
                terms.append(2 * matrix @ terms[-1] - terms[-2])
            out = sum(t @ w.to(f.dtype) for t, w in zip(terms[:filters], layer.weight, strict=True))
            out = out + layer.bias + 1j * layer.bias
            f = torch.where(out.real >= 0, out, 0)
        expected = torch.cat([f.real, f.imag], 1) @ ours.closing.weight + ours.closing.bias
        torch.testing.assert_close(ours(graph), expected)
        edge_weight = graph.edge_weight
        if edge_weight is None:
            edge_weight = torch.ones(graph.edge_index.shape[1]).double()
        exported = ours.export(graph.dense_features, graph.edge_index, edge_weight)
        torch.testing.assert_close(exported, expected)


def test_direction_counts_with_a_charge_alone(random_graph) -> None:
    graph = random_graph(4, directed=True)
    for charge, same in ((0.0, True), (0.2, False)):
        ours = MagNet(5, 3, hidden_channels=4, magnet_charge=charge).double().eval()
        torch.manual_seed(0)
        with torch.no_grad():
            for layer in ours.layers:
                layer.bias.normal_()
        turned = type(graph).from_arrays(
            graph.features.numpy(), graph.edges.flip(0).numpy(), graph.labels.numpy(), directed=True
        ).to(torch.float64)  # fmt: skip
        assert torch.allclose(ours(graph), ours(turned)) == same


def test_its_limits() -> None:
    for wrong in ({"magnet_charge": 0.3}, {"chebnet_filters": 0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            MagNet(5, 3, **wrong)
