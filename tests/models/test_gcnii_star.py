"""The layer of GCNII* against PyG's, and its gradients."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCN2Conv

from everynode import ENC
from everynode.datasets import generate
from everynode.models.gcnii_star import GCNIIStar, GCNIIStarLayer
from everynode.models.layer import brings
from everynode.models.receptive_field import Hop
from everynode.settings import Settings
from helpers.layers import C, N, close, make_graph, random


@pytest.mark.parametrize(("position", "alpha", "lam"), [(1, 0.1, 0.5), (5, 0.4, 1.5)])
def test_it_is_pygs(position: int, alpha: float, lam: float) -> None:
    graph = make_graph(1, weighted=True)
    ours = GCNIIStarLayer(C, position=position, alpha=alpha, lam=lam).double()
    theirs = GCN2Conv(C, alpha, theta=lam, layer=position, shared_weights=False).double()
    f, f_0, weights = random(N, C), random(N, C, seed=2), random(2 * C, C, seed=1)
    with torch.no_grad():
        ours.weight.copy_(weights)
        theirs.weight1.copy_(weights[:C])
        theirs.weight2.copy_(weights[C:])
    close(ours(f, f_0, Hop(graph)), torch.relu(theirs(f, f_0, graph.edge_index, graph.edge_weight)))


def test_its_gradients_and_its_export() -> None:
    graph = make_graph(2, weighted=True)
    model = GCNIIStar(5, 3, num_layers=2, hidden_channels=4).double().eval()
    names = [name for name, _ in model.named_parameters()]

    def logits(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (graph,))

    values = tuple(0.1 + 0.3 * torch.randn_like(p) for p in model.parameters())
    assert torch.autograd.gradcheck(logits, tuple(v.requires_grad_() for v in values))
    weight = graph.edge_weight
    exported = model.export(graph.dense_features, graph.edge_index, weight)
    torch.testing.assert_close(exported, model(graph))


def test_cvg_falls_back_to_autograd() -> None:
    assert not brings(GCNIIStarLayer, "derivatives")
    graph = generate(60, 120, 8, 3)
    model = GCNIIStar(8, 3).train()
    settings = Settings(backbone="gcnii_star").for_objective("cvg")
    objective = ENC.from_settings(graph, settings)
    objective(model(graph), model).backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
