"""FAGCN against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import FAConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from everynode.errors import UsageError
from everynode.models.fagcn import FAGCN


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(FAGCN, "fagcn")


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_pygs(random_graph, weighted: bool) -> None:
    graph = random_graph(3, weighted=weighted)
    ours = FAGCN(5, 3, num_layers=2, hidden_channels=6, fagcn_eps=0.4).double().eval()
    edges, weight = gcn_norm(graph.edge_index, graph.edge_weight, 20, add_self_loops=False)
    with torch.no_grad():
        h = first = torch.relu(graph.features @ ours.opening.weight + ours.opening.bias)
        for gate in ours.gates:
            # PyG scores the source with att_l and the target with att_r, and has no bias.
            theirs = FAConv(6, eps=0.4, dropout=0.0, normalize=False).double()
            theirs.att_r.weight.copy_(gate.weight[:6].T)
            theirs.att_l.weight.copy_(gate.weight[6:].T)
            h = theirs(h, first, edges, weight)
        torch.testing.assert_close(ours(graph), ours.closing(h))


def test_the_gate_has_a_bias(random_graph) -> None:
    graph, model = random_graph(3), FAGCN(5, 3, num_layers=1).double().eval()
    before = model(graph)
    with torch.no_grad():
        model.gates[0].bias.fill_(-1.0)
    assert not torch.equal(model(graph), before)


def test_its_limits() -> None:
    with pytest.raises(UsageError, match="fagcn_eps"):
        FAGCN(5, 3, fagcn_eps=1.5)
