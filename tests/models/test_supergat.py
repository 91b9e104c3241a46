"""SuperGAT against loops written from its equations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import elu, leaky_relu

from everynode import ENC
from everynode.errors import UsageError
from everynode.models.supergat import SuperGAT, pairs_without_edge


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(SuperGAT, "supergat", attention_heads=2)


def test_it_is_the_equation(random_graph) -> None:
    graph = random_graph(4)
    ours = SuperGAT(5, 3, hidden_channels=6, attention_heads=2).double().eval()
    near = {i: [i] for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].append(b)
        near[b].append(a)
    with torch.no_grad():
        f = graph.features
        for layer in ours.layers:
            wide = layer.lin(f).view(20, layer.heads, -1)
            out = torch.zeros_like(wide)
            for i, others in near.items():
                for h in range(layer.heads):
                    mine, theirs = wide[i, h], wide[others, h]
                    link = (theirs @ mine).sigmoid()
                    score = (layer.att_r[0, h] @ mine + theirs @ layer.att_l[0, h]) * link
                    out[i, h] = leaky_relu(score, 0.2).softmax(0) @ theirs
            f = elu(out.flatten(1) + layer.bias) if layer.concat else out.mean(1) + layer.bias
        torch.testing.assert_close(ours(graph), f)


def test_its_loss_is_that_of_the_links(random_graph) -> None:
    graph = random_graph(4)
    options = {"dropout": 0.0, "layer_dropout": 0.0, "supergat_edge_share": 1.0}
    ours = SuperGAT(5, 3, num_layers=1, attention_heads=2, **options).double().train()
    none = torch.tensor([[0, 3], [7, 9]])
    ours.layers[0].negative_sampling = lambda *_: none
    objective = ENC(graph, ce=0.0, mi=0, tv=0, cvg=0, model_loss=2.0)
    total = objective(ours(graph), ours)
    wide = ours.layers[0].lin(graph.features).view(20, 2, 3)
    edges = [*graph.edge_index.T.tolist(), *([i, i] for i in range(20))]
    found = [-(wide[i] * wide[j]).sum(1).mean().sigmoid().log() for j, i in edges]
    found += [-(1 - (wide[i] * wide[j]).sum(1).mean().sigmoid()).log() for j, i in none.T.tolist()]
    torch.testing.assert_close(total, 2 * sum(found) / len(found))
    total.backward()
    assert ours.layers[0].lin.weight.grad.abs().sum() > 0


def test_pairs_have_no_edge(random_graph) -> None:
    edges = random_graph(4).edge_index
    pairs = pairs_without_edge(edges, 20, share=0.5)
    assert pairs.shape == (2, edges.shape[1] // 2)
    assert not {*map(tuple, pairs.T.tolist())} & {*map(tuple, edges.T.tolist())}


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="supergat_edge_share"):
        SuperGAT(5, 3, supergat_edge_share=0.0)
