"""Laplacian regularization against a loop over the edges, on the full graph and in mini-batches."""

from __future__ import annotations

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.objectives import ENC
from everynode.objectives.laplacian import Laplacian, laplacian
from everynode.settings import Settings
from everynode.training import train


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_mean_over_the_edges(weighted: bool) -> None:
    graph = generate(30, 70, 8, 3)
    if weighted:
        weight = torch.rand(graph.num_edges) + 0.5
        graph = type(graph).from_arrays(
            graph.dense_features, graph.edges, graph.labels, edge_weight=weight
        )
    graph = graph.to(torch.float64)
    logits = torch.randn(30, 3, dtype=torch.float64)
    y, total = torch.softmax(logits, 1).tolist(), 0.0
    for e, (i, j) in enumerate(graph.edges.T.tolist()):
        a = 1.0 if graph.weights is None else graph.weights[e].item()
        total += a * sum((y[i][s] - y[j][s]) ** 2 for s in range(3))
    assert laplacian(logits, graph).item() == pytest.approx(total / graph.num_edges, rel=1e-12)


def test_gradients() -> None:
    graph = generate(8, 14, 4, 3).to(torch.float64)
    logits = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: laplacian(x, graph), logits)
    assert torch.autograd.gradgradcheck(lambda x: laplacian(x, graph), logits)


def test_the_setting_is_the_term() -> None:
    graph, logits = generate(30, 70, 8, 3), torch.randn(30, 3)
    by_name = ENC(graph, mi=0, tv=0, cvg=0, laplacian=0.4)
    by_term = ENC(graph, mi=0, tv=0, cvg=0, terms=[Laplacian(weight=0.4)])
    assert torch.equal(by_name(logits), by_term(logits))


def test_it_trains_in_mini_batches_and_makes_neighbors_alike() -> None:
    graph = generate(200, 600, 8, 3)
    rough = train(graph, Settings(epochs=30).for_objective("ce"))
    smooth = train(graph, Settings(epochs=30, laplacian=5.0).for_objective("laplacian"))
    before, after = (laplacian(r.network(graph), graph).item() for r in (rough, smooth))
    assert after < before
    assert (
        "laplacian"
        in train(
            graph, Settings(epochs=2, laplacian=1.0).for_objective("laplacian"), batches=Batches(64)
        ).history
    )
